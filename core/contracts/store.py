"""Where agents, conversations, transcripts and runs are kept.

Every operation is one transaction: all of it is durable when it returns, or none of it happened.
All may be called concurrently. Cancelling a caller does not undo a transaction that was begun.
Every operation may raise `StorageFull` or `StoreUnavailable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.contracts.agents import Agent, CompiledPrompt, Conversation, PermissionMode, QueueMode
from core.contracts.events import RunEvent
from core.contracts.ids import AgentId, ConversationId, MessageId, RunId, TurnId
from core.contracts.messages import Message, Part, Role, ToolCall, ToolReturn
from core.contracts.runs import Claim, Run, StopReason, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to append; the store gives it the conversation's next `seq` and the time."""

    id: MessageId
    role: Role
    parts: tuple[Part, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChange:
    """What is set on a conversation; None leaves a field as it is, whoever changed it meanwhile."""

    permission_mode: PermissionMode | None = None
    queue_mode: QueueMode | None = None
    paused: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What `begin_run` stores: the run, what it appends, and the prompt where it changed."""

    run_id: RunId
    request_id: str
    messages: tuple[NewMessage, ...]
    prompt: CompiledPrompt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What `finish_run` stores. `message` is None when the step produced nothing to keep."""

    run_id: RunId
    message: NewMessage | None
    stop_reason: StopReason
    error: str
    usage: Usage
    events: tuple[RunEvent, ...]
    """Every event of the run that is not stored yet, `RunFinished` last.

    A `MessageStored` body for `message` carries the row as `finish_run` will store it; the store
    replaces its `seq` and `created_at` by the real ones.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """All that a run needs to know, read in one go."""

    agent: Agent
    conversation: Conversation
    prompt: CompiledPrompt | None
    prompt_stale: str
    """Why the next run must compile afresh; empty when it need not."""
    view: tuple[Message, ...]
    active_run: RunId | None


class TranscriptStore(Protocol):
    """Agents, conversations, messages, runs and their events."""

    async def insert_agent(self, agent: Agent) -> None:
        """Store a new agent.

        Raises:
            InvalidInput: The name is taken.
        """
        ...

    async def update_agent(self, agent: Agent) -> None:
        """Replace everything but id and creation time.

        Raises:
            NotFound: No such agent.
        """
        ...

    async def agent(self, agent_id: AgentId) -> Agent:
        """Return the agent, or raise `NotFound`."""
        ...

    async def agents(self) -> tuple[Agent, ...]:
        """Return all agents by name."""
        ...

    async def insert_conversation(self, conversation: Conversation) -> None:
        """Store a new conversation without messages."""
        ...

    async def update_conversation(self, conversation: Conversation) -> None:
        """Replace title, permission mode and audience; the epoch is not looked at."""
        ...

    async def change_conversation(self, conversation_id: ConversationId, change: ConversationChange) -> None:
        """Set what `change` names and nothing else, or raise `NotFound`."""
        ...

    async def conversation(self, conversation_id: ConversationId) -> Conversation:
        """Return the conversation, or raise `NotFound`."""
        ...

    async def conversations(self, agent_id: AgentId, *, limit: int = 100) -> tuple[Conversation, ...]:
        """Return the newest conversations that are not hidden."""
        ...

    async def claim(self, conversation_id: ConversationId) -> Claim:
        """Raise the epoch in one statement; older claims are stale from then on.

        Runs of the conversation that an older claim left active are finished with
        `StopReason.ERROR` and the error "interrupted", their last event included.
        """
        ...

    async def state(self, conversation_id: ConversationId) -> ConversationState:
        """Return the conversation with its agent, prompt and view, or raise `NotFound`."""
        ...

    async def mark_prompt_stale(self, conversation_id: ConversationId, reason: str) -> None:
        """Have the next run compile afresh, for `reason`."""
        ...

    async def begin_run(self, claim: Claim, start: RunStart) -> tuple[Run, tuple[Message, ...]]:
        """Append the messages and make the run active; return it and the messages as stored.

        A known `request_id` returns the run of old and no messages; nothing is stored.
        `MessageStored` events of the appended messages are stored as the run's first events.

        Raises:
            StaleClaim: The claim is not the newest.
            ConversationBusy: Another run is active.
        """
        ...

    async def append_events(self, claim: Claim, events: Sequence[RunEvent]) -> None:
        """Store events of an active run; `StaleClaim` when a newer claim exists."""
        ...

    async def finish_run(self, claim: Claim, end: RunEnd) -> tuple[Run, Message | None]:
        """Append the message, open its calls in the ledger as `waiting`, store events, end the run.

        The calls' rows get the run's id and their position. Finishing a finished run returns it
        unchanged.

        Raises:
            StaleClaim: A newer claim exists; nothing was stored.
        """
        ...

    async def append_returns(self, claim: Claim, messages: Sequence[NewMessage]) -> tuple[Message, ...]:
        """Append messages outside a run (settling calls); `StaleClaim` as above."""
        ...

    async def run(self, run_id: RunId) -> Run:
        """Return the run, or raise `NotFound`."""
        ...

    async def find_run(self, conversation_id: ConversationId, request_id: str) -> Run | None:
        """Return the run of that request, if it was ever begun."""
        ...

    async def runs_of_turn(self, turn_id: TurnId) -> tuple[Run, ...]:
        """Return the runs of a turn, oldest first."""
        ...

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> tuple[RunEvent, ...]:
        """Return stored events with `seq > after`, in order."""
        ...

    async def messages(
        self, conversation_id: ConversationId, *, after_seq: int = 0, limit: int = 200
    ) -> tuple[Message, ...]:
        """Return messages in order of `seq`."""
        ...

    async def parked_calls(self, conversation_id: ConversationId) -> tuple[ToolCall, ...]:
        """Return unanswered calls that an open approval still waits for."""
        ...

    async def known_returns(self, conversation_id: ConversationId) -> tuple[ToolReturn, ...]:
        """Return stored results of the ledger for calls that have no tool message yet."""
        ...

    async def usage_since(self, turn_id: TurnId) -> Usage:
        """Return the summed usage of a turn's runs."""
        ...
