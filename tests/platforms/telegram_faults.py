"""What can go wrong between a bot and a fake Telegram, and when it shall."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """One way in which one call goes wrong.

    The last six are for files (method `download`), `DUPLICATED` and `REORDERED` for updates
    (`getUpdates`, or `webhook` for those that are posted).
    """

    LOST_REQUEST = "lost request"  # the connection ends before the call is carried out
    LOST_RESPONSE = "lost response"  # it is carried out, and the connection ends
    ANSWERED = "answered"  # it is not carried out but answered by a status, with a body
    FLOODED = "flooded"  # 429 with retry_after `seconds`
    SLOW = "slow"  # it is carried out after `seconds`
    HALF_OPEN = "half-open"  # it is taken and never answered
    ENTITIES_REFUSED = "entities refused"
    DUPLICATED = "duplicated"  # everything is handed out twice
    REORDERED = "reordered"  # the newest first
    NOT_FOUND = "not found"
    REDIRECTED = "redirected"  # to `location`
    SIGN_IN_PAGE = "sign-in page"
    ENDLESS = "endless"
    CUT_SHORT = "cut short"


@dataclass
class Planned:
    """What happens to one call instead of success; `entered` tells that it began."""

    fault: Fault
    chat_id: int | None = None
    seconds: float = 0.0
    location: str = ""
    status: int = 503
    body: dict[str, Any] | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    @property
    def answer(self) -> tuple[dict[str, Any], int] | None:
        """What is answered without carrying the call out; None where it is carried out."""
        match self.fault:
            case Fault.ANSWERED | Fault.LOST_REQUEST:
                plain = {"ok": False, "error_code": self.status, "description": "Error"}
                return plain if self.body is None else self.body, self.status
            case Fault.FLOODED:
                told = f"Too Many Requests: retry after {self.seconds:g}"
                parameters = {"retry_after": int(self.seconds) if self.seconds.is_integer() else self.seconds}
                return {"ok": False, "error_code": 429, "description": told, "parameters": parameters}, 429
            case Fault.ENTITIES_REFUSED:
                told = "Bad Request: can't parse entities: unsupported entity at offset 0"
                return {"ok": False, "error_code": 400, "description": told}, 400
            case _:
                return None

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

    def take(self, method: str, chat_id: Any = None) -> Planned | None:
        """Return the next fault of a method, and of a chat where it names one."""
        waiting = self._planned[method]
        for planned in waiting:
            if planned.chat_id in {None, chat_id}:
                waiting.remove(planned)
                return planned
        return None


@dataclass
class Gate:
    """Holds one call after it arrived, before it is carried out or before that is answered."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


class Gates:
    """Gates that wait for their calls, by method."""

    def __init__(self) -> None:
        self._gates: dict[str, deque[Gate]] = defaultdict(deque)

    def add(self, method: str) -> Gate:
        gate = Gate()
        self._gates[method].append(gate)
        return gate

    async def pass_one(self, method: str) -> None:
        """Wait at the first gate of a method, if there is any."""
        if gates := self._gates[method]:
            gate = gates.popleft()
            gate.entered.set()
            await gate.opened.wait()

    def open_all(self) -> None:
        for gates in self._gates.values():
            for gate in gates:
                gate.opened.set()
