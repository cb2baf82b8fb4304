"""Turns that nobody watches in a chat: `lodger run`. The same queue, worker and loop as any chat."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from bot.control.wire import plain
from bot.conversations.access import LOCAL_OWNER, AccessDesk
from bot.conversations.observer import TurnBus
from bot.conversations.worker import final_text
from bot.host_api import HeadlessRequest
from channels.feed import FeedChannel
from core.contracts.addresses import Sender
from core.contracts.agents import EVERYONE, Audience
from core.contracts.backend import Backend
from core.contracts.delivery import Binding, DeliveryStore
from core.contracts.errors import NotFound
from core.contracts.events import (
    CallRequested,
    MessageStored,
    PromptRecompiled,
    ReasoningDelta,
    RetryNotice,
    RunEvent,
    RunFinished,
    TextDelta,
    UsageReported,
)
from core.contracts.ids import ConversationId, new_id
from core.contracts.ledger import CallState, TurnLedger
from core.contracts.messages import Role, visible_text
from core.contracts.runs import Turn, TurnOutcome
from core.contracts.store import TranscriptStore
from core.turns.observer import CallFinished, CallStarted, TurnEvent
from core.turns.outcomes import EXIT_NOBODY_CAN_APPROVE, OUTCOMES
from core.turns.services import TurnResult

NOBODY_COULD_APPROVE = "nobody can approve"


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
    ) -> None:
        self._backend = backend
        self._transcripts = transcripts
        self._ledger = ledger
        self._delivery = delivery
        self._access = access
        self._channel = channel
        self._bus = bus

    async def run(self, request: HeadlessRequest) -> AsyncIterator[Mapping[str, Any]]:
        """Run one turn; the last object has the type `result`.

        Raises:
            NotFound: No such agent or conversation.
        """
        conversation_id = await self._conversation(request)
        async with self._bus.follow(conversation_id) as events:
            key = new_id("run")
            yield {"type": "started", "conversation_id": conversation_id}
            await self._channel.say(conversation_id, _OWNER, request.text, key=key)
            turn: Turn | None = None
            while (heard := await events.get()) is not None:
                turn = heard[0]
                told = event_json(heard[1])
                if told is not None:
                    yield told
            yield await self._result(conversation_id, turn)

    async def _conversation(self, request: HeadlessRequest) -> ConversationId:
        """Return the conversation to use, bound to the headless address of its own name."""
        if request.conversation:
            conversation = await self._backend.get_conversation(ConversationId(request.conversation))
        else:
            agents = await self._transcripts.agents()
            found = [agent for agent in agents if request.agent in {"", agent.name}]
            if not found:
                raise NotFound("agent", request.agent)
            owner = await self._access.standing(_OWNER)
            words = frozenset({EVERYONE, f"person:{owner.person.id}"})
            conversation = await self._backend.create_conversation(found[0].id, Audience(words=words))
        address = self._channel.address(conversation.id)
        await self._delivery.bind(
            Binding(address=address, agent_id=conversation.agent_id, conversation_id=conversation.id)
        )
        return conversation.id

    async def _result(self, conversation_id: ConversationId, turn: Turn | None) -> Mapping[str, Any]:
        ended = await self._ledger.latest_turn(conversation_id)
        turn = ended or turn
        assert turn is not None, "a turn that ended is stored"  # noqa: S101 - a bug if it fails
        outcome = turn.outcome or TurnOutcome.ERROR
        result = TurnResult(outcome=outcome, text=await self._text(conversation_id), error=turn.error)
        exit_code = OUTCOMES[outcome].exit_code
        if exit_code == 0 and await self._lacked_approval(turn):
            exit_code = EXIT_NOBODY_CAN_APPROVE
        return {
            "type": "result",
            "outcome": outcome,
            "text": final_text(result),
            "exit_code": exit_code,
            "conversation_id": conversation_id,
            "turn_id": turn.id,
            "error": turn.error,
            "usage": plain(await self._transcripts.usage_since(turn.id)),
        }

    async def _text(self, conversation_id: ConversationId) -> str:
        """Return what the agent said since the last thing a person said."""
        texts: list[str] = []
        after = 0
        while page := await self._transcripts.messages(conversation_id, after_seq=after):
            after = page[-1].seq
            for message in page:
                if message.role is Role.USER and visible_text(message.parts):
                    texts.clear()
                elif message.role is Role.ASSISTANT:
                    texts.append(visible_text(message.parts))
        return "\n\n".join(text for text in texts if text.strip())

    async def _lacked_approval(self, turn: Turn) -> bool:
        """Whether a call was denied because nobody could be asked."""
        return any(
            record.state is CallState.DENIED
            and record.verdict is not None
            and record.verdict.action == "ask"
            and record.approval is None
            for record in await self._ledger.calls_of_turn(turn.id)
        )


_OWNER = Sender(identity=LOCAL_OWNER, name="owner")


def event_json(event: TurnEvent) -> Mapping[str, Any] | None:
    """Return a turn event as a line of `stream-json`; None for what says nothing outside."""
    match event:
        case RunEvent(run_id=run_id, seq=seq):
            body = _run_body(event)
            return None if body is None else {**body, "run_id": run_id, "seq": seq}
        case CallStarted(call=call):
            return {"type": "call_started", "call_id": call.id, "name": call.name}
        case CallFinished(result=result):
            return {"type": "call_finished", **plain(result)}
        case _:
            return None


def _run_body(event: RunEvent) -> Mapping[str, Any] | None:
    names = {
        TextDelta: "text_delta",
        ReasoningDelta: "reasoning_delta",
        CallRequested: "call_requested",
        RetryNotice: "retry",
        PromptRecompiled: "prompt_recompiled",
        UsageReported: "usage",
        RunFinished: "run_finished",
        MessageStored: "message",
    }
    name = names.get(type(event.body))
    return None if name is None else {"type": name, **plain(event.body)}
