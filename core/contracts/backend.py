"""The seam of the split loop: who keeps state and takes model steps, but runs no tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from core.contracts.agents import Agent, AgentSpec, Audience, Conversation
from core.contracts.events import RunEvent
from core.contracts.ids import AgentId, ConversationId, RunId
from core.contracts.messages import Message, ToolCall, ToolReturn
from core.contracts.runs import Claim, Run, RunInput
from core.contracts.tools import ToolSchema


class Backend(Protocol):
    """Agents, conversations and single model steps.

    Every method may be called concurrently. Each is complete when it returns: what it promised
    is on disk. Cancelling a caller never leaves half a change.
    """

    async def create_agent(self, spec: AgentSpec) -> Agent:
        """Create an agent and its memory, as one admitted commit by `lodger`.

        Raises:
            InvalidInput: An agent of that name exists.
            MemoryRefused: The initial files break the rules.
        """
        ...

    async def get_agent(self, agent_id: AgentId) -> Agent:
        """Return the agent.

        Raises:
            NotFound: There is none.
        """
        ...

    async def find_agent(self, name: str) -> Agent | None:
        """Return the agent of that name."""
        ...

    async def update_agent(self, agent_id: AgentId, spec: AgentSpec) -> Agent:
        """Replace model, mode, toolset and workspace; `memory_files` are not looked at."""
        ...

    async def create_conversation(self, agent_id: AgentId, audience: Audience, *, hidden: bool = False) -> Conversation:
        """Create an empty conversation; its prompt is compiled at the first run."""
        ...

    async def get_conversation(self, conversation_id: ConversationId) -> Conversation:
        """Return the conversation.

        Raises:
            NotFound: There is none.
        """
        ...

    async def claim(self, conversation_id: ConversationId) -> Claim:
        """Raise the conversation's epoch and return the only valid claim.

        Everything that still holds an older claim gets `StaleClaim` at its next write.
        """
        ...

    async def start_run(
        self, claim: Claim, run_input: RunInput, *, tools: Sequence[ToolSchema], request_id: str
    ) -> Run:
        """Store the input and start one model step; returns when both are durable.

        The same `request_id` in one conversation returns the same run and stores nothing.
        Dangling calls (no result, no open approval) are settled as unknown before a `UserInput`.

        Raises:
            StaleClaim: A newer claim exists.
            ConversationBusy: A run of this conversation is active.
            ApprovalPending: A `UserInput` over parked calls.
            InvalidInput: An `ApprovalInput` that does not answer every pending call exactly once.
        """
        ...

    def events(self, run_id: RunId, *, after: int = 0) -> AsyncIterator[RunEvent]:
        """Replay the run's events with `seq > after`, then follow until `RunFinished`.

        Any number of readers; reconnecting is the same call; leaving does not cancel.

        Raises:
            NotFound: No such run (at the first step of the iterator).
        """
        ...

    async def get_run(self, run_id: RunId) -> Run:
        """Return the run.

        Raises:
            NotFound: There is none.
        """
        ...

    async def pending_calls(self, conversation_id: ConversationId) -> tuple[ToolCall, ...]:
        """Return the calls of the last assistant message that have no result, in its order."""
        ...

    async def cancel_run(self, run_id: RunId) -> None:
        """Stop the run; what was said so far is stored with `cut`. Finished runs stay as they are."""
        ...

    async def settle(self, claim: Claim, returns: Sequence[ToolReturn]) -> None:
        """Store results of pending calls without a model step (cancel, limit, drain).

        Raises:
            StaleClaim: A newer claim exists.
            InvalidInput: A return for a call that is not pending.
        """
        ...

    async def recompile(self, conversation_id: ConversationId, *, reason: str) -> None:
        """Have the next run compile the system prompt afresh."""
        ...

    async def list_messages(
        self, conversation_id: ConversationId, *, after_seq: int = 0, limit: int = 200
    ) -> tuple[Message, ...]:
        """Return messages in order of `seq`, at most `limit`."""
        ...
