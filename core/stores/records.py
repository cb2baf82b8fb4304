"""Rows to domain values and back: the one place where tables and contracts meet."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import Row

from core.contracts.addresses import OutboundItem
from core.contracts.agents import Agent, Audience, CompiledPrompt, Conversation, PermissionMode, QueueMode
from core.contracts.delivery import Binding, InboxRow, InboxState, OutboxRow, OutboxState
from core.contracts.engine import WorkItem
from core.contracts.events import MessageStored, RunEvent
from core.contracts.ids import AgentId, ApprovalId, CallId, ConversationId, MessageId, PersonId, RunId, TurnId
from core.contracts.ledger import CallRecord, CallState
from core.contracts.messages import Message, Role
from core.contracts.people import AuditEntry, Pairing, PairingState, Place, PlaceState
from core.contracts.permissions import Approval, ApprovalState, Grant
from core.contracts.runs import Run, RunStatus, StopReason, Turn, TurnOutcome, TurnState, Usage
from core.stores import address_codec, codec
from core.stores.codec import read_json
from core.stores.text import dump

AnyRow: TypeAlias = Row[Any]
Values: TypeAlias = dict[str, Any]


def agent_values(agent: Agent) -> Values:
    """Return the columns of an agent."""
    return {
        "id": agent.id,
        "name": agent.name,
        "model": dump(codec.model_to_json(agent.model)),
        "permission_mode": agent.permission_mode.value,
        "toolset": agent.toolset,
        "workspace": agent.workspace,
        "memory_id": agent.memory_id,
        "created_at": agent.created_at,
        "queue_mode": agent.queue_mode.value,
    }


def agent_from(row: AnyRow) -> Agent:
    """Return the agent of a row."""
    return Agent(
        id=AgentId(row.id),
        name=row.name,
        model=read_json(row.model, codec.model_from_json),
        permission_mode=PermissionMode(row.permission_mode),
        toolset=row.toolset,
        workspace=row.workspace,
        memory_id=row.memory_id,
        created_at=row.created_at,
        queue_mode=QueueMode(row.queue_mode),
    )


def conversation_values(conversation: Conversation) -> Values:
    """Return the columns of a conversation that its owner may set."""
    mode = conversation.permission_mode
    return {
        "audience": dump(sorted(conversation.audience.words)),
        "permission_mode": None if mode is None else mode.value,
        "title": conversation.title,
        "queue_mode": None if conversation.queue_mode is None else conversation.queue_mode.value,
        "paused": conversation.paused,
    }


def conversation_from(row: AnyRow) -> Conversation:
    """Return the conversation of a row."""
    mode = row.permission_mode
    return Conversation(
        id=ConversationId(row.id),
        agent_id=AgentId(row.agent_id),
        audience=Audience(words=read_json(row.audience, frozenset)),
        permission_mode=None if mode is None else PermissionMode(mode),
        epoch=row.epoch,
        created_at=row.created_at,
        title=row.title,
        hidden=row.hidden,
        queue_mode=None if row.queue_mode is None else QueueMode(row.queue_mode),
        paused=row.paused,
    )


def prompt_from(row: AnyRow) -> CompiledPrompt:
    """Return the compiled prompt of a row."""
    return CompiledPrompt(
        text=row.text,
        revision=row.revision,
        seen_revision=row.seen_revision,
        stamp=row.stamp,
        tools_json=row.tools_json,
        reason=row.reason,
    )


def message_from(row: AnyRow) -> Message:
    """Return the message of a row."""
    return Message(
        id=MessageId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        seq=row.seq,
        role=Role(row.role),
        parts=read_json(row.parts, codec.parts_from_json),
        created_at=row.created_at,
        run_id=None if row.run_id is None else RunId(row.run_id),
        cut=row.cut,
    )


def event_from(row: AnyRow, messages: dict[str, Message]) -> RunEvent:
    """Return the event of a row; `messages` holds those that events name, by id."""
    if row.message_id is None:
        body = read_json(row.body, codec.event_from_json)
    else:
        body = MessageStored(message=messages[row.message_id])
    return RunEvent(run_id=RunId(row.run_id), seq=row.seq, body=body)


def run_from(row: AnyRow) -> Run:
    """Return the run of a row."""
    return Run(
        id=RunId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        request_id=row.request_id,
        status=RunStatus(row.status),
        started_at=row.started_at,
        stop_reason=None if row.stop_reason is None else StopReason(row.stop_reason),
        error=row.error,
        usage=usage_from(row),
    )


def usage_from(row: AnyRow) -> Usage:
    """Return the usage columns of a run."""
    return Usage(
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cached_tokens=row.cached_tokens,
        cache_write_tokens=row.cache_write_tokens,
        cost_usd=row.cost_usd,
        estimated=row.estimated,
    )


def turn_values(turn: Turn) -> Values:
    """Return the columns of a turn that begins."""
    return {
        "id": turn.id,
        "conversation_id": turn.conversation_id,
        "agent_id": turn.agent_id,
        "requester": turn.requester,
        "origin": None if turn.origin is None else dump(address_codec.address_to_json(turn.origin)),
        "state": turn.state.value,
        "started_at": turn.started_at,
        "finished_at": None,
        "outbox_id": turn.outbox_id,
        "interactive": turn.interactive,
        "outcome": None if turn.outcome is None else turn.outcome.value,
        "steps": turn.steps,
        "active_seconds": turn.active_seconds,
        "error": turn.error,
        "cancel_requested_at": None,
        "cancel_requested_by": None,
    }


def turn_from(row: AnyRow) -> Turn:
    """Return the turn of a row."""
    return Turn(
        id=TurnId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        agent_id=AgentId(row.agent_id),
        requester=_person_id(row.requester),
        origin=None if row.origin is None else read_json(row.origin, address_codec.address_from_json),
        state=TurnState(row.state),
        started_at=row.started_at,
        outbox_id=row.outbox_id,
        interactive=row.interactive,
        outcome=None if row.outcome is None else TurnOutcome(row.outcome),
        steps=row.steps,
        active_seconds=row.active_seconds,
        error=row.error,
    )


def call_from(row: AnyRow, approval: Approval | None) -> CallRecord:
    """Return the ledger's record of a call."""
    return CallRecord(
        call=read_json(row.call, codec.call_from_json),
        run_id=RunId(row.run_id),
        position=row.position,
        state=CallState(row.state),
        verdict=None if row.verdict is None else read_json(row.verdict, codec.verdict_from_json),
        approval=approval,
        result=None if row.result is None else read_json(row.result, codec.return_from_json),
    )


def approval_values(approval: Approval) -> Values:
    """Return the columns of an approval."""
    decision = approval.decision
    return {
        "id": approval.id,
        "turn_id": approval.turn_id,
        "conversation_id": approval.conversation_id,
        "agent_id": approval.agent_id,
        "call_id": approval.call_id,
        "tool": approval.tool,
        "shown": approval.shown,
        "hash": approval.hash,
        "rule": approval.rule,
        "reason": approval.reason,
        "remember": approval.remember,
        "state": approval.state.value,
        "requester": approval.requester,
        "origin": None if approval.origin is None else dump(address_codec.address_to_json(approval.origin)),
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decision": None if decision is None else dump(codec.decision_to_json(decision)),
        "decided_at": approval.decided_at,
        "card_id": approval.card_id,
    }


def approval_from(row: AnyRow) -> Approval:
    """Return the approval of a row."""
    return Approval(
        id=ApprovalId(row.id),
        turn_id=TurnId(row.turn_id),
        conversation_id=ConversationId(row.conversation_id),
        agent_id=AgentId(row.agent_id),
        call_id=CallId(row.call_id),
        tool=row.tool,
        shown=row.shown,
        hash=row.hash,
        rule=row.rule,
        reason=row.reason,
        remember=row.remember,
        state=ApprovalState(row.state),
        requester=_person_id(row.requester),
        origin=None if row.origin is None else read_json(row.origin, address_codec.address_from_json),
        created_at=row.created_at,
        expires_at=row.expires_at,
        decision=None if row.decision is None else read_json(row.decision, codec.decision_from_json),
        decided_at=row.decided_at,
        card_id=row.card_id,
    )


def grant_from(row: AnyRow) -> Grant:
    """Return the grant of a row."""
    conversation_id = row.conversation_id
    return Grant(
        rule=row.rule,
        agent_id=AgentId(row.agent_id),
        conversation_id=None if conversation_id is None else ConversationId(conversation_id),
        requester=_person_id(row.requester),
        given_by=PersonId(row.given_by),
    )


def inbox_from(row: AnyRow) -> InboxRow:
    """Return the inbox row."""
    conversation_id = row.conversation_id
    return InboxRow(
        id=row.id,
        event=read_json(row.event, address_codec.inbound_from_json),
        state=InboxState(row.state),
        conversation_id=None if conversation_id is None else ConversationId(conversation_id),
        received_at=row.received_at,
        turn_id=None if row.turn_id is None else TurnId(row.turn_id),
        step=row.step,
    )


def outbox_from(row: AnyRow) -> OutboxRow:
    """Return the outbox row."""
    item = OutboundItem(
        id=row.id,
        address=read_json(row.address, address_codec.address_from_json),
        content=read_json(row.content, address_codec.content_from_json),
        external_id=row.external_id,
        reply_to=row.reply_to,
        attempts=row.attempts,
    )
    return OutboxRow(
        item=item,
        state=OutboxState(row.state),
        turn_id=None if row.turn_id is None else TurnId(row.turn_id),
        created_at=row.created_at,
        not_before=row.not_before,
        sent_at=row.sent_at,
        shown_at=row.shown_at,
        error=row.error,
    )


def place_from(row: AnyRow) -> Place:
    """Return the place of a row."""
    by = None if row.by is None else PersonId(row.by)
    return Place(key=row.key, state=PlaceState(row.state), by=by, at=row.at)


def binding_from(row: AnyRow) -> Binding:
    """Return the binding of a row."""
    return Binding(
        address=read_json(row.address, address_codec.address_from_json),
        agent_id=AgentId(row.agent_id),
        conversation_id=ConversationId(row.conversation_id),
    )


def pairing_from(row: AnyRow) -> Pairing:
    """Return the pairing of a row."""
    return Pairing(
        code=row.code,
        identity=row.identity,
        name=row.name,
        state=PairingState(row.state),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )


def audit_from(row: AnyRow) -> AuditEntry:
    """Return the audit entry of a row."""
    return AuditEntry(at=row.at, who=row.who, what=row.what, detail=read_json(row.detail, dict))


def work_item_from(row: AnyRow) -> WorkItem:
    """Return the doorbell of a row."""
    return WorkItem(id=row.id, queue=row.queue, key=row.key, due_at=row.due_at)


def _person_id(value: str | None) -> PersonId | None:
    return None if value is None else PersonId(value)
