"""Everything that is stored about one turn, in order and without secrets: for whoever asks what happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.control.wire import plain
from core.contracts.delivery import DeliveryStore, InboxRow, OutboxRow
from core.contracts.events import MessageStored, RunEvent, RunFinished, TextDelta
from core.contracts.ids import RunId, TurnId
from core.contracts.ledger import CallRecord, TurnLedger
from core.contracts.store import TranscriptStore

_PAGE = 500
_LINE_CHARS = 2_000
"""A longer text is cut in the lines that people read; the JSON has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracer:
    """Reads a turn back from the stores."""

    transcripts: TranscriptStore
    ledger: TurnLedger
    delivery: DeliveryStore
    mask: Callable[[str], str]

    async def trace(self, turn_id: TurnId) -> Mapping[str, Any]:
        """Return the turn with its messages, runs, calls, approvals and what it sent, as JSON values.

        Events of a run that is older than the retention allows are its stored messages alone.

        Raises:
            NotFound: No such turn.
        """
        turn = await self.ledger.turn(turn_id)
        runs = await self.transcripts.runs_of_turn(turn_id)
        found = {
            "turn": plain(turn),
            "inbox": [_inbox(row) for row in await self.delivery.taken(turn_id)],
            "runs": [{**plain(run), "events": [_event(event) for event in await self._events(run.id)]} for run in runs],
            "calls": [_call(record) for record in await self.ledger.calls_of_turn(turn_id)],
            "approvals": plain(await self.ledger.approvals_of(turn_id)),
            "outbox": [_outbox(row) for row in await self.delivery.outbox_of_turn(turn_id)],
            "usage": plain(await self.transcripts.usage_since(turn_id)),
        }
        # The mask knows how secrets look inside JSON, and its replacement is plain text.
        masked: Mapping[str, Any] = json.loads(self.mask(json.dumps(found, ensure_ascii=False)))
        return masked

    async def _events(self, run_id: RunId) -> Sequence[RunEvent]:
        events: list[RunEvent] = []
        while page := await self.transcripts.events(run_id, after=events[-1].seq if events else 0, limit=_PAGE):
            events += page
        return events


def trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yield a trace as lines for a person, one a fact; a text of many lines stays one line."""
    turn = trace["turn"]
    yield f"turn {turn['id']}  {turn['state']}  {turn['outcome'] or ''}".rstrip()
    asker = turn["requester"] or "nobody"
    yield f"  conversation {turn['conversation_id']}, agent {turn['agent_id']}, asked by {asker}"
    yield f"  began {turn['started_at']}, {turn['steps']} steps, {turn['active_seconds']:.2f} s of work"
    if turn["error"]:
        yield f"  error: {_short(turn['error'])}"
    for row in trace["inbox"]:
        entered = "opened it" if row["step"] == 0 else f"entered with step {row['step']}"
        yield f"in   {row['received_at']}  {row['sender']}: {_short(row['body'])}  ({entered})"
    for run in trace["runs"]:
        yield from _run_lines(run)
    for call in trace["calls"]:
        yield from _call_lines(call, trace["approvals"])
    for row in trace["outbox"]:
        said = _short(row["content"])
        yield f"out  {row['sent_at'] or row['created_at']}  {row['state']}  {row['address']}  {row['id']}: {said}"
        if row["error"]:
            yield f"     error: {_short(row['error'])}"
    usage = trace["usage"]
    yield (
        f"usage {usage['input_tokens']} tokens in, {usage['cached_tokens']} of them cached,"
        f" {usage['output_tokens']} out"
    )


def _run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    yield f"run  {run['started_at']}  {run['id']}  request {run['request_id']}  {run['stop_reason'] or run['status']}"
    if run["error"]:
        yield f"     error: {_short(run['error'])}"
    deltas = 0
    for event in run["events"]:
        if event["type"] == "text_delta":
            deltas += 1
            continue
        yield f"     {event['seq']:>4}  {event['type']}  {_short({k: v for k, v in event.items() if k not in _KNOWN})}"
    if deltas:
        yield f"           and {deltas} pieces of text"


def _call_lines(call: Mapping[str, Any], approvals: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"call {call['id']}  {call['name']}  {call['state']}  {_short(call['arguments'])}"
    if call["verdict"]:
        verdict = call["verdict"]
        yield f"     {verdict['action']} by {verdict['rule'] or 'no rule'}: {verdict['reason']}"
    for approval in approvals:
        if approval["call_id"] == call["id"]:
            decision = approval["decision"] or {}
            by = f" by {decision['by_name']}" if decision.get("by_name") else ""
            changed = f", changed to {_short(decision['edited'])}" if decision.get("edited") is not None else ""
            yield f"     approval {approval['id']}  {approval['state']}{by}{changed}"
    if call["result"]:
        yield f"     {call['result']['outcome']}: {_short(call['result']['parts'])}"


_KNOWN = frozenset({"type", "seq"})


def _short(value: object) -> str:
    """Return a value on one line of bounded length."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}… ({len(line) - _LINE_CHARS} more)"


def _event(event: RunEvent) -> Mapping[str, Any]:
    match event.body:
        case TextDelta(text=text):
            return {"type": "text_delta", "seq": event.seq, "text": text}
        case MessageStored(message=message):
            return {"type": "message", "seq": event.seq, "role": message.role, "parts": plain(message.parts)}
        case RunFinished(stop_reason=reason, error=error):
            return {"type": "run_finished", "seq": event.seq, "stop_reason": reason, "error": error}
        case body:
            return {"type": _snake(type(body).__name__), "seq": event.seq, **plain(body)}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _inbox(row: InboxRow) -> Mapping[str, Any]:
    return {
        "id": row.id,
        "received_at": row.received_at.isoformat(),
        "sender": row.event.sender.name,
        "key": row.event.key,
        "step": row.step,
        "body": plain(row.event.body),
    }


def _call(record: CallRecord) -> Mapping[str, Any]:
    return {
        "id": record.call.id,
        "name": record.call.name,
        "arguments": record.call.arguments,
        "run_id": record.run_id,
        "state": record.state,
        "verdict": plain(record.verdict),
        "result": plain(record.result),
    }


def _outbox(row: OutboxRow) -> Mapping[str, Any]:
    return {
        "id": row.item.id,
        "address": row.item.address.key,
        "state": row.state,
        "external_id": row.item.external_id,
        "attempts": row.item.attempts,
        "created_at": row.created_at.isoformat(),
        "sent_at": None if row.sent_at is None else row.sent_at.isoformat(),
        "content": plain(row.item.content),
        "error": row.error,
    }
