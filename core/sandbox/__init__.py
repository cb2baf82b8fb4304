"""Where commands run, and how workspace files are opened without leaving it."""
