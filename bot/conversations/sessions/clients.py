"""Who is connected to a conversation, and the tool requests that wait for an answer from there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bot.conversations.sessions.protocol import CLIENT_GRACE, TOOL_PATIENCE, Withdrawal
from core.contracts.clock import Clock
from core.contracts.errors import InvalidInput
from core.contracts.ids import CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a client says of a tool it ran."""

    text: str
    is_error: bool


class Clients:
    """The clients of one conversation. A client is connected while it follows the lines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._here, self._away = asyncio.Event(), asyncio.Event()
        self._away.set()
        self._open: dict[CallId, asyncio.Future[ToolAnswer]] = {}

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Count one client more for the length of the block."""
        self._count += 1
        self._here.set()
        self._away.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._here.clear()
                self._away.set()

    @property
    def open_requests(self) -> frozenset[CallId]:
        """Return the calls whose answer is awaited."""
        return frozenset(self._open)

    def answer(self, call_id: CallId, answer: ToolAnswer) -> None:
        """Hand in an answer.

        Raises:
            InvalidInput: Nobody waits for it: never asked, answered already, or withdrawn.
        """
        waiting = self._open.get(call_id)
        if waiting is None or waiting.done():
            raise InvalidInput(f"no tool request {call_id!r} is open")
        waiting.set_result(answer)

    async def ask(self, call_id: CallId, tell: Callable[[], Awaitable[None]]) -> ToolAnswer | Withdrawal | None:
        """Have a client run a call; `tell` puts the request to it.

        Returns:
            Its answer, or why nobody waits for one any more; None when no client came within the
            grace, and so nobody was asked.

        Raises:
            asyncio.CancelledError: The answer is not awaited any more.
        """
        if not await self._somebody_comes():
            return None
        answer: asyncio.Future[ToolAnswer] = asyncio.get_running_loop().create_future()
        self._open[call_id] = answer
        try:
            await tell()
            return await self._first(answer)
        finally:
            del self._open[call_id]

    async def _first(self, answer: asyncio.Future[ToolAnswer]) -> ToolAnswer | Withdrawal:
        """Return the answer, unless time or the client is lost before."""
        slow = asyncio.create_task(self._clock.sleep(TOOL_PATIENCE))
        lost = asyncio.create_task(self._nobody_is_left())
        first: list[asyncio.Future[Any]] = [answer, slow, lost]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(slow, lost)
        if answer.done():
            return answer.result()
        return Withdrawal.DISCONNECTED if slow.cancelled() else Withdrawal.TIMEOUT

    async def _somebody_comes(self) -> bool:
        """Wait for a client, as long as the grace lasts."""
        return not await self._lasts(self._here)

    async def _nobody_is_left(self) -> None:
        """Return when no client was connected for the whole grace."""
        while True:
            await self._away.wait()
            if await self._lasts(self._here):
                return

    async def _lasts(self, change: asyncio.Event) -> bool:
        """Whether the grace passed before the change came."""
        if change.is_set():
            return False
        passed = asyncio.create_task(self._clock.sleep(CLIENT_GRACE))
        changed = asyncio.create_task(change.wait())
        try:
            await asyncio.wait([passed, changed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(passed, changed)
        return changed.cancelled()


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
