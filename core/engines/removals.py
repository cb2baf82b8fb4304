"""Forgetting handled doorbells: late and together, because each removal is a commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from core.contracts.clock import Clock
from core.contracts.engine import WorkItems
from core.contracts.errors import StoreError
from core.engines.alarm import Alarm

logger = logging.getLogger(__name__)

DELAY: Final = timedelta(seconds=1)
BATCH: Final = 100
LONGEST_WAIT: Final = timedelta(seconds=30)
"""Between two tries where the store cannot remove anything, as on a full disk; doubled from `DELAY` on."""


class LazyRemovals:
    """Removes handled items at most a second, or a hundred items, later.

    What a crash leaves stored is rung once more at the next start: handlers look at rows and
    find nothing to do.
    """

    def __init__(self, work_items: WorkItems, clock: Clock) -> None:
        self._work_items = work_items
        self._handled: set[str] = set()
        self._some = Alarm(clock)
        self._many = Alarm(clock)
        self._clock = clock
        self._retry_in: timedelta | None = None

    def add(self, ids: Iterable[str]) -> None:
        """Have items removed soon."""
        self._handled.update(ids)
        if self._handled:
            self._some.ring()
        if len(self._handled) >= BATCH:
            self._many.ring()

    async def run(self) -> None:
        """Remove in batches until cancelled."""
        while True:
            await self._some.wait(None)
            if self._retry_in is None:
                await self._many.wait(DELAY)
            else:
                await self._clock.sleep(self._retry_in)
            await self.flush()

    async def flush(self) -> None:
        """Remove what was handled so far; where the store cannot do it now, with the next batch."""
        batch = tuple(self._handled)
        if not batch:
            return
        try:
            await self._work_items.remove(batch)
        except StoreError as error:
            logger.warning("doorbells_not_removed", extra={"count": len(batch), "error": type(error).__name__})
            self._retry_in = DELAY if self._retry_in is None else min(2 * self._retry_in, LONGEST_WAIT)
            self._some.ring()
        else:
            self._retry_in = None
            self._handled.difference_update(batch)
