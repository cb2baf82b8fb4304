"""An agent's memory: Markdown in its own bare git repository, read only as committed."""
