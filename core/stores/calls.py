"""Reading the ledger's tool calls together with their newest approvals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, select

from core.contracts.ids import ConversationId, RunId, TurnId
from core.contracts.ledger import CallRecord
from core.contracts.messages import Role, ToolCall, ToolReturn
from core.contracts.permissions import Approval, ApprovalState
from core.stores.records import AnyRow, approval_from, call_from
from core.stores.tables.ledger import APPROVALS, TOOL_CALLS
from core.stores.tables.transcripts import MESSAGES

_UNANSWERED = (TOOL_CALLS.c.conversation_id == bindparam("of_conversation"), TOOL_CALLS.c.answered_at.is_(None))
_IN_ORDER_OF_TRANSCRIPT = (
    select(TOOL_CALLS)
    .join(MESSAGES, (MESSAGES.c.run_id == TOOL_CALLS.c.run_id) & (MESSAGES.c.role == Role.ASSISTANT.value))
    .order_by(MESSAGES.c.seq, TOOL_CALLS.c.position)
)
_LAST_RUN = (
    select(MESSAGES.c.run_id)
    .where(MESSAGES.c.conversation_id == bindparam("of_conversation"), MESSAGES.c.role == Role.ASSISTANT.value)
    .order_by(MESSAGES.c.seq.desc())
    .limit(1)
    .scalar_subquery()
)
_CALLS_OF_RUN = select(TOOL_CALLS).where(TOOL_CALLS.c.run_id == bindparam("of_run")).order_by(TOOL_CALLS.c.position)
_CALLS_OF_TURN = _IN_ORDER_OF_TRANSCRIPT.where(TOOL_CALLS.c.turn_id == bindparam("of_turn"))
_UNANSWERED_CALLS = (
    select(TOOL_CALLS).where(*_UNANSWERED, TOOL_CALLS.c.run_id == _LAST_RUN).order_by(TOOL_CALLS.c.position)
)
_KNOWN_RETURNS = _IN_ORDER_OF_TRANSCRIPT.where(*_UNANSWERED, TOOL_CALLS.c.result.is_not(None))
_APPROVALS_OF_CALLS = (
    select(APPROVALS)
    .where(
        APPROVALS.c.conversation_id == bindparam("of_conversation"),
        APPROVALS.c.call_id.in_(bindparam("of_calls", expanding=True)),
    )
    .order_by(APPROVALS.c.created_at, APPROVALS.c.id)
)


def calls_of_run(connection: Connection, run_id: RunId) -> tuple[CallRecord, ...]:
    """Return all calls of a run in the model's order."""
    return _records(connection, connection.execute(_CALLS_OF_RUN, {"of_run": run_id}).all())


def calls_of_turn(connection: Connection, turn_id: TurnId) -> tuple[CallRecord, ...]:
    """Return the calls that a turn judged, oldest step first, in the model's order."""
    return _records(connection, connection.execute(_CALLS_OF_TURN, {"of_turn": turn_id}).all())


def unanswered_calls(connection: Connection, conversation_id: ConversationId) -> tuple[CallRecord, ...]:
    """Return the calls of the last assistant message without a tool message, in the model's order."""
    key = {"of_conversation": conversation_id}
    return _records(connection, connection.execute(_UNANSWERED_CALLS, key).all())


def parked_calls(connection: Connection, conversation_id: ConversationId) -> tuple[ToolCall, ...]:
    """Return unanswered calls whose approval is open."""
    return tuple(
        record.call
        for record in unanswered_calls(connection, conversation_id)
        if record.approval is not None and record.approval.state is ApprovalState.OPEN
    )


def known_returns(connection: Connection, conversation_id: ConversationId) -> tuple[ToolReturn, ...]:
    """Return results of calls without a tool message, oldest step first, in the model's order."""
    rows = connection.execute(_KNOWN_RETURNS, {"of_conversation": conversation_id})
    records = (call_from(row, None) for row in rows)
    return tuple(record.result for record in records if record.result is not None)


def _records(connection: Connection, rows: Sequence[AnyRow]) -> tuple[CallRecord, ...]:
    if not rows:
        return ()
    conversation_id = rows[0].conversation_id
    approvals = _newest_approvals(connection, conversation_id, [row.call_id for row in rows])
    return tuple(call_from(row, approvals.get(row.call_id)) for row in rows)


def _newest_approvals(connection: Connection, conversation_id: str, call_ids: Iterable[str]) -> dict[str, Approval]:
    key = {"of_conversation": conversation_id, "of_calls": list(call_ids)}
    return {row.call_id: approval_from(row) for row in connection.execute(_APPROVALS_OF_CALLS, key)}
