"""A wait that ends by time or by being rung, whichever comes first."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from core.contracts.clock import Clock


class Alarm:
    """For one waiter; rings while nobody waits are kept for the next wait. Of the event loop's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """End the wait that is under way, or else the next one."""
        self._rung.set()

    async def wait(self, at_most: timedelta | None) -> None:
        """Return when rung or after `at_most`; None waits for a ring alone."""
        if at_most is None:
            await self._rung.wait()
        else:
            async with asyncio.TaskGroup() as group:
                timer = group.create_task(self._ring_after(at_most))
                await self._rung.wait()
                timer.cancel()
        self._rung.clear()

    async def _ring_after(self, duration: timedelta) -> None:
        await self._clock.sleep(duration)
        self._rung.set()
