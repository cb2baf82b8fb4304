"""Turns that nobody watches in a chat: `lodger run`. The same queue, worker and loop as any chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bot.control.wire import plain
from bot.conversations.access import AccessDesk
from bot.conversations.commands import parse_command
from bot.conversations.local import OWNER, LocalConversations
from bot.conversations.observer import Heard, TurnBus
from bot.conversations.sessions.protocol import OutputType
from bot.conversations.telling import Teller, turn_messages, turn_result
from bot.host_api import HeadlessRequest
from channels.feed import FeedChannel
from core.contracts.backend import Backend
from core.contracts.delivery import Binding, DeliveryStore
from core.contracts.errors import InvalidInput
from core.contracts.ids import ConversationId, TurnId, new_id
from core.contracts.ledger import CallState, TurnLedger
from core.contracts.runs import Turn
from core.contracts.secrets import Redactor
from core.contracts.store import TranscriptStore
from core.turns.outcomes import EXIT_NOBODY_CAN_APPROVE


class Headless:
    """Runs single turns and tells everything about them as JSON objects."""

    def __init__(
        self,
        *,
        backend: Backend,
        transcripts: TranscriptStore,
        ledger: TurnLedger,
        delivery: DeliveryStore,
        access: AccessDesk,
        channel: FeedChannel,
        bus: TurnBus,
        redactor: Redactor,
    ) -> None:
        self._conversations = LocalConversations(backend=backend, transcripts=transcripts, access=access)
        self._transcripts = transcripts
        self._ledger = ledger
        self._delivery = delivery
        self._channel = channel
        self._bus = bus
        self._redactor = redactor

    async def run(self, request: HeadlessRequest) -> AsyncIterator[Mapping[str, Any]]:
        """Run one turn; the last object has the type `result`.

        Raises:
            NotFound: No such agent or conversation.
            InvalidInput: The conversation is another agent's, or the text is a command of chats.
        """
        if parse_command(request.text) is not None:
            raise InvalidInput("a command of chats starts no turn: say it in other words, or without the /")
        conversation_id = await self._conversation(request)
        async with self._bus.follow(conversation_id) as events:
            key = new_id("run")
            yield {"type": OutputType.STARTED, "conversation_id": conversation_id, "input_id": key}
            await self._channel.say(conversation_id, OWNER, request.text, key=key)
            teller = Teller(self._redactor)
            async for turn, event in self._heard_of(key, events):
                if event is None:
                    yield await self._result(turn)
                else:
                    for told in teller.tell(event):
                        yield told

    async def _heard_of(self, key: str, events: asyncio.Queue[Heard]) -> AsyncIterator[Heard]:
        """Yield what belongs to the turn that took a message; other turns may run in its conversation before."""
        ours: dict[TurnId, bool] = {}
        while True:
            turn, event = await events.get()
            if turn.id not in ours:
                ours[turn.id] = any(row.event.key == key for row in await self._delivery.taken(turn.id))
            if ours[turn.id]:
                yield turn, event
                if event is None:
                    return

    async def _conversation(self, request: HeadlessRequest) -> ConversationId:
        """Return the conversation to use, bound to the headless address of its own name."""
        conversation = await self._conversations.open(agent=request.agent, conversation=request.conversation)
        address = self._channel.address(conversation.id)
        await self._delivery.bind(
            Binding(address=address, agent_id=conversation.agent_id, conversation_id=conversation.id)
        )
        return conversation.id

    async def _result(self, turn: Turn) -> Mapping[str, Any]:
        result = turn_result(turn, await turn_messages(self._transcripts, turn), self._redactor)
        if result["exit_code"] == 0 and await self._lacked_approval(turn):
            result["exit_code"] = EXIT_NOBODY_CAN_APPROVE
        return {**result, "usage": plain(await self._transcripts.usage_since(turn.id))}

    async def _lacked_approval(self, turn: Turn) -> bool:
        """Whether a call was denied because nobody could be asked."""
        return any(
            record.state is CallState.DENIED
            and record.verdict is not None
            and record.verdict.action == "ask"
            and record.approval is None
            for record in await self._ledger.calls_of_turn(turn.id)
        )
