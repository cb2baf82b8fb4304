"""What becomes of answered doorbells: forgotten or postponed, late and together, because each time is a commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
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
    """Removes handled items, and puts off those whose handler has a wish, at most a second or a hundred later.

    What a crash leaves stored is rung once more at the next start: handlers look at rows and
    find nothing to do.
    """

    def __init__(self, work_items: WorkItems, clock: Clock) -> None:
        self._work_items = work_items
        self._handled: set[str] = set()
        self._put_off: dict[str, datetime] = {}
        self._some = Alarm(clock)
        self._many = Alarm(clock)
        self._clock = clock
        self._retry_in: timedelta | None = None

    def add(self, ids: Iterable[str]) -> None:
        """Have items removed soon."""
        self._handled.update(ids)
        self._ring()

    def postpone(self, ids: Iterable[str], until: datetime) -> None:
        """Have items stored as due then, so that a start before that leaves them asleep."""
        self._put_off.update(dict.fromkeys(ids, until))
        self._ring()

    def _ring(self) -> None:
        waiting = len(self._handled) + len(self._put_off)
        if waiting:
            self._some.ring()
        if waiting >= BATCH:
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
        """Store what was asked for so far; where the store cannot do it now, with the next batch."""
        removed = frozenset(self._handled)
        put_off = {item_id: until for item_id, until in self._put_off.items() if item_id not in removed}
        try:
            if removed:
                await self._work_items.remove(tuple(removed))
            if put_off:
                await self._work_items.postpone(put_off)
        except StoreError as error:
            facts = {"count": len(removed) + len(put_off), "error": type(error).__name__}
            logger.warning("doorbells_not_removed", extra=facts)
            self._retry_in = DELAY if self._retry_in is None else min(2 * self._retry_in, LONGEST_WAIT)
            self._some.ring()
        else:
            self._retry_in = None
            self._handled.difference_update(removed)
            # What was put off once more meanwhile is of the next batch.
            self._put_off = {
                item_id: until
                for item_id, until in self._put_off.items()
                if item_id not in removed and until != put_off.get(item_id)
            }
