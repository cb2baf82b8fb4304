"""Runs (one model step), turns (runs until the model stops), and why they end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from core.contracts.addresses import Address
from core.contracts.ids import AgentId, ConversationId, PersonId, RunId, TurnId
from core.contracts.messages import ToolReturn, UserPart


class StopReason(StrEnum):
    """Why a run ended; `core.turns.outcomes` says what follows from each."""

    END_TURN = "end_turn"
    REQUIRES_APPROVAL = "requires_approval"
    MAX_TOKENS = "max_tokens"
    CONTEXT_OVERFLOW = "context_overflow"
    PROMPT_TOO_LARGE = "prompt_too_large"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    ERROR = "error"


class RunStatus(StrEnum):
    """`ACTIVE` until the run's last event is stored."""

    ACTIVE = "active"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model step. `estimated` marks figures the provider did not report."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInput:
    """A person's message, or a notification that starts a turn."""

    parts: tuple[UserPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalInput:
    """Answers to every pending call, each exactly once, in the order of the calls.

    `parts` (steering, reminders, memory updates) follow the last return as one user message.
    """

    returns: tuple[ToolReturn, ...]
    parts: tuple[UserPart, ...] = ()


RunInput: TypeAlias = UserInput | ApprovalInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to write to a conversation until a newer claim raises the epoch."""

    conversation_id: ConversationId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One model step."""

    id: RunId
    conversation_id: ConversationId
    request_id: str
    status: RunStatus
    started_at: datetime
    stop_reason: StopReason | None = None
    error: str = ""
    usage: Usage = Usage()


class TurnState(StrEnum):
    """Where a turn stands, by the database alone."""

    RUNNING = "running"
    PARKED = "parked"
    FINISHED = "finished"


class TurnOutcome(StrEnum):
    """How a turn ended; `SILENT` is the typed result of `stay_silent`."""

    COMPLETED = "completed"
    SILENT = "silent"
    CUT = "cut"
    LIMIT = "limit"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    TOO_LARGE = "too_large"
    EMPTY = "empty"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A person's request until the model stops. `origin` is sealed: replies go nowhere else.

    `interactive` is false where nobody can be asked (headless): a doubtful call is denied at
    once. `silent` outputs never reach `origin`.
    """

    id: TurnId
    conversation_id: ConversationId
    agent_id: AgentId
    requester: PersonId | None
    origin: Address | None
    state: TurnState
    started_at: datetime
    outbox_id: str | None = None
    interactive: bool = True
    outcome: TurnOutcome | None = None
    steps: int = 0
    active_seconds: float = 0.0
    error: str = ""
