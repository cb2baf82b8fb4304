"""All books of a host: one a conversation, open for as long as somebody needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from bot.conversations.sessions.book import BookPorts, SessionBook
from bot.conversations.sessions.host_tools import HostTool, SessionToolset
from core.contracts.ids import ConversationId
from core.contracts.runs import Turn
from core.contracts.tools import ToolContext, Toolset
from core.turns.observer import TurnEvent

_MOST_KNOWN = 10_000


class SessionBooks:
    """What turns have to do with sessions: their events are recorded, and they get a session's tools."""

    def __init__(self, ports: BookPorts) -> None:
        self._ports = ports
        self._open: dict[ConversationId, SessionBook] = {}
        self._users: Counter[ConversationId] = Counter()
        self._without: set[ConversationId] = set()
        """Conversations that have no session, as far as they were looked up; opening a book ends that."""

    @asynccontextmanager
    async def book(self, conversation_id: ConversationId) -> AsyncIterator[SessionBook]:
        """Give the conversation's book. It stays open while anybody has it, and while a turn of it is told."""
        if conversation_id not in self._open:
            self._open[conversation_id] = SessionBook(conversation_id, self._ports)
        book = self._open[conversation_id]
        self._users[conversation_id] += 1
        self._without.discard(conversation_id)
        try:
            yield book
        finally:
            self._users[conversation_id] -= 1
            if not self._users[conversation_id]:
                del self._users[conversation_id]
                if not book.tells_a_turn:
                    del self._open[conversation_id]

    async def record(self, turn: Turn, event: TurnEvent | None) -> None:
        """Store an event of a turn as lines, where its conversation has a session; returns when it is durable.

        Events of a turn come in order; None says that the turn has ended, and that its end is stored.

        Raises:
            StoreError: It was not stored. Replayed to a later worker, the event is told then.
        """
        if await self._has_session(turn.conversation_id):
            async with self.book(turn.conversation_id) as book:
                await book.record(turn, event)

    async def tools_of(self, conversation_id: ConversationId, toolset: Toolset) -> Toolset:
        """Return the toolset with the tools that the conversation's client registered behind its own."""
        if not await self._has_session(conversation_id):
            return toolset
        async with self.book(conversation_id) as book:
            tools = (await book.read()).tools
        return SessionToolset(toolset, [HostTool(tool, self._ask) for tool in tools]) if tools else toolset

    async def _ask(self, context: ToolContext, name: str, arguments: Mapping[str, Any]) -> str:
        async with self.book(context.conversation_id) as book:
            return await book.ask(context.call_id, name, arguments)

    async def _has_session(self, conversation_id: ConversationId) -> bool:
        if conversation_id in self._open:
            return True
        if conversation_id in self._without:
            return False
        found = await self._ports.log.lines_after(conversation_id, 0, limit=1)
        if not found:
            if len(self._without) >= _MOST_KNOWN:
                self._without.clear()
            self._without.add(conversation_id)
        return bool(found)
