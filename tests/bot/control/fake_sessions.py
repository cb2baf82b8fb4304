"""Sessions in memory: what they were asked, and lines that a test adds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.session_api import SessionApi
from core.contracts.errors import InvalidInput, NotFound

SESSION = {"type": "session", "conversation_id": "conv-1", "last_seq": 0, "state": "idle", "approvals": []}


class FakeSessions:
    """`SessionApi` with one conversation, `conv-1`."""

    def __init__(self) -> None:
        self.opened = []
        self.taken = []
        self.cancelled = []
        self.followers = 0
        self.told = []
        self.grown = asyncio.Event()

    def tell(self, *lines: str) -> None:
        self.told += lines
        self.grown.set()

    async def open(self, *, agent, conversation):
        self.opened.append((agent, conversation))
        return await self.state(conversation or "conv-1")

    async def state(self, conversation_id):
        if conversation_id != "conv-1":
            raise NotFound("conversation", conversation_id)
        return {**SESSION, "last_seq": len(self.told)}

    async def lines(self, conversation_id, *, after):
        await self.state(conversation_id)
        if after > len(self.told):
            raise InvalidInput(f"there is no line {after} yet")
        return self._follow(after)

    async def _follow(self, after):
        self.followers += 1
        try:
            while True:
                self.grown.clear()
                if page := self.told[after:]:
                    after += len(page)
                    yield page
                else:
                    await self.grown.wait()
        finally:
            self.followers -= 1

    async def take(self, conversation_id, said):
        await self.state(conversation_id)
        self.taken.append(said)
        return [{"type": "pong"}] if said["type"] == "ping" else []

    async def cancel_turn(self, conversation_id, input_id):
        await self.state(conversation_id)
        self.cancelled.append(input_id)
        return "Stopping."


if TYPE_CHECKING:
    _conforms: type[SessionApi] = FakeSessions
