"""`HostApi` over the parts of a running host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from bot.backup import Backups
from bot.conversations.access import LOCAL_OWNER, AccessDesk, Standing
from bot.conversations.cards import CHOICES
from bot.conversations.headless import Headless
from bot.conversations.outbox import masked_content
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import DecisionDesk, find_commit, undo_commit
from bot.conversations.transcript import masked_message
from bot.doctor import Doctor
from bot.host_api import Check, HeadlessRequest, HistoryEntry, HostApi
from bot.metrics import HostMetrics
from bot.trace import Tracer
from channels.contract import Finding
from core.contracts.addresses import MessageBody, Sender, TextContent
from core.contracts.agents import EVERYONE, Agent, Audience, Conversation
from core.contracts.backend import Backend
from core.contracts.delivery import DeliveryStore, InboxRow, OutboxRow, OutboxState
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import AgentId, ApprovalId, ConversationId, TurnId
from core.contracts.ledger import TurnLedger
from core.contracts.memory import CommitOrigin, MemoryCommit, MemoryFile, MemoryStore
from core.contracts.messages import Message
from core.contracts.people import AuditEntry, Pairing, PeopleStore
from core.contracts.permissions import Approval
from core.contracts.store import TranscriptStore

_HISTORY = 200
_LOG_LINES = 50

Readiness = Callable[[], Awaitable[tuple[Check, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePorts:
    """What the service stands on."""

    backend: Backend
    transcripts: TranscriptStore
    ledger: TurnLedger
    delivery: DeliveryStore
    people: PeopleStore
    memory: MemoryStore
    access: AccessDesk
    decisions: DecisionDesk
    pairings: PairingDesk
    headless: Headless
    metrics: HostMetrics
    doctor: Doctor
    tracer: Tracer
    backups: Backups
    readiness: Readiness
    mask: Callable[[str], str]


class HostService:
    """Acts for the person at this machine, who is an owner."""

    def __init__(self, ports: ServicePorts) -> None:
        self._ports = ports

    async def agents(self) -> tuple[Agent, ...]:
        return await self._ports.transcripts.agents()

    async def conversations(self, agent_id: AgentId) -> tuple[Conversation, ...]:
        return await self._ports.transcripts.conversations(agent_id)

    async def messages(self, conversation_id: str, *, after_seq: int = 0) -> tuple[Message, ...]:
        conversation = await self._ports.transcripts.conversation(ConversationId(conversation_id))
        page = await self._ports.transcripts.messages(conversation.id, after_seq=after_seq)
        return tuple(masked_message(message, self._ports.mask) for message in page)

    async def history(self, address_key: str) -> tuple[HistoryEntry, ...]:
        said = await self._ports.delivery.inbox_of(address_key, limit=_HISTORY)
        shown = await self._ports.delivery.outbox_of(address_key, limit=_HISTORY)
        entries = chain(
            (_said(row, row.event.body) for row in said if isinstance(row.event.body, MessageBody)),
            (_shown(row) for row in shown if row.item.external_id is not None and row.state is not OutboxState.LIVE),
        )
        newest = sorted(entries, key=lambda entry: entry.at)[-_HISTORY:]
        return tuple(replace(entry, content=masked_content(entry.content, self._ports.mask)) for entry in newest)

    async def open_approvals(self) -> tuple[Approval, ...]:
        waiting = await self._ports.ledger.open_approvals_of()
        mask = self._ports.mask
        return tuple(replace(each, shown=mask(each.shown), remember=mask(each.remember)) for each in waiting)

    async def decide(self, approval_id: ApprovalId, choice: str, *, by: str, feedback: str = "") -> str:
        if choice not in CHOICES:
            msg = f"no choice {choice!r}; choices are {', '.join(CHOICES)}"
            raise InvalidInput(msg)
        return await self._ports.decisions.decide(
            approval_id, CHOICES[choice], await self._owner(by), feedback=feedback
        )

    async def pairings(self) -> tuple[Pairing, ...]:
        return await self._ports.people.pairings()

    async def pair(self, code: str, *, by: str) -> str:
        return await self._ports.pairings.accept(code, await self._owner(by))

    async def memory_files(self, agent: str) -> tuple[MemoryFile, ...]:
        found, audience = await self._agent(agent), await self._audience()
        return (await self._ports.memory.snapshot(found.memory_id, audience)).files

    async def memory_log(self, agent: str) -> tuple[MemoryCommit, ...]:
        found, audience = await self._agent(agent), await self._audience()
        return await self._ports.memory.log(found.memory_id, limit=_LOG_LINES, audience=audience)

    async def memory_diff(self, agent: str, revision: str) -> str:
        found = await self._agent(agent)
        commit = await self._commit(found, revision)
        return await self._ports.memory.diff(found.memory_id, commit.revision, await self._audience())

    async def memory_undo(self, agent: str, revision: str, *, by: str) -> str:
        found = await self._agent(agent)
        commit = await self._commit(found, revision)
        origin = CommitOrigin(author=by, audience=await self._audience(), approved=True)
        return await undo_commit(self._ports.memory, found.memory_id, commit.revision, origin)

    async def audit(self) -> tuple[AuditEntry, ...]:
        return await self._ports.people.audit()

    async def readiness(self) -> tuple[Check, ...]:
        return await self._ports.readiness()

    async def metrics(self) -> bytes:
        waiting = await self._ports.ledger.open_approvals_of()
        return self._ports.metrics.exposition(await self._ports.readiness(), open_approvals=len(waiting))

    def examine(self) -> AsyncIterator[Finding]:
        return self._ports.doctor.examine()

    async def trace(self, turn_id: str) -> Mapping[str, Any]:
        return await self._ports.tracer.trace(TurnId(turn_id))

    def backup(self, file: str) -> AsyncIterator[Mapping[str, Any]]:
        return self._ports.backups.events(file)

    def run_headless(self, request: HeadlessRequest) -> AsyncIterator[Mapping[str, Any]]:
        return self._ports.headless.run(request)

    async def _owner(self, name: str) -> Standing:
        return await self._ports.access.standing(Sender(identity=LOCAL_OWNER, name=name))

    async def _audience(self) -> Audience:
        """What the person at this machine sees: what everyone sees, and their own."""
        owner = await self._owner("owner")
        return Audience(words=frozenset({EVERYONE, f"person:{owner.person.id}"}))

    async def _agent(self, name: str) -> Agent:
        agent = await self._ports.backend.find_agent(name)
        if agent is None:
            raise NotFound("agent", name)
        return agent

    async def _commit(self, agent: Agent, revision: str) -> MemoryCommit:
        commit = await find_commit(self._ports.memory, agent.memory_id, revision)
        if commit is None:
            raise NotFound("revision", revision)
        return commit


def _said(row: InboxRow, body: MessageBody) -> HistoryEntry:
    return HistoryEntry(
        at=row.received_at,
        external_id=row.event.key,
        name=row.event.sender.name,
        content=TextContent(markdown=body.text),
    )


def _shown(row: OutboxRow) -> HistoryEntry:
    at = row.sent_at or row.created_at
    return HistoryEntry(at=at, external_id=row.item.external_id or row.item.id, name="", content=row.item.content)


if TYPE_CHECKING:
    _conforms: type[HostApi] = HostService
