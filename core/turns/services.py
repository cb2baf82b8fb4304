"""What the loop needs of the host, and what one turn carries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from core.contracts.addresses import OutboundItem
from core.contracts.agents import Agent, Conversation
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.ledger import TurnLedger
from core.contracts.messages import ToolCall, ToolReturn, UserPart
from core.contracts.permissions import Approval, Policy, Subject
from core.contracts.runs import Claim, Turn, TurnOutcome, UserInput
from core.contracts.tools import Access, ToolContext, Toolset
from core.turns.observer import TurnObserver


class TurnHost(Protocol):
    """What only the application knows about a turn."""

    async def subject(self, turn: Turn, agent: Agent, conversation: Conversation) -> Subject:
        """Return on whose behalf the turn's calls are judged, as things stand now."""
        ...

    async def approval_card(self, turn: Turn, approvals: Sequence[Approval], *, said: str) -> OutboundItem | None:
        """Return the card that asks about these calls, or None where no chat can show one.

        Before this returns, `said` (the turn's text so far) and what does not fit on a card have
        been posted, so that people read it and then decide.
        """
        ...

    def overflow(self, conversation: Conversation) -> Path:
        """Return the conversation's own folder for long outputs."""
        ...


class Steering(Protocol):
    """What people say into one turn while it runs.

    It enters at a tool boundary: behind the returns of one step, with the input of the next. What
    has entered is on record first, so that a worker that takes the turn up finds the same again.
    """

    async def has_entered(self, step: int) -> bool:
        """Whether anything is on record as entering with the step of that number, which may have begun or not."""
        ...

    async def take(self, step: int, *, more: bool) -> tuple[UserPart, ...]:
        """Return all that enters with that step; with `more`, what waits now is let in first.

        Raises:
            StaleClaim: A newer worker has the conversation.
        """
        ...


class CallLocks(Protocol):
    """Keeps conflicting calls apart, over all conversations that share a workspace."""

    def hold(self, workspace: Path, access: Access | None) -> AbstractAsyncContextManager[None]:
        """Hold what `access` needs for the length of the block."""
        ...


Perform = Callable[[Toolset, ToolCall, ToolContext], Awaitable[ToolReturn]]
"""Runs one call to a masked and clamped return; raises nothing but CancelledError."""

Doubt = Callable[[ToolCall, ToolContext], Awaitable[str | None]]
"""A question that a person must answer before an otherwise allowed call, found by a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """How much one turn may use; time counts only while it works, not while it waits for people."""

    steps: int = 50
    active: timedelta = timedelta(minutes=15)
    faulty_steps: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnServices:
    """The ports of the loop."""

    backend: Backend
    ledger: TurnLedger
    policy: Policy
    perform: Perform
    doubt: Doubt
    locks: CallLocks
    host: TurnHost
    clock: Clock
    limits: TurnLimits
    approval_deadline: Callable[[], timedelta]
    """How long a question that is asked now stays open."""


@dataclass(slots=True, kw_only=True)
class TurnWork:
    """One turn in the hands of one worker."""

    claim: Claim
    turn: Turn
    agent: Agent
    conversation: Conversation
    toolset: Toolset
    opening: UserInput
    steering: Steering
    observer: TurnObserver
    cancel: asyncio.Event
    texts: list[str] = field(default_factory=list)
    """Visible text of the steps taken by this worker."""
    steps: int = 0
    faulty_steps: int = 0
    started: float = 0.0
    """Monotonic seconds when this worker began."""
    counted_until: float = 0.0
    """Monotonic seconds up to which the ledger knows the time used."""

    @property
    def agent_workspace(self) -> Path:
        """The directory that the agent's tools work in."""
        return Path(self.agent.workspace)

    @property
    def next_step(self) -> int:
        """The number of the step that comes next; the first has 1."""
        return self.turn.steps + self.steps + 1

    @property
    def text(self) -> str:
        """What the person reads of the steps so far."""
        return "\n\n".join(text for text in self.texts if text.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended; `text` is what the person reads, without notices."""

    outcome: TurnOutcome
    text: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """The turn waits for people and holds nothing: no task, no thread, no memory."""
