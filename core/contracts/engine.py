"""Doorbells: who is woken when something is to be done, at least once, one per key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias


class Transaction(Protocol):
    """An open transaction of the store. `after_commit` callbacks run once, in order, if it commits."""

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Run `callback`, from the writer's thread, as soon as the transaction is durable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """A doorbell for `key` on `queue`, to ring at `due_at`. The same `id` is stored once."""

    id: str
    queue: str
    key: str
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A handler's wish to be rung again for the same key after `wait`.

    Without `over_restart` the next start rings it at once: another process may do what this cannot.
    """

    wait: timedelta
    over_restart: bool = True


Handler: TypeAlias = Callable[[str], Awaitable[Again | None]]
"""Called with a key; reads the rows and advances all it can. An exception means: try again later."""

GaveUp: TypeAlias = Callable[[str, str, Exception], Awaitable[None]]
"""Called with (queue, key, last error) when a handler failed 5 times; then the key goes on."""


class Engine(Protocol):
    """Rings doorbells.

    Promises: per (queue, key) one handler at a time over all processes; at least once; due items
    at their time; what a dead process held is rung again; a failing handler backs off, 5 failures
    end in `GaveUp`.
    """

    def submit(self, tx: Transaction, item: WorkItem) -> None:
        """Add a doorbell inside the caller's own transaction. Called in the transaction's thread."""
        ...

    async def run(self, handlers: Mapping[str, Handler], gave_up: GaveUp) -> None:
        """Ring until cancelled. Handlers by queue name. Cancellation cancels handlers and awaits them."""
        ...


class WorkItems(Protocol):
    """Where an embedded engine keeps its doorbells."""

    def insert(self, tx: Transaction, item: WorkItem) -> None:
        """Store inside the caller's transaction; an existing id is left as it is."""
        ...

    async def load(self) -> tuple[WorkItem, ...]:
        """Return every stored item, ordered by `due_at`."""
        ...

    async def remove(self, ids: tuple[str, ...]) -> None:
        """Forget items that were handled; unknown ids are ignored."""
        ...

    async def postpone(self, items: Mapping[str, datetime]) -> None:
        """Let stored items, by id, fall due at another time; unknown ids are ignored."""
        ...
