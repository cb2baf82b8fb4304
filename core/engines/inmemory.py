"""Doorbells that end with the process: the fake of the store's, shipped because it is useful."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from core.contracts.engine import Transaction, WorkItem, WorkItems
from core.contracts.errors import InvalidInput


class InMemoryTransaction:
    """A transaction on nothing but doorbells."""

    def __init__(self) -> None:
        self.items: list[WorkItem] = []
        self.callbacks: list[Callable[[], None]] = []

    def after_commit(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


class InMemoryWorkItems:
    """Keeps doorbells in a dictionary; usable from one thread."""

    def __init__(self) -> None:
        self._items: dict[str, WorkItem] = {}

    @contextmanager
    def transaction(self) -> Iterator[InMemoryTransaction]:
        """Commit at the end of the block; an exception rolls back."""
        tx = InMemoryTransaction()
        yield tx
        for item in tx.items:
            self._items.setdefault(item.id, item)
        for callback in tx.callbacks:
            callback()

    def insert(self, tx: Transaction, item: WorkItem) -> None:
        if not isinstance(tx, InMemoryTransaction):
            raise InvalidInput(f"a transaction of another store: {type(tx).__name__}")
        tx.items.append(item)

    async def load(self) -> tuple[WorkItem, ...]:
        return tuple(sorted(self._items.values(), key=lambda item: (item.due_at, item.id)))

    async def remove(self, ids: tuple[str, ...]) -> None:
        for item_id in ids:
            self._items.pop(item_id, None)

    async def postpone(self, items: Mapping[str, datetime]) -> None:
        for item_id, until in items.items():
            if item_id in self._items:
                self._items[item_id] = replace(self._items[item_id], due_at=until)


if TYPE_CHECKING:
    _transaction: type[Transaction] = InMemoryTransaction
    _conforms: type[WorkItems] = InMemoryWorkItems
