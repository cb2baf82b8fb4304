"""The tables, a file per room of the domain."""
