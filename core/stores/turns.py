"""How a turn begins, moves and ends, and what it hands to inbox and outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from core.contracts.addresses import OutboundItem
from core.contracts.delivery import InboxState, OutboxState
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId, PersonId, TurnId
from core.contracts.ledger import TurnEnd
from core.contracts.runs import Claim, Turn, TurnState
from core.stores import approvals, outbox
from core.stores.claims import raise_epoch, verify
from core.stores.records import turn_from, turn_values
from core.stores.tables.delivery import INBOX
from core.stores.tables.ledger import APPROVAL_IS_OPEN, APPROVALS, TURN_IS_OPEN, TURNS

_TAKEABLE = (InboxState.NEW.value, InboxState.QUEUED.value)

_TURN = select(TURNS).where(TURNS.c.id == bindparam("of_turn"))
_OPEN_TURN = select(TURNS).where(TURNS.c.conversation_id == bindparam("of_conversation"), TURN_IS_OPEN)
_INSERT_TURN = insert(TURNS)
_CHANGE_OPEN_TURN = (
    update(TURNS)
    .where(TURNS.c.id == bindparam("of_turn"), TURNS.c.conversation_id == bindparam("of_conversation"), TURN_IS_OPEN)
    .returning(TURNS.c.id)
)
_ADD_PROGRESS = _CHANGE_OPEN_TURN.values(
    steps=TURNS.c.steps + bindparam("added_steps"),
    active_seconds=TURNS.c.active_seconds + bindparam("added_seconds"),
)
_CHANGE_TURN_THAT_WAITS = _CHANGE_OPEN_TURN.where(
    select(APPROVALS.c.id).where(APPROVALS.c.turn_id == TURNS.c.id, APPROVAL_IS_OPEN).exists()
)
_NEWEST_TURN = (
    select(TURNS)
    .where(TURNS.c.conversation_id == bindparam("of_conversation"))
    .order_by(TURNS.c.started_at.desc(), TURNS.c.id.desc())
    .limit(1)
)
_TAKE_INBOX_ROWS = (
    update(INBOX)
    .where(INBOX.c.id.in_(bindparam("of_rows", expanding=True)), INBOX.c.state.in_(_TAKEABLE))
    .returning(INBOX.c.id)
)
_COMPLETE_TAKEN = update(INBOX).where(
    INBOX.c.turn_id == bindparam("of_turn"), INBOX.c.state == bindparam("was", InboxState.TAKEN.value)
)
_ANY_QUEUED = (
    select(INBOX.c.id)
    .where(INBOX.c.conversation_id == bindparam("of_conversation"), INBOX.c.state == InboxState.QUEUED.value)
    .limit(1)
)


def begin_turn(
    connection: Connection, turn: Turn, *, inbox_ids: Sequence[int], live: OutboundItem | None, now: datetime
) -> Claim:
    """See `TurnLedger.begin_turn`.

    Raises:
        InvalidInput: Another turn of the conversation is open, or an inbox row was taken or
            withdrawn meanwhile.
    """
    claim = raise_epoch(connection, turn.conversation_id, now)
    stored = turn if live is None else replace(turn, outbox_id=live.id)
    connection.execute(_INSERT_TURN, turn_values(stored))
    _take_inbox_rows(connection, turn.id, inbox_ids)
    if live is not None:
        outbox.insert_items(connection, (live,), OutboxState.LIVE, turn_id=turn.id, now=now)
    return claim


def get_turn(connection: Connection, turn_id: TurnId) -> Turn:
    """Return the turn, or raise `NotFound`."""
    row = connection.execute(_TURN, {"of_turn": turn_id}).one_or_none()
    if row is None:
        raise NotFound("turn", turn_id)
    return turn_from(row)


def open_turn(connection: Connection, conversation_id: ConversationId) -> Turn | None:
    """Return the conversation's open turn; the schema allows one."""
    row = connection.execute(_OPEN_TURN, {"of_conversation": conversation_id}).one_or_none()
    return None if row is None else turn_from(row)


def newest_turn(connection: Connection, conversation_id: ConversationId) -> Turn | None:
    """Return the turn of the conversation that started last."""
    row = connection.execute(_NEWEST_TURN, {"of_conversation": conversation_id}).one_or_none()
    return None if row is None else turn_from(row)


def add_progress(connection: Connection, claim: Claim, turn_id: TurnId, *, steps: int, active_seconds: float) -> None:
    """See `TurnLedger.add_progress`."""
    verify(connection, claim)
    added = {"added_steps": steps, "added_seconds": active_seconds}
    if not _changed(connection, _ADD_PROGRESS, claim, turn_id, added):
        raise NotFound("open turn", turn_id)


def park_turn(connection: Connection, claim: Claim, turn_id: TurnId) -> bool:
    """See `TurnLedger.park_turn`."""
    verify(connection, claim)
    return _changed(connection, _CHANGE_TURN_THAT_WAITS, claim, turn_id, {"state": TurnState.PARKED.value})


def steer_turn(connection: Connection, claim: Claim, turn_id: TurnId, inbox_ids: Sequence[int], step: int) -> None:
    """See `TurnLedger.steer_turn`."""
    verify(connection, claim)
    _take_inbox_rows(connection, turn_id, inbox_ids, step)


def resume_turn(connection: Connection, claim: Claim, turn_id: TurnId) -> None:
    """See `TurnLedger.resume_turn`."""
    verify(connection, claim)
    if not _changed(connection, _CHANGE_OPEN_TURN, claim, turn_id, {"state": TurnState.RUNNING.value}):
        raise NotFound("open turn", turn_id)


def finish_turn(connection: Connection, claim: Claim, turn_id: TurnId, end: TurnEnd, now: datetime) -> frozenset[str]:
    """See `TurnLedger.finish_turn`; return the chats to ring. Finishing twice changes nothing."""
    verify(connection, claim)
    if get_turn(connection, turn_id).state is TurnState.FINISHED:
        return frozenset()
    finished = {"state": TurnState.FINISHED.value, "finished_at": now}
    values = {**finished, "outcome": end.outcome.value, "error": end.error}
    if not _changed(connection, _CHANGE_OPEN_TURN, claim, turn_id, values):
        raise InvalidInput(f"turn {turn_id!r} is not of conversation {claim.conversation_id!r}")
    approvals.void(connection, turn_id, now)
    connection.execute(_COMPLETE_TAKEN, {"of_turn": turn_id, "state": InboxState.DONE.value})
    settle = outbox.settle_turn if end.replace_live else outbox.settle_turn_late
    return settle(connection, turn_id, end.outgoing, now)


def request_cancel(
    connection: Connection, conversation_id: ConversationId, by: PersonId | None, now: datetime
) -> Turn | None:
    """Mark the open turn as to be stopped; the first who asked is kept."""
    turn = open_turn(connection, conversation_id)
    if turn is not None:
        connection.execute(
            update(TURNS)
            .where(TURNS.c.id == turn.id, TURNS.c.cancel_requested_at.is_(None))
            .values(cancel_requested_at=now, cancel_requested_by=by)
        )
    return turn


def has_queued(connection: Connection, conversation_id: ConversationId) -> bool:
    """Return whether messages wait for the conversation's next turn."""
    return connection.execute(_ANY_QUEUED, {"of_conversation": conversation_id}).one_or_none() is not None


def _changed(
    connection: Connection, statement: ReturningUpdate[Any], claim: Claim, turn_id: TurnId, values: Mapping[str, Any]
) -> bool:
    key = {"of_turn": turn_id, "of_conversation": claim.conversation_id}
    return connection.execute(statement, {**key, **values}).one_or_none() is not None


def _take_inbox_rows(connection: Connection, turn_id: TurnId, inbox_ids: Sequence[int], step: int = 0) -> None:
    wanted = frozenset(inbox_ids)
    if not wanted:
        return
    values = {"of_rows": sorted(wanted), "state": InboxState.TAKEN.value, "turn_id": turn_id, "step": step}
    taken = frozenset(connection.execute(_TAKE_INBOX_ROWS, values).scalars())
    if taken != wanted:
        raise InvalidInput(f"inbox rows {sorted(wanted - taken)} do not wait any more")
