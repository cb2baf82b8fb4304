"""Messages, runs and what runs told while they worked."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Table, literal, text
from sqlmodel import Field, Index, SQLModel, UniqueConstraint

from core.stores.tables.columns import CleanText, Instant


class RunTable(SQLModel, table=True):
    """One model step; at most one of a conversation is active."""

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("conversation_id", "request_id", name="uq_runs_request"),
        Index(
            "uq_runs_active",
            "conversation_id",
            unique=True,
            sqlite_where=text("status = 'active'"),
        ),
        Index("ix_runs_turn", "turn_id"),
    )

    id: str = Field(primary_key=True)
    conversation_id: str = Field(foreign_key="conversations.id")
    request_id: str = Field(sa_type=CleanText)
    turn_id: str | None
    """The turn that was open when the run began."""
    epoch: int
    status: str
    started_at: datetime = Field(sa_type=Instant)
    finished_at: datetime | None = Field(sa_type=Instant)
    stop_reason: str | None
    error: str = Field(sa_type=CleanText)
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    estimated: bool


class MessageTable(SQLModel, table=True):
    """One row of a transcript; `call_id` is the call that a tool message answers."""

    __tablename__ = "messages"
    __table_args__ = (
        UniqueConstraint("conversation_id", "seq", name="uq_messages_seq"),
        UniqueConstraint("conversation_id", "call_id", name="uq_messages_answer"),
        Index("ix_messages_run", "run_id"),
    )

    id: str = Field(primary_key=True)
    conversation_id: str = Field(foreign_key="conversations.id")
    seq: int
    role: str
    parts: str = Field(sa_type=CleanText)
    created_at: datetime = Field(sa_type=Instant)
    run_id: str | None = Field(foreign_key="runs.id")
    cut: bool
    call_id: str | None = Field(sa_type=CleanText)


class RunEventTable(SQLModel, table=True):
    """One event of a run; a stored message is kept once, in `messages`, and named here."""

    __tablename__ = "run_events"

    run_id: str = Field(primary_key=True, foreign_key="runs.id")
    seq: int = Field(primary_key=True)
    body: str = Field(sa_type=CleanText)
    message_id: str | None = Field(foreign_key="messages.id")
    stored_at: datetime = Field(sa_type=Instant)


RUNS: Final[Table] = SQLModel.metadata.tables["runs"]
MESSAGES: Final[Table] = SQLModel.metadata.tables["messages"]
RUN_EVENTS: Final[Table] = SQLModel.metadata.tables["run_events"]

RUN_IS_ACTIVE: Final[ColumnElement[bool]] = RUNS.c.status == literal("active", literal_execute=True)
"""Written as a literal, so that SQLite sees that the partial index answers it."""
