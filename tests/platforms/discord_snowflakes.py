"""Ids of a fake Discord: they grow with the clock, and say when they were made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.contracts.clock import Clock

EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
_TIME_SHIFT = 22


class Snowflakes:
    """Makes ids, each larger than all before; they follow `clock` to the millisecond."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        self._last = max(self._last + 1, first_snowflake(self._clock.now()))
        return self._last


def first_snowflake(at: datetime) -> int:
    """Return the smallest id that something made then can have."""
    return ((at - EPOCH) // timedelta(milliseconds=1)) << _TIME_SHIFT


def timestamp(at: datetime) -> str:
    """Return an instant as Discord writes it, with microseconds and an offset."""
    return at.isoformat(timespec="microseconds")
