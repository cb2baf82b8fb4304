"""The configuration: read once, checked whole, typed."""
