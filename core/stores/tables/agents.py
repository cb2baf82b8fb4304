"""Agents and their conversations."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Table
from sqlmodel import Field, Index, SQLModel

from core.stores.tables.columns import CleanText, Instant


class AgentTable(SQLModel, table=True):
    """An agent; `model` is the JSON of its model settings."""

    __tablename__ = "agents"

    id: str = Field(primary_key=True)
    name: str = Field(unique=True, sa_type=CleanText)
    model: str = Field(sa_type=CleanText)
    permission_mode: str
    toolset: str
    workspace: str = Field(sa_type=CleanText)
    memory_id: str
    created_at: datetime = Field(sa_type=Instant)
    queue_mode: str = Field(sa_column_kwargs={"server_default": "steer"})


class ConversationTable(SQLModel, table=True):
    """A conversation; `next_seq` is what its next message gets, `epoch` its latest claim."""

    __tablename__ = "conversations"
    __table_args__ = (Index("ix_conversations_newest", "agent_id", "created_at"),)

    id: str = Field(primary_key=True)
    agent_id: str = Field(foreign_key="agents.id")
    audience: str = Field(sa_type=CleanText)
    permission_mode: str | None
    epoch: int
    next_seq: int
    created_at: datetime = Field(sa_type=Instant)
    title: str = Field(sa_type=CleanText)
    hidden: bool
    prompt_stale: str = Field(sa_type=CleanText)
    """Why the next run must compile afresh; empty when it need not."""
    queue_mode: str | None
    paused: bool = Field(sa_column_kwargs={"server_default": "0"})


class PromptTable(SQLModel, table=True):
    """The system prompt a conversation sends, byte for byte, until it is compiled afresh."""

    __tablename__ = "prompts"

    conversation_id: str = Field(primary_key=True, foreign_key="conversations.id")
    text: str = Field(sa_type=CleanText)
    revision: str
    seen_revision: str
    stamp: str
    tools_json: str = Field(sa_type=CleanText)
    reason: str = Field(sa_type=CleanText)


AGENTS: Final[Table] = SQLModel.metadata.tables["agents"]
CONVERSATIONS: Final[Table] = SQLModel.metadata.tables["conversations"]
PROMPTS: Final[Table] = SQLModel.metadata.tables["prompts"]
