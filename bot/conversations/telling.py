"""Turn events as JSON objects that may leave the host: one an event, complete, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.control.wire import plain
from bot.conversations.sessions.protocol import OutputType
from bot.conversations.turn_ending import final_text
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
from core.contracts.messages import (
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    ReminderPart,
    Role,
    TextPart,
    ToolCall,
    ToolReturn,
    visible_text,
)
from core.contracts.runs import Turn, TurnOutcome
from core.contracts.secrets import Redactor
from core.contracts.store import TranscriptStore
from core.turns.observer import CallFinished, CallStarted, TurnEvent
from core.turns.outcomes import OUTCOMES
from core.turns.services import TurnResult

_BODIES = {
    TextDelta: OutputType.TEXT_DELTA,
    ReasoningDelta: OutputType.REASONING_DELTA,
    CallRequested: OutputType.CALL_REQUESTED,
    ApprovalRequested: OutputType.APPROVAL_REQUESTED,
    RetryNotice: OutputType.RETRY,
    PromptRecompiled: OutputType.PROMPT_RECOMPILED,
    UsageReported: OutputType.USAGE,
    RunFinished: OutputType.RUN_FINISHED,
}


_PARTS: Mapping[type[Part], str] = {
    TextPart: "text",
    ReasoningPart: "reasoning",
    ImagePart: "image",
    ReminderPart: "reminder",
    ToolCall: "tool_call",
    ToolReturn: "tool_return",
}


class Teller:
    """Tells one object an event, without secrets, also where one is cut into two deltas.

    A delta is told with the event behind it: only then is it known whether its end may be shown.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = redactor.stream()
        self._held: dict[str, Any] | None = None

    def tell(self, event: TurnEvent) -> Iterator[Mapping[str, Any]]:
        """Yield the objects that an event completes."""
        told = event_json(event)
        if told is None:
            return
        is_delta = told["type"] == OutputType.TEXT_DELTA
        if self._held is not None:
            rest = "" if is_delta else self._text.finish()
            yield {**self._held, "text": self._held["text"] + rest}
            self._held = None
        if is_delta:
            self._held = {**told, "text": self._text.feed(told["text"])}
            return
        self._text = self._redactor.stream()
        yield masked(told, self._redactor)


class LiveTeller:
    """Tells every piece of text at once, but for an end that may begin a secret.

    That follows with the next piece, or behind the last one as a piece with the number of the event
    that ended the text. The same events give the same pieces.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = redactor.stream()
        self._delta: dict[str, Any] = {}

    def tell(self, event: TurnEvent) -> Iterator[Mapping[str, Any]]:
        """Yield what an event lets be told."""
        told = event_json(event)
        if told is None:
            return
        if told["type"] == OutputType.TEXT_DELTA:
            self._delta = {**told, "text": self._text.feed(told["text"])}
            if self._delta["text"]:
                yield self._delta
            return
        rest, self._text = self._text.finish(), self._redactor.stream()
        if rest:
            yield {**self._delta, "text": rest, "seq": told.get("seq", self._delta["seq"])}
        yield masked(told, self._redactor)


def masked(told: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Return an object with no secret value in any text of it."""
    # The mask knows how secrets look inside JSON, and its replacement is plain text.
    clean: dict[str, Any] = json.loads(redactor.mask(json.dumps(told, ensure_ascii=False)))
    return clean


def event_json(event: TurnEvent) -> Mapping[str, Any] | None:
    """Return a turn event as an object; None for what says nothing outside."""
    match event:
        case RunEvent(run_id=run_id, seq=seq, body=MessageStored(message=message)):
            return {"type": OutputType.MESSAGE, "message": message_json(message), "run_id": run_id, "seq": seq}
        case RunEvent(run_id=run_id, seq=seq, body=body):
            name = _BODIES.get(type(body))
            return None if name is None else {"type": name, **plain(body), "run_id": run_id, "seq": seq}
        case CallStarted(call=call):
            return {"type": OutputType.CALL_STARTED, "call_id": call.id, "name": call.name}
        case CallFinished(result=result):
            return {**_part_json(result), "type": OutputType.CALL_FINISHED}
        case _:
            return None


def message_json(message: Message) -> dict[str, Any]:
    """Return a message as an object whose parts say what they are."""
    return {**plain(message), "parts": [_part_json(part) for part in message.parts]}


def _part_json(part: Part) -> dict[str, Any]:
    told = {"type": _PARTS[type(part)], **plain(part)}
    return {**told, "parts": [_part_json(inner) for inner in part.parts]} if isinstance(part, ToolReturn) else told


async def turn_messages(transcripts: TranscriptStore, turn: Turn, *, after_seq: int = 0) -> list[Message]:
    """Return the messages of a turn that stand behind `after_seq`: those of its runs, and the results behind them."""
    runs = {run.id for run in await transcripts.runs_of_turn(turn.id)}
    found: list[Message] = []
    while page := await transcripts.messages(turn.conversation_id, after_seq=after_seq):
        after_seq = page[-1].seq
        for message in page:
            if message.run_id in runs or (found and message.run_id is None):
                found.append(message)
            elif found:
                return found
    return found


def turn_result(turn: Turn, messages: Sequence[Message], redactor: Redactor) -> dict[str, Any]:
    """Return how an ended turn ended, without its usage."""
    outcome = turn.outcome or TurnOutcome.ERROR
    texts = [visible_text(message.parts) for message in messages if message.role is Role.ASSISTANT]
    said = redactor.mask("\n\n".join(text for text in texts if text.strip()))
    return {
        "type": OutputType.RESULT,
        "outcome": outcome,
        "text": final_text(TurnResult(outcome=outcome, text=said, error=turn.error)),
        "exit_code": OUTCOMES[outcome].exit_code,
        "conversation_id": turn.conversation_id,
        "turn_id": turn.id,
        "error": turn.error,
    }
