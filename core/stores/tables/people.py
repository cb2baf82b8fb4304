"""People, their identities, pairings and the audit trail."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import BigInteger, ColumnElement, Integer, Table, literal, text
from sqlmodel import Field, Index, SQLModel

from core.stores.tables.columns import CleanText, Instant


class PersonTable(SQLModel, table=True):
    """One human."""

    __tablename__ = "people"

    id: str = Field(primary_key=True)
    name: str = Field(sa_type=CleanText)
    created_at: datetime = Field(sa_type=Instant)


class IdentityTable(SQLModel, table=True):
    """What one platform calls a person."""

    __tablename__ = "identities"
    __table_args__ = (Index("ix_identities_person", "person_id"),)

    identity: str = Field(primary_key=True, sa_type=CleanText)
    person_id: str = Field(foreign_key="people.id")
    linked_at: datetime = Field(sa_type=Instant)


class PairingTable(SQLModel, table=True):
    """A request to talk to this host; at most one of an identity is open."""

    __tablename__ = "pairings"
    __table_args__ = (
        Index(
            "uq_pairings_open",
            "identity",
            unique=True,
            sqlite_where=text("state = 'open'"),
        ),
        Index("ix_pairings_identity", "identity", "state"),
    )

    code: str = Field(primary_key=True, sa_type=CleanText)
    identity: str = Field(sa_type=CleanText)
    name: str = Field(sa_type=CleanText)
    state: str
    created_at: datetime = Field(sa_type=Instant)
    expires_at: datetime = Field(sa_type=Instant)


class PlaceTable(SQLModel, table=True):
    """What was decided about a group chat."""

    __tablename__ = "places"

    key: str = Field(primary_key=True, sa_type=CleanText)
    state: str
    by: str | None
    at: datetime = Field(sa_type=Instant)


class AuditTable(SQLModel, table=True):
    """One act that somebody may have to answer for."""

    __tablename__ = "audit"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger().with_variant(Integer, "sqlite"))
    at: datetime = Field(sa_type=Instant)
    who: str = Field(sa_type=CleanText)
    what: str = Field(sa_type=CleanText)
    detail: str = Field(sa_type=CleanText)


PEOPLE: Final[Table] = SQLModel.metadata.tables["people"]
IDENTITIES: Final[Table] = SQLModel.metadata.tables["identities"]
PAIRINGS: Final[Table] = SQLModel.metadata.tables["pairings"]
PLACES: Final[Table] = SQLModel.metadata.tables["places"]
AUDIT: Final[Table] = SQLModel.metadata.tables["audit"]

PAIRING_IS_OPEN: Final[ColumnElement[bool]] = PAIRINGS.c.state == literal("open", literal_execute=True)
"""Written as a literal, so that SQLite sees that the partial index answers it."""
