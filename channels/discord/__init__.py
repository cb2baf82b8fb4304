"""The Discord channel: its adapter, and everything that knows Discord."""
