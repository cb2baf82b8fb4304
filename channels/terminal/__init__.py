"""The terminal's way of drawing a local chat."""
