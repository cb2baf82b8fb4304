"""What two-way sessions told their clients."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Table
from sqlmodel import Field, Index, SQLModel

from core.stores.tables.columns import CleanText, Instant


class SessionLineTable(SQLModel, table=True):
    """One object, as its line of JSON."""

    __tablename__ = "session_lines"
    __table_args__ = (Index("ix_session_lines_at", "at"),)

    conversation_id: str = Field(primary_key=True, foreign_key="conversations.id")
    seq: int = Field(primary_key=True)
    at: datetime = Field(sa_type=Instant)
    line: str = Field(sa_type=CleanText)


SESSION_LINES: Final[Table] = SQLModel.metadata.tables["session_lines"]
