"""Reading the ledger's tool calls together with their newest approvals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, select

from core.contracts.ids import ConversationId, RunId, TurnId
from core.contracts.ledger import CallRecord
from core.contracts.messages import Role, ToolCall, ToolReturn
from core.contracts.permissions import Approval, ApprovalState
from core.stores.records import AnyRow, approval_from, call_from
from core.stores.tables.ledger import APPROVALS, TOOL_CALLS
from core.stores.tables.transcripts import MESSAGES


def calls_of_run(connection: Connection, run_id: RunId) -> tuple[CallRecord, ...]:
    """Return all calls of a run in the model's order."""
    statement = select(TOOL_CALLS).where(TOOL_CALLS.c.run_id == run_id).order_by(TOOL_CALLS.c.position)
    return _records(connection, connection.execute(statement).all())


def calls_of_turn(connection: Connection, turn_id: TurnId) -> tuple[CallRecord, ...]:
    """Return the calls that a turn judged, oldest step first, in the model's order."""
    statement = _in_order_of_transcript(select(TOOL_CALLS)).where(TOOL_CALLS.c.turn_id == turn_id)
    return _records(connection, connection.execute(statement).all())


def unanswered_calls(connection: Connection, conversation_id: ConversationId) -> tuple[CallRecord, ...]:
    """Return the calls of the last assistant message without a tool message, in the model's order."""
    last_run = (
        select(MESSAGES.c.run_id)
        .where(MESSAGES.c.conversation_id == conversation_id, MESSAGES.c.role == Role.ASSISTANT.value)
        .order_by(MESSAGES.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    statement = (
        select(TOOL_CALLS)
        .where(
            TOOL_CALLS.c.conversation_id == conversation_id,
            TOOL_CALLS.c.answered_at.is_(None),
            TOOL_CALLS.c.run_id == last_run,
        )
        .order_by(TOOL_CALLS.c.position)
    )
    return _records(connection, connection.execute(statement).all())


def parked_calls(connection: Connection, conversation_id: ConversationId) -> tuple[ToolCall, ...]:
    """Return unanswered calls whose approval is open."""
    return tuple(
        record.call
        for record in unanswered_calls(connection, conversation_id)
        if record.approval is not None and record.approval.state is ApprovalState.OPEN
    )


def known_returns(connection: Connection, conversation_id: ConversationId) -> tuple[ToolReturn, ...]:
    """Return results of calls without a tool message, oldest step first, in the model's order."""
    statement = _in_order_of_transcript(select(TOOL_CALLS)).where(
        TOOL_CALLS.c.conversation_id == conversation_id,
        TOOL_CALLS.c.answered_at.is_(None),
        TOOL_CALLS.c.result.is_not(None),
    )
    records = (call_from(row, None) for row in connection.execute(statement))
    return tuple(record.result for record in records if record.result is not None)


def _in_order_of_transcript(statement: Select[Any]) -> Select[Any]:
    step = (MESSAGES.c.run_id == TOOL_CALLS.c.run_id) & (MESSAGES.c.role == Role.ASSISTANT.value)
    return statement.join(MESSAGES, step).order_by(MESSAGES.c.seq, TOOL_CALLS.c.position)


def _records(connection: Connection, rows: Sequence[AnyRow]) -> tuple[CallRecord, ...]:
    if not rows:
        return ()
    conversation_id = rows[0].conversation_id
    approvals = _newest_approvals(connection, conversation_id, [row.call_id for row in rows])
    return tuple(call_from(row, approvals.get(row.call_id)) for row in rows)


def _newest_approvals(connection: Connection, conversation_id: str, call_ids: Iterable[str]) -> dict[str, Approval]:
    statement = (
        select(APPROVALS)
        .where(APPROVALS.c.conversation_id == conversation_id, APPROVALS.c.call_id.in_(call_ids))
        .order_by(APPROVALS.c.created_at, APPROVALS.c.id)
    )
    return {row.call_id: approval_from(row) for row in connection.execute(statement)}
