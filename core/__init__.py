"""The runtime: agents, turns, memory, tools and models, usable without any channel."""
