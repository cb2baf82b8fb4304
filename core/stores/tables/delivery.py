"""Inbox, outbox and the bindings between them and conversations."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import BigInteger, Integer, Table
from sqlmodel import Field, Index, SQLModel, UniqueConstraint

from core.stores.tables.columns import CleanText, Instant


class InboxTable(SQLModel, table=True):
    """A committed event; ids grow in the order of acceptance and are never used again."""

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("channel", "account", "event_key", name="uq_inbox_event"),
        Index("ix_inbox_address", "address_key", "id"),
        Index("ix_inbox_new", "address_key", "state"),
        Index("ix_inbox_conversation", "conversation_id", "state", "id"),
        Index("ix_inbox_turn", "turn_id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger().with_variant(Integer, "sqlite"))
    channel: str
    account: str = Field(sa_type=CleanText)
    event_key: str = Field(sa_type=CleanText)
    address_key: str = Field(sa_type=CleanText)
    state: str
    conversation_id: str | None
    turn_id: str | None
    """The turn that took it."""
    step: int = Field(sa_column_kwargs={"server_default": "0"})
    """The step of that turn it entered with; 0 opened it."""
    event: str = Field(sa_type=CleanText)
    received_at: datetime = Field(sa_type=Instant)


class OutboxTable(SQLModel, table=True):
    """An outgoing message. A chat is delivered by (`position`, `part`); parts come from splitting."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index("ix_outbox_chat", "chat_key", "position", "part"),
        Index("ix_outbox_waiting", "chat_key", "state"),
        Index("ix_outbox_address", "address_key", "position"),
        Index("ix_outbox_turn", "turn_id"),
        Index("ix_outbox_shown", "chat_key", "external_id"),
        Index("ix_outbox_state", "state"),
    )

    id: str = Field(primary_key=True)
    position: int = Field(sa_type=BigInteger)
    part: int
    chat_key: str = Field(sa_type=CleanText)
    address_key: str = Field(sa_type=CleanText)
    address: str = Field(sa_type=CleanText)
    content: str = Field(sa_type=CleanText)
    external_id: str | None = Field(sa_type=CleanText)
    reply_to: str | None = Field(sa_type=CleanText)
    attempts: int
    state: str
    turn_id: str | None
    created_at: datetime = Field(sa_type=Instant)
    not_before: datetime | None = Field(sa_type=Instant)
    sent_at: datetime | None = Field(sa_type=Instant)
    shown_at: datetime | None = Field(sa_type=Instant)
    unknown_sends: int = Field(sa_column_kwargs={"server_default": "0"})
    error: str = Field(sa_type=CleanText)


class BindingTable(SQLModel, table=True):
    """Which conversation an address holds now."""

    __tablename__ = "bindings"
    __table_args__ = (Index("ix_bindings_conversation", "conversation_id", "bound_at"),)

    address_key: str = Field(primary_key=True, sa_type=CleanText)
    address: str = Field(sa_type=CleanText)
    agent_id: str
    conversation_id: str
    bound_at: datetime = Field(sa_type=Instant)


class AttachmentTable(SQLModel, table=True):
    """A file that came with a message, or without `inbox_id` an image that a tool showed; an empty path was refused."""

    __tablename__ = "attachments"
    __table_args__ = (UniqueConstraint("inbox_id", "position", name="uq_attachments_position"),)

    id: str = Field(primary_key=True)
    conversation_id: str = Field(foreign_key="conversations.id")
    inbox_id: int | None = Field(sa_type=BigInteger)
    position: int
    name: str = Field(sa_type=CleanText)
    media_type: str = Field(sa_type=CleanText)
    size_bytes: int = Field(sa_type=BigInteger)
    path: str = Field(sa_type=CleanText)
    refusal: str = Field(sa_type=CleanText)
    created_at: datetime = Field(sa_type=Instant)
    transcript: str = Field(sa_type=CleanText, sa_column_kwargs={"server_default": ""})
    unheard: str = Field(sa_type=CleanText, sa_column_kwargs={"server_default": ""})
    left_out: str | None


INBOX: Final[Table] = SQLModel.metadata.tables["inbox"]
OUTBOX: Final[Table] = SQLModel.metadata.tables["outbox"]
BINDINGS: Final[Table] = SQLModel.metadata.tables["bindings"]
ATTACHMENTS: Final[Table] = SQLModel.metadata.tables["attachments"]
