"""One database for all that lasts: SQLModel tables, coarse transactions, SQLite by default."""
