"""The pace of one chat, shared by everything that posts or edits there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from core.contracts.clock import Clock

BURST_CALLS = 1
"""How many calls a final may run ahead of the pace; the next ones pay it back."""

_IDLE_LANES = 1_000
"""Above this many chats the ones that owe nothing are forgotten."""


@dataclass(slots=True)
class _Lane:
    """What is known of one chat. Times are seconds of the clock's monotonic time."""

    interval: float
    due_at: float = 0.0
    """When the next call is due if calls keep exactly to the pace."""
    held_until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0

    def wait_for_preview(self, now: float) -> float:
        return max(self.due_at, self.held_until) - now

    def wait_for_final(self, now: float) -> float:
        return max(self.due_at - BURST_CALLS * self.interval, self.held_until) - now

    def charge(self, now: float) -> None:
        self.due_at = max(now, self.due_at) + self.interval

    def is_idle(self, now: float) -> bool:
        return self.users == 0 and max(self.due_at, self.held_until) <= now


class ChatPacer:
    """Gives each chat one call at a time, at most one per interval on average.

    Platforms count edits like messages, so previews, finals, cards and notices of a chat take
    their turns here. Chats never wait for each other. The first call of an idle chat goes out at
    once. Finals go in the order they came. A final may run one call ahead of the pace, as
    platforms allow short bursts, so that an answer is not late because a preview came just
    before it; previews never do, and a final that waits is served before them.
    """

    def __init__(self, clock: Clock, interval: Callable[[str], timedelta]) -> None:
        """Take `interval`: the time between two calls in the chat of that id."""
        self._clock = clock
        self._interval = interval
        self._lanes: dict[str, _Lane] = {}

    @asynccontextmanager
    async def final(self, chat: str) -> AsyncIterator[None]:
        """Hold the chat's turn for a call that must be made; waits as long as it takes."""
        with _using(self._lane(chat)) as lane:
            async with lane.lock:
                # The hold may be prolonged while this sleeps, so look again.
                while (wait := lane.wait_for_final(self._clock.monotonic())) > 0:
                    await self._clock.sleep(timedelta(seconds=wait))
                lane.charge(self._clock.monotonic())
                yield

    @asynccontextmanager
    async def preview(self, chat: str) -> AsyncIterator[None]:
        """Hold the chat's turn for a call that may be late; its caller sends what is newest then.

        It sleeps outside the turn, so that a final can overtake it.
        """
        with _using(self._lane(chat)) as lane:
            while True:
                while (wait := lane.wait_for_preview(self._clock.monotonic())) > 0:
                    await self._clock.sleep(timedelta(seconds=wait))
                async with lane.lock:
                    if lane.wait_for_preview(self._clock.monotonic()) <= 0:
                        lane.charge(self._clock.monotonic())
                        yield
                        return

    def hold(self, chat: str, duration: timedelta) -> None:
        """Let nothing out to the chat for `duration`: the platform asked for it."""
        lane = self._lane(chat)
        lane.held_until = max(lane.held_until, self._clock.monotonic() + duration.total_seconds())

    def is_held(self, chat: str) -> bool:
        """Return whether the platform's wish to wait still binds."""
        lane = self._lanes.get(chat)
        return lane is not None and lane.held_until > self._clock.monotonic()

    def _lane(self, chat: str) -> _Lane:
        lane = self._lanes.get(chat)
        if lane is None:
            if len(self._lanes) >= _IDLE_LANES:
                self._forget_idle()
            lane = self._lanes[chat] = _Lane(interval=self._interval(chat).total_seconds())
        return lane

    def _forget_idle(self) -> None:
        now = self._clock.monotonic()
        self._lanes = {chat: lane for chat, lane in self._lanes.items() if not lane.is_idle(now)}


@contextmanager
def _using(lane: _Lane) -> Iterator[_Lane]:
    """Count the lane's users, so that a lane in use is never forgotten."""
    lane.users += 1
    try:
        yield lane
    finally:
        lane.users -= 1
