"""Verdicts (the policy's) and decisions (a person's) on tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from core.contracts.addresses import Address
from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, ApprovalId, CallId, ConversationId, PersonId, TurnId
from core.contracts.messages import ToolCall
from core.contracts.tools import Access


class Action(StrEnum):
    """What a rule or a verdict says."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    ALWAYS_ASK = "always_ask"


class PersonRole(StrEnum):
    """What a person is to this host, from most to least."""

    OWNER = "owner"
    OPERATOR = "operator"
    MEMBER = "member"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """On whose behalf a call is judged. `memory_root` and `forbidden` are what guards refuse."""

    agent_id: AgentId
    conversation_id: ConversationId
    mode: PermissionMode
    workspace: Path
    channel: str = ""
    requester: PersonId | None = None
    role: PersonRole = PersonRole.MEMBER
    forbidden: tuple[Path, ...] = ()
    granted: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says of one call. `rule` names the deciding rule, for `/why`."""

    action: Action
    rule: str
    reason: str
    remember: str = ""
    """The allow rule that `Always` would add, verbatim; empty where no rule can cover the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An allow rule given by a person: for one conversation and requester, or for the agent."""

    rule: str
    agent_id: AgentId
    conversation_id: ConversationId | None
    requester: PersonId | None
    given_by: PersonId


class Policy(Protocol):
    """Judges calls. Pure: same inputs, same verdict; no I/O but resolving paths of the workspace."""

    def verdict(self, call: ToolCall, access: Access | None, subject: Subject, grants: tuple[Grant, ...]) -> Verdict:
        """Return the verdict in the order of DESIGN 12; `ALWAYS_ASK` is returned as `ASK`."""
        ...


class ApprovalState(StrEnum):
    """An approval is decided once."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The turn was cancelled before anybody decided."""


class DecisionScope(StrEnum):
    """How far an approval reaches."""

    ONCE = "once"
    CONVERSATION = "conversation"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision; `by` is None for an expiry or a host that can ask nobody.

    `edited` is the JSON object of arguments that the person put in place of the shown ones, secrets
    masked: what runs, and no more than once. None: the call runs as it was shown.
    """

    approve: bool
    by: PersonId | None
    by_name: str
    scope: DecisionScope = DecisionScope.ONCE
    feedback: str = ""
    edited: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question to people about one call, bound to the hash of exactly what was shown."""

    id: ApprovalId
    turn_id: TurnId
    conversation_id: ConversationId
    agent_id: AgentId
    call_id: CallId
    tool: str
    shown: str
    """The whole arguments as displayed."""
    hash: str
    """SHA-256 of tool name and canonical arguments: `core.permissions.approvals.binding_hash`."""
    rule: str
    reason: str
    remember: str
    state: ApprovalState
    requester: PersonId | None
    origin: Address | None
    created_at: datetime
    expires_at: datetime
    decision: Decision | None = None
    decided_at: datetime | None = None
    card_id: str | None = None
    """The outbox row that shows it."""
