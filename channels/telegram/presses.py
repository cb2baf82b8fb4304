"""Answers to button presses, in time."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

from channels.telegram.limits import Timing
from channels.telegram.transport import BotApi
from core.contracts.addresses import PressBody
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError

logger = logging.getLogger(__name__)


class PressAnswers:
    """Sees that every press is answered soon, with the host's text or without one.

    A query takes one answer. Its button spins until then, so a host that is slow (a store that
    takes seconds, C27) must not be waited for; but an answer at once would leave no way to tell
    the presser why nothing happens. So each press gets a short grace.
    """

    def __init__(self, api: BotApi, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._waiting: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = tuple(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def expect(self, press: PressBody) -> None:
        """Begin the grace of a press that just arrived; once for each."""
        query_id = press.acknowledge
        if query_id is None or query_id in self._waiting:
            return
        task = asyncio.create_task(self._answer_later(query_id))
        self._waiting[query_id] = task
        task.add_done_callback(lambda _: self._waiting.pop(query_id, None))

    async def answer(self, press: PressBody, text: str) -> None:
        """Answer now. Too late, twice and not at all are the same to the presser: no error."""
        if press.acknowledge is None:
            return
        if (task := self._waiting.pop(press.acknowledge, None)) is not None:
            task.cancel()
        await self._send(press.acknowledge, text)

    async def _answer_later(self, query_id: str) -> None:
        await self._clock.sleep(self._timing.press_grace)
        await self._send(query_id, "")

    async def _send(self, query_id: str, text: str) -> None:
        try:
            await self._api.answer(query_id, text)
        except ChannelError as error:
            logger.debug("telegram_press_not_answered", extra={"detail": error.detail})
