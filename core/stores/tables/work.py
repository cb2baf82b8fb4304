"""Doorbells that were submitted and not yet answered."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Table
from sqlmodel import Field, SQLModel

from core.stores.tables.columns import CleanText, Instant


class WorkItemTable(SQLModel, table=True):
    """A doorbell of an embedded engine."""

    __tablename__ = "work_items"

    id: str = Field(primary_key=True, sa_type=CleanText)
    queue: str
    key: str = Field(sa_type=CleanText)
    due_at: datetime = Field(sa_type=Instant)


WORK_ITEMS: Final[Table] = SQLModel.metadata.tables["work_items"]
