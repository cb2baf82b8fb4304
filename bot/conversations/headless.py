"""Turns that nobody watches in a chat: `lodger run`. The same queue, worker and loop as any chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from bot.control.wire import plain
from bot.conversations.access import LOCAL_OWNER, AccessDesk
from bot.conversations.observer import Heard, TurnBus
from bot.conversations.transcript import answer_texts
from bot.conversations.worker import final_text
from bot.host_api import HeadlessRequest
from channels.feed import FeedChannel
from core.contracts.addresses import Sender
from core.contracts.agents import EVERYONE, Audience
from core.contracts.backend import Backend
from core.contracts.delivery import Binding, DeliveryStore
from core.contracts.errors import NotFound
from core.contracts.events import (
    ApprovalRequested,
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
from core.contracts.ids import ConversationId, TurnId, new_id
from core.contracts.ledger import CallState, TurnLedger
from core.contracts.runs import Turn, TurnOutcome
from core.contracts.secrets import Redactor, StreamMask
from core.contracts.store import TranscriptStore
from core.turns.observer import CallFinished, CallStarted, TurnEvent
from core.turns.outcomes import EXIT_NOBODY_CAN_APPROVE, OUTCOMES
from core.turns.services import TurnResult


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
        self._backend = backend
        self._transcripts = transcripts
        self._ledger = ledger
        self._delivery = delivery
        self._access = access
        self._channel = channel
        self._bus = bus
        self._mask = redactor.mask
        self._stream_mask = redactor.stream

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
            teller = _Teller(self._mask, self._stream_mask)
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

    async def _result(self, turn: Turn) -> Mapping[str, Any]:
        outcome = turn.outcome or TurnOutcome.ERROR
        texts = await answer_texts(self._backend, turn.conversation_id)
        said = self._mask("\n\n".join(text for text in texts if text.strip()))
        result = TurnResult(outcome=outcome, text=said, error=turn.error)
        exit_code = OUTCOMES[outcome].exit_code
        if exit_code == 0 and await self._lacked_approval(turn):
            exit_code = EXIT_NOBODY_CAN_APPROVE
        return {
            "type": "result",
            "outcome": outcome,
            "text": final_text(result),
            "exit_code": exit_code,
            "conversation_id": turn.conversation_id,
            "turn_id": turn.id,
            "error": turn.error,
            "usage": plain(await self._transcripts.usage_since(turn.id)),
        }

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


class _Teller:
    """Tells events without secrets, also where one is cut into two deltas.

    A delta is told with the event behind it: only then is it known whether its end may be shown.
    """

    def __init__(self, mask: Callable[[str], str], stream_mask: Callable[[], StreamMask]) -> None:
        self._mask = mask
        self._stream_mask = stream_mask
        self._text = stream_mask()
        self._held: dict[str, Any] | None = None

    def tell(self, event: TurnEvent) -> Iterator[Mapping[str, Any]]:
        """Yield the lines that an event completes."""
        told = event_json(event)
        if told is None:
            return
        is_delta = told["type"] == "text_delta"
        if self._held is not None:
            rest = "" if is_delta else self._text.finish()
            yield {**self._held, "text": self._held["text"] + rest}
            self._held = None
        if is_delta:
            self._held = {**told, "text": self._text.feed(told["text"])}
            return
        self._text = self._stream_mask()
        # The mask knows how secrets look inside JSON, and its replacement is plain text.
        yield json.loads(self._mask(json.dumps(told, ensure_ascii=False)))


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
        ApprovalRequested: "approval_requested",
        RetryNotice: "retry",
        PromptRecompiled: "prompt_recompiled",
        UsageReported: "usage",
        RunFinished: "run_finished",
        MessageStored: "message",
    }
    name = names.get(type(event.body))
    return None if name is None else {"type": name, **plain(event.body)}
