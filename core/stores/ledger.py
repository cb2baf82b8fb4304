"""The ledger of turns and tool calls in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from core.contracts.addresses import OutboundItem
from core.contracts.clock import Clock
from core.contracts.delivery import OutboxState
from core.contracts.errors import InvalidInput
from core.contracts.ids import AgentId, ApprovalId, CallId, ConversationId, PersonId, RunId, TurnId
from core.contracts.ledger import CallRecord, CallState, Decided, TurnEnd, TurnLedger
from core.contracts.messages import ToolReturn
from core.contracts.permissions import Action, Approval, ApprovalState, Decision, Grant, Verdict
from core.contracts.runs import Claim, Turn
from core.stores import approvals as approval_rows
from core.stores import calls, turns
from core.stores.claims import verify
from core.stores.codec import return_to_json, verdict_to_json
from core.stores.connection import Database, SqlTransaction
from core.stores.doorbells import Doorbells
from core.stores.outbox import insert_items
from core.stores.records import grant_from
from core.stores.tables.ledger import APPROVAL_IS_OPEN, APPROVALS, GRANTS, TOOL_CALLS, TURNS
from core.stores.text import dump

_ENDED = frozenset({CallState.DONE, CallState.DENIED, CallState.UNKNOWN})
_WAITS = TOOL_CALLS.c.state == CallState.WAITING.value
_HAS_NO_RESULT = TOOL_CALLS.c.result.is_(None)
_CANCEL_REQUESTED = select(TURNS.c.id).where(
    TURNS.c.id == bindparam("of_turn"), TURNS.c.cancel_requested_at.is_not(None)
)
_GRANTS = (
    select(GRANTS)
    .where(
        GRANTS.c.agent_id == bindparam("of_agent"),
        GRANTS.c.conversation_id.is_(None) | (GRANTS.c.conversation_id == bindparam("of_conversation")),
    )
    .order_by(GRANTS.c.given_at, GRANTS.c.approval_id)
)


class SqlLedger:
    """The turn ledger; every method is one transaction."""

    def __init__(self, database: Database, doorbells: Doorbells, clock: Clock) -> None:
        self._database = database
        self._doorbells = doorbells
        self._clock = clock

    async def begin_turn(self, turn: Turn, *, inbox_ids: Sequence[int], live: OutboundItem | None) -> Claim:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> Claim:
            return turns.begin_turn(tx.connection, turn, inbox_ids=inbox_ids, live=live, now=now)

        return await self._database.write(operation)

    async def open_turn(self, conversation_id: ConversationId) -> Turn | None:
        return await self._database.read(lambda connection: turns.open_turn(connection, conversation_id))

    async def turn(self, turn_id: TurnId) -> Turn:
        return await self._database.read(lambda connection: turns.get_turn(connection, turn_id))

    async def latest_turn(self, conversation_id: ConversationId) -> Turn | None:
        return await self._database.read(lambda connection: turns.newest_turn(connection, conversation_id))

    async def add_progress(self, claim: Claim, turn_id: TurnId, *, steps: int, active_seconds: float) -> None:
        def operation(tx: SqlTransaction) -> None:
            turns.add_progress(tx.connection, claim, turn_id, steps=steps, active_seconds=active_seconds)

        await self._database.write(operation)

    async def park_turn(self, claim: Claim, turn_id: TurnId) -> bool:
        return await self._database.write(lambda tx: turns.park_turn(tx.connection, claim, turn_id))

    async def steer_turn(self, claim: Claim, turn_id: TurnId, inbox_ids: Sequence[int], *, step: int) -> None:
        await self._database.write(lambda tx: turns.steer_turn(tx.connection, claim, turn_id, inbox_ids, step))

    async def resume_turn(self, claim: Claim, turn_id: TurnId) -> None:
        await self._database.write(lambda tx: turns.resume_turn(tx.connection, claim, turn_id))

    async def finish_turn(self, claim: Claim, turn_id: TurnId, end: TurnEnd) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            for chat in sorted(turns.finish_turn(tx.connection, claim, turn_id, end, now)):
                self._doorbells.ring_chat(tx, chat)
            if turns.has_queued(tx.connection, claim.conversation_id):
                self._doorbells.ring_conversation(tx, claim.conversation_id)

        await self._database.write(operation)

    async def request_cancel(self, conversation_id: ConversationId, *, by: PersonId | None) -> Turn | None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> Turn | None:
            turn = turns.request_cancel(tx.connection, conversation_id, by, now)
            if turn is not None:
                self._doorbells.ring_conversation(tx, conversation_id)
            return turn

        return await self._database.write(operation)

    async def cancel_requested(self, turn_id: TurnId) -> bool:
        def operation(connection: Connection) -> bool:
            return connection.execute(_CANCEL_REQUESTED, {"of_turn": turn_id}).one_or_none() is not None

        return await self._database.read(operation)

    async def calls(self, run_id: RunId) -> tuple[CallRecord, ...]:
        return await self._database.read(lambda connection: calls.calls_of_run(connection, run_id))

    async def calls_of_turn(self, turn_id: TurnId) -> tuple[CallRecord, ...]:
        return await self._database.read(lambda connection: calls.calls_of_turn(connection, turn_id))

    async def unanswered_calls(self, conversation_id: ConversationId) -> tuple[CallRecord, ...]:
        return await self._database.read(lambda connection: calls.unanswered_calls(connection, conversation_id))

    async def record_verdicts(
        self, claim: Claim, turn_id: TurnId, verdicts: Sequence[tuple[CallId, Verdict, ToolReturn | None]]
    ) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            verify(tx.connection, claim)
            for call_id, verdict, refusal in verdicts:
                values = {"turn_id": turn_id, **_verdict_values(verdict, refusal, now)}
                _change_call(tx.connection, claim, call_id, _WAITS, values)

        await self._database.write(operation)

    async def open_approvals(self, claim: Claim, approvals: Sequence[Approval], card: OutboundItem | None) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            verify(tx.connection, claim)
            approval_rows.insert_approvals(tx.connection, approvals, None if card is None else card.id)
            if card is not None and approvals:
                turn_id = approvals[0].turn_id
                for chat in insert_items(tx.connection, (card,), OutboxState.PENDING, turn_id=turn_id, now=now):
                    self._doorbells.ring_chat(tx, chat)
            for expires_at in sorted({approval.expires_at for approval in approvals}):
                self._doorbells.ring_conversation(tx, claim.conversation_id, expires_at)

        await self._database.write(operation)

    async def start_call(self, claim: Claim, call_id: CallId) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            verify(tx.connection, claim)
            statement = (
                update(TOOL_CALLS)
                .where(
                    TOOL_CALLS.c.conversation_id == claim.conversation_id,
                    TOOL_CALLS.c.call_id == call_id,
                    TOOL_CALLS.c.state == CallState.APPROVED.value,
                )
                .values(state=CallState.STARTED.value, started_at=now)
                .returning(TOOL_CALLS.c.call_id)
            )
            if tx.connection.execute(statement).one_or_none() is None:
                raise InvalidInput(f"call {call_id!r} is not approved")

        await self._database.write(operation)

    async def finish_call(self, claim: Claim, result: ToolReturn, state: CallState) -> None:
        if state not in _ENDED:
            raise InvalidInput(f"a call with a result is not {state.value!r}")
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            verify(tx.connection, claim)
            values = {"state": state.value, "result": dump(return_to_json(result)), "finished_at": now}
            _change_call(tx.connection, claim, result.call_id, _HAS_NO_RESULT, values)

        await self._database.write(operation)

    async def approval(self, approval_id: ApprovalId) -> Approval:
        return await self._database.read(lambda connection: approval_rows.get_approval(connection, approval_id))

    async def approvals_of(self, turn_id: TurnId) -> tuple[Approval, ...]:
        of_turn = APPROVALS.c.turn_id == turn_id
        return await self._database.read(lambda connection: approval_rows.select_approvals(connection, of_turn))

    async def open_approvals_of(self, agent_id: AgentId | None = None) -> tuple[Approval, ...]:
        conditions = [APPROVAL_IS_OPEN]
        if agent_id is not None:
            conditions.append(APPROVALS.c.agent_id == agent_id)
        return await self._database.read(lambda connection: approval_rows.select_approvals(connection, *conditions))

    async def decide(
        self, approval_id: ApprovalId, decision: Decision, state: ApprovalState, *, hash_shown: str, grant: Grant | None
    ) -> Decided:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> Decided:
            decided = approval_rows.decide(
                tx.connection, approval_id, decision, state, hash_shown=hash_shown, grant=grant, now=now
            )
            if decided.won or decided.approval.state is ApprovalState.EXPIRED:
                self._doorbells.ring_conversation(tx, decided.approval.conversation_id)
            return decided

        return await self._database.write(operation)

    async def expire_approvals(self, conversation_id: ConversationId, now: datetime) -> tuple[Approval, ...]:
        return await self._database.write(lambda tx: approval_rows.expire(tx.connection, conversation_id, now))

    async def grants(self, agent_id: AgentId, conversation_id: ConversationId) -> tuple[Grant, ...]:
        key = {"of_agent": agent_id, "of_conversation": conversation_id}

        def operation(connection: Connection) -> tuple[Grant, ...]:
            return tuple(grant_from(row) for row in connection.execute(_GRANTS, key))

        return await self._database.read(operation)


def _verdict_values(verdict: Verdict, refusal: ToolReturn | None, now: datetime) -> dict[str, object]:
    values: dict[str, object] = {"verdict": dump(verdict_to_json(verdict))}
    if refusal is not None:
        values |= {"state": CallState.DENIED.value, "result": dump(return_to_json(refusal)), "finished_at": now}
    elif verdict.action is Action.ALLOW:
        values["state"] = CallState.APPROVED.value
    return values


def _change_call(
    connection: Connection, claim: Claim, call_id: CallId, condition: ColumnElement[bool], values: Mapping[str, object]
) -> None:
    """Change a call that meets the condition; one that does not any more keeps what it has.

    Raises:
        InvalidInput: The conversation has no such call.
    """
    key = (TOOL_CALLS.c.conversation_id == claim.conversation_id, TOOL_CALLS.c.call_id == call_id)
    if connection.execute(select(TOOL_CALLS.c.call_id).where(*key)).one_or_none() is None:
        raise InvalidInput(f"no call {call_id!r} in conversation {claim.conversation_id!r}")
    connection.execute(update(TOOL_CALLS).where(*key, condition).values(values))


if TYPE_CHECKING:
    _conforms: type[TurnLedger] = SqlLedger
