"""Turns, tool calls, approvals and grants."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Table, literal, text
from sqlmodel import Field, Index, SQLModel

from core.stores.tables.columns import CleanText, Instant


class TurnTable(SQLModel, table=True):
    """A person's request until the model stops; at most one of a conversation is open."""

    __tablename__ = "turns"
    __table_args__ = (
        Index(
            "uq_turns_open",
            "conversation_id",
            unique=True,
            sqlite_where=text("state != 'finished'"),
        ),
        Index("ix_turns_newest", "conversation_id", "started_at"),
    )

    id: str = Field(primary_key=True)
    conversation_id: str = Field(foreign_key="conversations.id")
    agent_id: str
    requester: str | None
    origin: str | None = Field(sa_type=CleanText)
    state: str
    started_at: datetime = Field(sa_type=Instant)
    finished_at: datetime | None = Field(sa_type=Instant)
    outbox_id: str | None
    interactive: bool
    outcome: str | None
    steps: int
    active_seconds: float
    error: str = Field(sa_type=CleanText)
    cancel_requested_at: datetime | None = Field(sa_type=Instant)
    cancel_requested_by: str | None


class ToolCallTable(SQLModel, table=True):
    """A tool call; `turn_id` is the turn that judged it, `answered_at` when its tool message was appended."""

    __tablename__ = "tool_calls"
    __table_args__ = (
        Index(
            "ix_tool_calls_unanswered",
            "conversation_id",
            sqlite_where=text("answered_at IS NULL"),
        ),
        Index("ix_tool_calls_run", "run_id", "position"),
        Index("ix_tool_calls_turn", "turn_id"),
    )

    conversation_id: str = Field(primary_key=True, foreign_key="conversations.id")
    call_id: str = Field(primary_key=True, sa_type=CleanText)
    run_id: str = Field(foreign_key="runs.id")
    turn_id: str | None
    position: int
    call: str = Field(sa_type=CleanText)
    state: str
    verdict: str | None = Field(sa_type=CleanText)
    result: str | None = Field(sa_type=CleanText)
    started_at: datetime | None = Field(sa_type=Instant)
    finished_at: datetime | None = Field(sa_type=Instant)
    answered_at: datetime | None = Field(sa_type=Instant)


class ApprovalTable(SQLModel, table=True):
    """A question to people about one call; at most one of a call is open."""

    __tablename__ = "approvals"
    __table_args__ = (
        Index(
            "uq_approvals_open",
            "conversation_id",
            "call_id",
            unique=True,
            sqlite_where=text("state = 'open'"),
        ),
        Index("ix_approvals_turn", "turn_id"),
        Index("ix_approvals_call", "conversation_id", "call_id"),
    )

    id: str = Field(primary_key=True)
    turn_id: str = Field(foreign_key="turns.id")
    conversation_id: str
    agent_id: str
    call_id: str = Field(sa_type=CleanText)
    tool: str = Field(sa_type=CleanText)
    shown: str = Field(sa_type=CleanText)
    hash: str
    rule: str = Field(sa_type=CleanText)
    reason: str = Field(sa_type=CleanText)
    remember: str = Field(sa_type=CleanText)
    state: str
    requester: str | None
    origin: str | None = Field(sa_type=CleanText)
    created_at: datetime = Field(sa_type=Instant)
    expires_at: datetime = Field(sa_type=Instant)
    decision: str | None = Field(sa_type=CleanText)
    decided_at: datetime | None = Field(sa_type=Instant)
    card_id: str | None


class GrantTable(SQLModel, table=True):
    """An allow rule that a person gave with an approval."""

    __tablename__ = "grants"
    __table_args__ = (Index("ix_grants_agent", "agent_id", "conversation_id"),)

    approval_id: str = Field(primary_key=True, foreign_key="approvals.id")
    rule: str = Field(sa_type=CleanText)
    agent_id: str
    conversation_id: str | None
    requester: str | None
    given_by: str
    given_at: datetime = Field(sa_type=Instant)


TURNS: Final[Table] = SQLModel.metadata.tables["turns"]
TOOL_CALLS: Final[Table] = SQLModel.metadata.tables["tool_calls"]
APPROVALS: Final[Table] = SQLModel.metadata.tables["approvals"]
GRANTS: Final[Table] = SQLModel.metadata.tables["grants"]

# Written as literals, so that SQLite sees that the partial indexes answer them.
TURN_IS_OPEN: Final[ColumnElement[bool]] = TURNS.c.state != literal("finished", literal_execute=True)
APPROVAL_IS_OPEN: Final[ColumnElement[bool]] = APPROVALS.c.state == literal("open", literal_execute=True)
