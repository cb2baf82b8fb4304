"""Approvals: opened with their card, decided once by compare-and-set, expired or voided otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select, update

from core.contracts.errors import NotFound
from core.contracts.ids import ApprovalId, ConversationId, TurnId
from core.contracts.ledger import CallState, Decided
from core.contracts.permissions import Approval, ApprovalState, Decision, Grant
from core.stores.codec import decision_to_json
from core.stores.records import approval_from, approval_values
from core.stores.tables.ledger import APPROVAL_IS_OPEN, APPROVALS, GRANTS, TOOL_CALLS
from core.stores.text import dump

NOBODY_DECIDED = Decision(approve=False, by=None, by_name="")

_CLOSE_OPEN = update(APPROVALS).where(APPROVALS.c.turn_id == bindparam("of_turn"), APPROVAL_IS_OPEN)


def insert_approvals(connection: Connection, approvals: Sequence[Approval], card_id: str | None) -> None:
    """Store approvals; those without a card of their own get the one given."""
    rows = [approval_values(replace(approval, card_id=approval.card_id or card_id)) for approval in approvals]
    if rows:
        connection.execute(insert(APPROVALS), rows)


def get_approval(connection: Connection, approval_id: ApprovalId) -> Approval:
    """Return the approval, or raise `NotFound`."""
    row = connection.execute(select(APPROVALS).where(APPROVALS.c.id == approval_id)).one_or_none()
    if row is None:
        raise NotFound("approval", approval_id)
    return approval_from(row)


def select_approvals(connection: Connection, *conditions: ColumnElement[bool]) -> tuple[Approval, ...]:
    """Return the approvals that meet all conditions, oldest first."""
    statement = select(APPROVALS).where(*conditions).order_by(APPROVALS.c.created_at, APPROVALS.c.id)
    return tuple(approval_from(row) for row in connection.execute(statement))


def decide(
    connection: Connection,
    approval_id: ApprovalId,
    decision: Decision,
    state: ApprovalState,
    *,
    hash_shown: str,
    grant: Grant | None,
    now: datetime,
) -> Decided:
    """See `TurnLedger.decide`; a decision that comes after the deadline finds it expired."""
    statement = (
        update(APPROVALS)
        .where(
            APPROVALS.c.id == approval_id,
            APPROVAL_IS_OPEN,
            APPROVALS.c.hash == hash_shown,
            APPROVALS.c.expires_at > now,
        )
        .values(state=state.value, decision=dump(decision_to_json(decision)), decided_at=now)
        .returning(APPROVALS.c.id)
    )
    won = connection.execute(statement).one_or_none() is not None
    if not won:
        _expire(connection, APPROVALS.c.id == approval_id, now=now)
    approval = get_approval(connection, approval_id)
    if won and state is ApprovalState.APPROVED:
        _approve_call(connection, approval)
    if won and grant is not None:
        connection.execute(insert(GRANTS).values(_grant_values(grant, approval_id, now)))
    return Decided(won=won, approval=approval)


def expire(connection: Connection, conversation_id: ConversationId, now: datetime) -> tuple[Approval, ...]:
    """Expire what is past its deadline in a conversation and return it, oldest first."""
    expired = _expire(connection, APPROVALS.c.conversation_id == conversation_id, now=now)
    return select_approvals(connection, APPROVALS.c.id.in_(expired)) if expired else ()


def void(connection: Connection, turn_id: TurnId, now: datetime) -> None:
    """Close a turn's open approvals without a decision."""
    values = {"state": ApprovalState.VOID.value, "decided_at": now}
    connection.execute(_CLOSE_OPEN, {"of_turn": turn_id, **values})


def _expire(connection: Connection, *conditions: ColumnElement[bool], now: datetime) -> list[str]:
    statement = (
        update(APPROVALS)
        .where(*conditions, APPROVAL_IS_OPEN, APPROVALS.c.expires_at <= now)
        .values(state=ApprovalState.EXPIRED.value, decision=dump(decision_to_json(NOBODY_DECIDED)), decided_at=now)
        .returning(APPROVALS.c.id)
    )
    return list(connection.execute(statement).scalars())


def _approve_call(connection: Connection, approval: Approval) -> None:
    connection.execute(
        update(TOOL_CALLS)
        .where(
            TOOL_CALLS.c.conversation_id == approval.conversation_id,
            TOOL_CALLS.c.call_id == approval.call_id,
            TOOL_CALLS.c.state == CallState.WAITING.value,
        )
        .values(state=CallState.APPROVED.value)
    )


def _grant_values(grant: Grant, approval_id: ApprovalId, now: datetime) -> dict[str, object]:
    return {
        "approval_id": approval_id,
        "rule": grant.rule,
        "agent_id": grant.agent_id,
        "conversation_id": grant.conversation_id,
        "requester": grant.requester,
        "given_by": grant.given_by,
        "given_at": now,
    }
