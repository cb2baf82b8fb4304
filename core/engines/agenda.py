"""What is to be done at a time: one timer, for the earliest entry."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from core.contracts.clock import Clock
from core.engines.alarm import Alarm

Action: TypeAlias = Callable[[], None]

LONGEST_SLEEP: Final = timedelta(seconds=30)
"""A machine that was suspended, or whose clock was set, is late or early by no more than this."""


class Entry:
    """An action that waits for its time."""

    def __init__(self, action: Action) -> None:
        self._action: Action | None = action

    def cancel(self) -> None:
        """Have it never run."""
        self._action = None

    def run(self) -> None:
        """Run the action, unless it was cancelled."""
        if self._action is not None:
            self._action()


class Agenda:
    """Runs actions at instants of the wall clock, or after a duration that clock steps do not touch.

    Of the event loop's thread; actions are short and do not raise.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alarm = Alarm(clock)
        self._order = itertools.count()
        self._by_wall_clock: list[tuple[datetime, int, Entry]] = []
        self._by_duration: list[tuple[float, int, Entry]] = []

    def at(self, instant: datetime, action: Action) -> Entry:
        """Run `action` when the wall clock shows `instant` or later."""
        entry = Entry(action)
        heapq.heappush(self._by_wall_clock, (instant, next(self._order), entry))
        self._alarm.ring()
        return entry

    def after(self, wait: timedelta, action: Action) -> Entry:
        """Run `action` when `wait` has passed."""
        entry = Entry(action)
        deadline = self._clock.monotonic() + wait.total_seconds()
        heapq.heappush(self._by_duration, (deadline, next(self._order), entry))
        self._alarm.ring()
        return entry

    async def run(self) -> None:
        """Run what is due, until cancelled."""
        while True:
            for entry in self._take_due():
                entry.run()
            await self._alarm.wait(self._until_next())

    def _take_due(self) -> list[Entry]:
        now, elapsed = self._clock.now(), self._clock.monotonic()
        due = []
        while self._by_wall_clock and self._by_wall_clock[0][0] <= now:
            due.append(heapq.heappop(self._by_wall_clock)[2])
        while self._by_duration and self._by_duration[0][0] <= elapsed:
            due.append(heapq.heappop(self._by_duration)[2])
        return due

    def _until_next(self) -> timedelta | None:
        """Return how long to sleep; None when nothing waits for a time."""
        waits = []
        if self._by_wall_clock:
            waits.append(self._by_wall_clock[0][0] - self._clock.now())
        if self._by_duration:
            waits.append(timedelta(seconds=self._by_duration[0][0] - self._clock.monotonic()))
        return min(*waits, LONGEST_SLEEP) if waits else None
