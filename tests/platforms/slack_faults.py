"""What can go wrong between an app and a fake Slack, and when it shall."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.slack_refusals import rate_limited


class Fault(StrEnum):
    """One way in which one call goes wrong.

    The last six are for files (method `download`); `DUPLICATED` and `REORDERED` for what Slack
    sends by itself (method `envelope` over a socket, `event` over HTTP).
    """

    LOST_REQUEST = "lost request"  # the connection ends before the call is carried out
    LOST_RESPONSE = "lost response"  # it is carried out, and the connection ends
    ANSWERED = "answered"  # it is not carried out but answered by a status, with a body
    FLOODED = "flooded"  # 429 with Retry-After `seconds`
    SLOW = "slow"  # it is carried out after `seconds`
    HALF_OPEN = "half-open"  # it is taken and never answered
    DUPLICATED = "duplicated"  # it is sent twice
    REORDERED = "reordered"  # it is sent behind the next one
    NOT_FOUND = "not found"
    REDIRECTED = "redirected"  # to `location`
    SIGN_IN_PAGE = "sign-in page"  # 200 and text/html
    SIGN_IN_BYTES = "sign-in bytes"  # 200 and application/octet-stream, and the page all the same
    ENDLESS = "endless"
    CUT_SHORT = "cut short"


@dataclass
class Planned:
    """What happens to one call instead of success; `entered` tells that it began."""

    fault: Fault
    channel: str | None = None
    seconds: float = 0.0
    location: str = ""
    status: int = 503
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    @property
    def answer(self) -> tuple[Any, int, dict[str, str]] | None:
        """Body, status and headers that stand for carrying the call out; None where it is carried out."""
        match self.fault:
            case Fault.ANSWERED | Fault.LOST_REQUEST:
                plain = {"ok": False, "error": "internal_error"}
                return plain if self.body is None else self.body, self.status, self.headers
            case Fault.FLOODED:
                refusal = rate_limited(self.seconds)
                return refusal.as_json(), refusal.status, refusal.headers
            case _:
                return None

    async def delay(self, clock: Clock) -> None:
        """Tell that it began, and hold the call as long as the fault says; a half-open one for ever."""
        self.entered.set()
        if self.fault is Fault.SLOW:
            await clock.sleep(self.duration)
        if self.fault is Fault.HALF_OPEN:
            await asyncio.Event().wait()  # until the app hangs up, or the server stops

    @property
    def drops(self) -> bool:
        """Whether the connection ends without an answer."""
        return self.fault in {Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.HALF_OPEN}


class FaultScript:
    """Faults that wait for their calls, by method."""

    def __init__(self) -> None:
        self._planned: dict[str, deque[Planned]] = defaultdict(deque)

    def plan(self, method: str, faults: Iterable[Planned]) -> None:
        self._planned[method].extend(faults)

    def take(self, method: str, channel: Any = None) -> Planned | None:
        """Return the next fault of a method, and of a channel where it names one."""
        waiting = self._planned[method]
        for planned in waiting:
            if planned.channel in {None, channel}:
                waiting.remove(planned)
                return planned
        return None
