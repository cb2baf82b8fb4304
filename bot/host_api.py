"""What the console and the command line may ask of a running host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from channels.contract import Finding
from core.contracts.addresses import OutboundContent
from core.contracts.agents import Agent, Conversation
from core.contracts.ids import AgentId, ApprovalId
from core.contracts.memory import MemoryCommit, MemoryFile
from core.contracts.messages import Message
from core.contracts.people import AuditEntry, Pairing
from core.contracts.permissions import Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One line of a chat as it was seen. `name` is empty for the agent's own messages.

    `external_id` is the message's id in the feed, so that later edits find it.
    """

    at: datetime
    external_id: str
    name: str
    content: OutboundContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of readiness. `required` checks turn readiness red."""

    name: str
    ok: bool
    detail: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessRequest:
    """One turn without a chat. `conversation` continues one; empty starts a new one."""

    text: str
    agent: str = ""
    conversation: str = ""


class HostApi(Protocol):
    """A host's services for the person at this machine, who counts as an owner."""

    async def agents(self) -> tuple[Agent, ...]:
        """Return all agents by name."""
        ...

    async def conversations(self, agent_id: AgentId) -> tuple[Conversation, ...]:
        """Return the newest conversations."""
        ...

    async def messages(self, conversation_id: str, *, after_seq: int = 0) -> tuple[Message, ...]:
        """Return a conversation's messages, or raise `NotFound`."""
        ...

    async def history(self, address_key: str) -> tuple[HistoryEntry, ...]:
        """Return what a chat showed, oldest first, at most 200 entries."""
        ...

    async def open_approvals(self) -> tuple[Approval, ...]:
        """Return open approvals, oldest first."""
        ...

    async def decide(self, approval_id: ApprovalId, choice: str, *, by: str, feedback: str = "") -> str:
        """Decide as the owner named `by`; return one line that says what happened.

        `choice` is `approve`, `conversation`, `always` or `deny`.

        Raises:
            NotFound: No such approval.
            InvalidInput: No such choice.
        """
        ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """Return open pairing requests."""
        ...

    async def pair(self, code: str, *, by: str) -> str:
        """Accept a code; return one line that says what happened."""
        ...

    async def memory_files(self, agent: str) -> tuple[MemoryFile, ...]:
        """Return all files of an agent's memory, as its owner sees them, or raise `NotFound`."""
        ...

    async def memory_log(self, agent: str) -> tuple[MemoryCommit, ...]:
        """Return the newest commits first."""
        ...

    async def memory_diff(self, agent: str, revision: str) -> str:
        """Return a commit's diff, or raise `NotFound`. Short revisions are completed."""
        ...

    async def memory_undo(self, agent: str, revision: str, *, by: str) -> str:
        """Undo a commit; return one line that says what happened."""
        ...

    async def audit(self) -> tuple[AuditEntry, ...]:
        """Return the newest entries first."""
        ...

    async def readiness(self) -> tuple[Check, ...]:
        """Return every check; the host is ready when all required ones are ok."""
        ...

    async def metrics(self) -> bytes:
        """Return what the host counts, in Prometheus's text format."""
        ...

    def examine(self) -> AsyncIterator[Finding]:
        """Prove every part by using it, one after the other; takes up to minutes."""
        ...

    async def trace(self, turn_id: str) -> Mapping[str, Any]:
        """Return everything that is stored about a turn, without secrets, or raise `NotFound`."""
        ...

    def backup(self, file: str) -> AsyncIterator[Mapping[str, Any]]:
        """Take a backup and yield its events as JSON objects; see `bot.backup.Backups.events`.

        Raises:
            BackupError: Nothing can be written there (at the first step of the iterator).
        """
        ...

    def run_headless(self, request: HeadlessRequest) -> AsyncIterator[Mapping[str, Any]]:
        """Run one turn and yield its events as JSON objects; the last has `type` `result`.

        `{"type": "result", "outcome", "text", "exit_code", "conversation_id", "turn_id", "usage"}`.

        Raises:
            NotFound: No such agent or conversation.
        """
        ...
