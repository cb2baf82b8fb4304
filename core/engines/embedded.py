"""The default engine: in this process, woken at commit, one timer, nothing polled.

A doorbell's way:

    submit (in a transaction) --commit--> arrives --due----> its bell rings --handler--> removed, a little later
    stored by an earlier process --start---'         |                |
                                                     `-later-> agenda-'<-- `Again`, or back-off after a failure

A stored item is removed only after a handler that started behind its arrival ended well, or was
given up. So `Again` needs no row of its own: its items stay stored, and where the wait is worth it
they are put off until then, so that a start does not wake thousands who wait for people. After a
crash that came before that, they ring at the next start, which may be early and is harmless.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.contracts.clock import Clock
from core.contracts.engine import Engine, GaveUp, Handler, Transaction, WorkItem, WorkItems
from core.engines.removals import LazyRemovals
from core.engines.rounds import Rounds


@dataclass(frozen=True, slots=True)
class _Running:
    """The loop that answers, and what it answers with."""

    loop: asyncio.AbstractEventLoop
    rounds: Rounds


class EmbeddedEngine:
    """Rings the doorbells of one process; see `core.contracts.engine.Engine`.

    Handlers of different keys run at the same time: any number of them, or `limit`.
    """

    def __init__(self, work_items: WorkItems, clock: Clock, *, limit: int | None = None) -> None:
        self._work_items = work_items
        self._clock = clock
        self._limit = limit
        self._running: _Running | None = None

    def submit(self, tx: Transaction, item: WorkItem) -> None:
        self._work_items.insert(tx, item)
        tx.after_commit(functools.partial(self._announce, item))

    async def run(self, handlers: Mapping[str, Handler], gave_up: GaveUp) -> None:
        removals = LazyRemovals(self._work_items, self._clock)
        try:
            async with asyncio.TaskGroup() as group:
                rounds = Rounds(group, handlers, gave_up, clock=self._clock, slots=self._slots(), removals=removals)
                # Announced from here on and loaded below: an item of both rings twice at most.
                self._running = _Running(asyncio.get_running_loop(), rounds)
                group.create_task(removals.run(), name="doorbell removals")
                for item in await self._work_items.load():
                    rounds.arrive(item)
                await rounds.keep_time()
        finally:
            self._running = None
            await removals.flush()

    def _announce(self, item: WorkItem) -> None:
        """Tell the loop of a committed item; from any thread. Stored items are rung at the next start."""
        running = self._running
        if running is not None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                running.loop.call_soon_threadsafe(running.rounds.arrive, item)

    def _slots(self) -> AbstractAsyncContextManager[object]:
        return nullcontext() if self._limit is None else asyncio.Semaphore(self._limit)


if TYPE_CHECKING:
    _conforms: type[Engine] = EmbeddedEngine
