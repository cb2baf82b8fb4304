"""Appending to transcripts and to the events of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from core.contracts.errors import InvalidInput
from core.contracts.events import MessageStored, RunEvent
from core.contracts.ids import ConversationId, RunId
from core.contracts.messages import Message, Role, ToolReturn
from core.contracts.store import NewMessage
from core.stores.codec import event_to_json, parts_from_json, parts_to_text, read_json
from core.stores.tables.agents import CONVERSATIONS
from core.stores.tables.ledger import TOOL_CALLS
from core.stores.tables.transcripts import MESSAGES, RUN_EVENTS
from core.stores.text import dump

_TAKE_SEQS = (
    update(CONVERSATIONS)
    .where(CONVERSATIONS.c.id == bindparam("of_conversation"))
    .values(next_seq=CONVERSATIONS.c.next_seq + bindparam("taken"))
    .returning(CONVERSATIONS.c.next_seq)
)
_INSERT_MESSAGES = insert(MESSAGES)
_MARK_ANSWERED = update(TOOL_CALLS).where(
    TOOL_CALLS.c.conversation_id == bindparam("of_conversation"), TOOL_CALLS.c.call_id == bindparam("of_call")
)
_LAST_EVENT = select(func.max(RUN_EVENTS.c.seq)).where(RUN_EVENTS.c.run_id == bindparam("of_run"))
_INSERT_EVENTS = insert(RUN_EVENTS)


def append_messages(
    connection: Connection,
    conversation_id: ConversationId,
    messages: Sequence[NewMessage],
    *,
    run_id: RunId | None,
    now: datetime,
) -> tuple[Message, ...]:
    """Append and return the messages as they can be read back; tool messages answer their calls."""
    if not messages:
        return ()
    first_seq = _take_seqs(connection, conversation_id, len(messages))
    rows = [
        _message_values(message, seq, conversation_id=conversation_id, run_id=run_id, now=now)
        for seq, message in enumerate(messages, start=first_seq)
    ]
    connection.execute(_INSERT_MESSAGES, rows)
    answered = [row["call_id"] for row in rows if row["call_id"] is not None]
    if answered:
        key = {"of_conversation": conversation_id, "answered_at": now}
        connection.execute(_MARK_ANSWERED, [{**key, "of_call": call_id} for call_id in answered])
    return tuple(
        Message(
            id=message.id,
            conversation_id=conversation_id,
            seq=row["seq"],
            role=message.role,
            parts=read_json(row["parts"], parts_from_json),
            created_at=now,
            run_id=run_id,
            cut=message.cut,
        )
        for message, row in zip(messages, rows, strict=True)
    )


def append_events(connection: Connection, run_id: RunId, events: Sequence[RunEvent], now: datetime) -> None:
    """Store events that continue the run's sequence without a gap.

    Raises:
        InvalidInput: They are of another run or do not continue its sequence.
    """
    if not events:
        return
    next_seq = (connection.execute(_LAST_EVENT, {"of_run": run_id}).scalar_one() or 0) + 1
    expected = [(run_id, next_seq + offset) for offset in range(len(events))]
    if [(event.run_id, event.seq) for event in events] != expected:
        raise InvalidInput(f"events of run {run_id!r} have to continue at {next_seq}")
    connection.execute(_INSERT_EVENTS, [_event_values(event, now) for event in events])


def _take_seqs(connection: Connection, conversation_id: ConversationId, count: int) -> int:
    after: int = connection.execute(_TAKE_SEQS, {"of_conversation": conversation_id, "taken": count}).scalar_one()
    return after - count


def _message_values(
    message: NewMessage, seq: int, *, conversation_id: ConversationId, run_id: RunId | None, now: datetime
) -> dict[str, Any]:
    return {
        "id": message.id,
        "conversation_id": conversation_id,
        "seq": seq,
        "role": message.role.value,
        "parts": parts_to_text(message.parts),
        "created_at": now,
        "run_id": run_id,
        "cut": message.cut,
        "call_id": _answered_call(message),
    }


def _answered_call(message: NewMessage) -> str | None:
    if message.role is not Role.TOOL:
        return None
    match message.parts:
        case (ToolReturn(call_id=call_id),):
            return call_id
        case _:
            raise InvalidInput(f"tool message {message.id!r} needs exactly one return")


def _event_values(event: RunEvent, now: datetime) -> dict[str, object]:
    message_id = event.body.message.id if isinstance(event.body, MessageStored) else None
    return {
        "run_id": event.run_id,
        "seq": event.seq,
        "body": dump(event_to_json(event.body)),
        "message_id": message_id,
        "stored_at": now,
    }
