"""The record of turns and tool calls: the database alone says where a turn stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from core.contracts.addresses import OutboundItem
from core.contracts.ids import AgentId, ApprovalId, CallId, ConversationId, PersonId, RunId, TurnId
from core.contracts.messages import ToolCall, ToolReturn
from core.contracts.permissions import Approval, ApprovalState, Decision, Grant, Verdict
from core.contracts.runs import Claim, Turn, TurnOutcome


class CallState(StrEnum):
    """Where a tool call stands.

    `WAITING` → `APPROVED` → `STARTED` → `DONE`; `WAITING` → `DENIED`; `STARTED` → `UNKNOWN` when
    its host died. `DONE`, `DENIED` and `UNKNOWN` have a result.
    """

    WAITING = "waiting"
    APPROVED = "approved"
    DENIED = "denied"
    STARTED = "started"
    DONE = "done"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of the last step, as the ledger knows it."""

    call: ToolCall
    run_id: RunId
    position: int
    state: CallState
    verdict: Verdict | None = None
    approval: Approval | None = None
    result: ToolReturn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The outcome of `decide`: `won` is false when somebody or something had decided before.

    `state` is the approval's state afterwards, whoever brought it there.
    """

    won: bool
    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """How a turn ends. `outgoing` replaces the turn's open outbox row by these (first takes its place).

    An empty `outgoing` drops the open row when it was never posted. With `replace_live` false the
    items are messages of their own, and what the open row showed is removed behind them.
    """

    outcome: TurnOutcome
    outgoing: tuple[OutboundItem, ...]
    replace_live: bool = True
    error: str = ""


class TurnLedger(Protocol):
    """Turns, their calls, their approvals. One transaction each; see `core.contracts.store`."""

    async def begin_turn(self, turn: Turn, *, inbox_ids: Sequence[int], live: OutboundItem | None) -> Claim:
        """Claim the conversation, store the turn, mark its inbox rows taken, open its outbox row.

        As `TranscriptStore.claim`, runs left active by an older claim are finished.
        """
        ...

    async def open_turn(self, conversation_id: ConversationId) -> Turn | None:
        """Return the turn that is running or parked, if any."""
        ...

    async def turn(self, turn_id: TurnId) -> Turn:
        """Return the turn, or raise `NotFound`."""
        ...

    async def latest_turn(self, conversation_id: ConversationId) -> Turn | None:
        """Return the newest turn of the conversation."""
        ...

    async def add_progress(self, claim: Claim, turn_id: TurnId, *, steps: int, active_seconds: float) -> None:
        """Add to the limits used."""
        ...

    async def park_turn(self, claim: Claim, turn_id: TurnId) -> bool:
        """Mark the turn parked, unless no approval of it is open any more: then return False."""
        ...

    async def steer_turn(self, claim: Claim, turn_id: TurnId, inbox_ids: Sequence[int], *, step: int) -> None:
        """Mark queued inbox rows taken by the turn, to enter with its step of that number.

        Raises:
            StaleClaim: A newer claim exists.
            InvalidInput: A row does not wait any more.
        """
        ...

    async def resume_turn(self, claim: Claim, turn_id: TurnId) -> None:
        """Mark a parked turn running again."""
        ...

    async def finish_turn(self, claim: Claim, turn_id: TurnId, end: TurnEnd) -> None:
        """End the turn, void its open approvals, and hand its outgoing items to the outbox.

        Rings the conversation again when messages are queued.
        """
        ...

    async def request_cancel(self, conversation_id: ConversationId, *, by: PersonId | None) -> Turn | None:
        """Ask the open turn to stop and ring the conversation; return it, or None where none is open."""
        ...

    async def cancel_requested(self, turn_id: TurnId) -> bool:
        """Return whether somebody asked this turn to stop."""
        ...

    async def calls(self, run_id: RunId) -> tuple[CallRecord, ...]:
        """Return the calls of a run in the model's order."""
        ...

    async def calls_of_turn(self, turn_id: TurnId) -> tuple[CallRecord, ...]:
        """Return all judged calls of a turn, oldest first."""
        ...

    async def unanswered_calls(self, conversation_id: ConversationId) -> tuple[CallRecord, ...]:
        """Return the calls of the last step that have no tool message yet, in order."""
        ...

    async def record_verdicts(
        self, claim: Claim, turn_id: TurnId, verdicts: Sequence[tuple[CallId, Verdict, ToolReturn | None]]
    ) -> None:
        """Store verdicts: an allowed call becomes `APPROVED`, one with a return `DENIED`, others wait."""
        ...

    async def open_approvals(self, claim: Claim, approvals: Sequence[Approval], card: OutboundItem | None) -> None:
        """Store approvals with their one card; ring the conversation at the earliest expiry."""
        ...

    async def start_call(self, claim: Claim, call_id: CallId) -> None:
        """Mark a call started, before it starts.

        Raises:
            InvalidInput: It is not `APPROVED`.
        """
        ...

    async def finish_call(self, claim: Claim, result: ToolReturn, state: CallState) -> None:
        """Store a call's result at once."""
        ...

    async def approval(self, approval_id: ApprovalId) -> Approval:
        """Return the approval, or raise `NotFound`."""
        ...

    async def approvals_of(self, turn_id: TurnId) -> tuple[Approval, ...]:
        """Return all approvals of a turn, oldest first."""
        ...

    async def open_approvals_of(self, agent_id: AgentId | None = None) -> tuple[Approval, ...]:
        """Return open approvals, oldest first."""
        ...

    async def decide(
        self, approval_id: ApprovalId, decision: Decision, state: ApprovalState, *, hash_shown: str, grant: Grant | None
    ) -> Decided:
        """Compare-and-set `OPEN` to `state`; the winner stores the grant and rings the conversation.

        An approve sets the call `APPROVED`; the denied call's result is written by the turn. A
        `hash_shown` that differs from the approval's never wins and changes nothing. The call itself
        stays the model's own; arguments that a person edited are in the decision alone.

        Raises:
            NotFound: No such approval.
        """
        ...

    async def expire_approvals(self, conversation_id: ConversationId, now: datetime) -> tuple[Approval, ...]:
        """Set every open approval past its deadline `EXPIRED` and return those."""
        ...

    async def grants(self, agent_id: AgentId, conversation_id: ConversationId) -> tuple[Grant, ...]:
        """Return the grants that may apply in this conversation."""
        ...
