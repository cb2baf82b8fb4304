"""The same stores on SQLite in memory: for tests, demos and headless runs that keep nothing."""

from __future__ import annotations

from core.contracts.clock import Clock
from core.contracts.engine import Transaction, WorkItem
from core.stores.connection import IN_MEMORY, Database
from core.stores.doorbells import Submit
from core.stores.sql import Stores, sql_stores


def ring_nobody(tx: Transaction, item: WorkItem) -> None:
    """Submit for stores without an engine: the caller looks at the rows by itself."""
    del tx, item


def open_in_memory(clock: Clock, submit: Submit = ring_nobody) -> Stores:
    """Return stores on a new, private database; it ends with `stores.database.close()`."""
    return sql_stores(Database.open(IN_MEMORY), submit=submit, clock=clock)
