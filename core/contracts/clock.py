"""Time, injected: nothing in core, channels or bot reads the wall clock by itself."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol


class Clock(Protocol):
    """Wall time, monotonic time and sleeping. Safe to share between tasks and threads."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC instant."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary point, never going backwards."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Return after `duration`; cancellable at any time."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(max(0.0, duration.total_seconds()))


class FakeClock:
    """A clock that only `advance` moves; sleepers wake in order of their deadline."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, duration: timedelta) -> None:
        if duration <= timedelta(0):
            await asyncio.sleep(0)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed + duration.total_seconds(), waiter))
        await waiter

    @property
    def sleeping(self) -> int:
        """How many tasks wait for time to pass."""
        return sum(1 for _, waiter in self._sleepers if not waiter.done())

    async def advance(self, duration: timedelta) -> None:
        """Move time forward and let every task whose deadline passed run."""
        target = self._elapsed + duration.total_seconds()
        while True:
            due = sorted((s for s in self._sleepers if s[0] <= target and not s[1].done()), key=lambda s: s[0])
            if not due:
                break
            self._move_to(due[0][0])
            due[0][1].set_result(None)
            for _ in range(5):
                await asyncio.sleep(0)
        self._move_to(target)
        self._sleepers = [s for s in self._sleepers if not s[1].done()]

    def step_wall(self, offset: timedelta) -> None:
        """Change the wall clock alone, as NTP or a person would."""
        self._now += offset

    def _move_to(self, elapsed: float) -> None:
        step = max(0.0, elapsed - self._elapsed)
        self._elapsed += step
        self._now += timedelta(seconds=step)


if TYPE_CHECKING:
    _system: type[Clock] = SystemClock
    _fake: type[Clock] = FakeClock
