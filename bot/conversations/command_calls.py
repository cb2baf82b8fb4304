"""A command as somebody gave it, who may give which, and what commands stand on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from bot.conversations.access import Standing
from bot.conversations.presses import DecisionDesk
from core.contracts.addresses import InboundEvent, Privacy
from core.contracts.agents import Agent, Conversation
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import Binding, DeliveryStore
from core.contracts.ids import ConversationId
from core.contracts.ledger import TurnLedger
from core.contracts.memory import MemoryStore
from core.contracts.people import AuditEntry, PeopleStore
from core.contracts.permissions import PersonRole
from core.contracts.store import TranscriptStore


class Who(IntEnum):
    """Who may give a command; each includes those below it.

    `REQUESTER` is whoever asked for the turn that runs or waits in the conversation.
    """

    ANYONE = 0
    MEMBER = 1
    REQUESTER = 2
    OPERATOR = 3
    OWNER = 4


_RANK = {
    PersonRole.STRANGER: Who.ANYONE,
    PersonRole.MEMBER: Who.MEMBER,
    PersonRole.OPERATOR: Who.OPERATOR,
    PersonRole.OWNER: Who.OWNER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """One command as it was given, with the conversation it was given in."""

    event: InboundEvent
    who: Standing
    rest: str
    binding: Binding
    agent: Agent
    conversation: Conversation

    @property
    def rank(self) -> Who:
        """What its giver may do at least."""
        return _RANK[self.who.role]

    @property
    def is_in_own_chat(self) -> bool:
        """Whether somebody who may talk gave it in a direct chat of theirs."""
        return self.event.privacy is Privacy.DIRECT and self.who.may_talk


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPorts:
    """What commands stand on."""

    backend: Backend
    transcripts: TranscriptStore
    ledger: TurnLedger
    delivery: DeliveryStore
    people: PeopleStore
    memory: MemoryStore
    clock: Clock
    decisions: DecisionDesk
    pair: Callable[[str, Standing], Awaitable[str]]
    wake_cancel: Callable[[ConversationId], None]
    ring: Callable[[ConversationId], Awaitable[None]]
    """Have a worker look at a conversation."""
    reload: Callable[[], Awaitable[str]]
    """Read the configuration again and return what came of it, for people."""

    async def record(self, call: CommandCall, what: str, detail: Mapping[str, str] | None = None) -> None:
        """Add to the audit trail what a command did to its conversation."""
        facts = {"conversation": call.conversation.id, **(detail or {})}
        entry = AuditEntry(at=self.clock.now(), who=call.who.person.id, what=what, detail=facts)
        await self.people.record(entry)


Run = Callable[[CommandPorts, CommandCall], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row of the table. `in_own_chat`: in a direct chat its person may give it, whoever `who` names."""

    name: str
    usage: str
    help: str
    who: Who
    run: Run
    in_own_chat: bool = False

    def is_offered_to(self, rank: Who, *, in_own_chat: bool) -> bool:
        """Whether to show it to somebody; a requester's is, as anybody may become one."""
        needed = Who.MEMBER if self.who is Who.REQUESTER or (self.in_own_chat and in_own_chat) else self.who
        return rank >= needed
