"""People, what they may do, and the record of what they did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from core.contracts.ids import PersonId


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One human. `identities` are `<channel>:<platform id>`."""

    id: PersonId
    name: str
    identities: tuple[str, ...]


class PairingState(StrEnum):
    """A pairing code is used once."""

    OPEN = "open"
    ACCEPTED = "accepted"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """An unknown person's request to talk to this host."""

    code: str
    identity: str
    name: str
    state: PairingState
    created_at: datetime
    expires_at: datetime


class PlaceState(StrEnum):
    """Whether an owner let the agent work in a group. `ASKED`: the question stands there."""

    ASKED = "asked"
    ADMITTED = "admitted"
    REFUSED = "refused"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A group chat with all its threads; `key` is `core.contracts.delivery.chat_key` of it."""

    key: str
    state: PlaceState
    by: PersonId | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One act that somebody may have to answer for. `detail` holds no secrets and no message text."""

    at: datetime
    who: str
    what: str
    detail: Mapping[str, str]


class PeopleStore(Protocol):
    """People, pairings and the audit trail. One transaction each; see `core.contracts.store`."""

    async def ensure_person(self, identity: str, name: str) -> Person:
        """Return the person of an identity, creating it when it is new."""
        ...

    async def person(self, person_id: PersonId) -> Person:
        """Return the person, or raise `NotFound`."""
        ...

    async def person_of(self, identity: str) -> Person | None:
        """Return the person of an identity."""
        ...

    async def link(self, identity: str, person_id: PersonId) -> None:
        """Make an identity belong to a person."""
        ...

    async def is_admitted(self, identity: str) -> bool:
        """Return whether a pairing of this identity was accepted."""
        ...

    async def open_pairing(self, identity: str, name: str, *, code: str, expires_at: datetime) -> Pairing:
        """Return the identity's open pairing, or store a new one with `code`."""
        ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """Return open pairings, oldest first."""
        ...

    async def accept_pairing(self, code: str, *, now: datetime) -> Pairing | None:
        """Accept an open, unexpired code once; None when there is none. Compare-and-set."""
        ...

    async def place(self, key: str) -> Place | None:
        """Return what was decided about a group; None when it is new."""
        ...

    async def set_place(self, place: Place) -> None:
        """Store what was decided about a group, replacing what was."""
        ...

    async def record(self, entry: AuditEntry) -> None:
        """Append to the audit trail."""
        ...

    async def audit(self, *, limit: int = 100) -> tuple[AuditEntry, ...]:
        """Return the newest entries first."""
        ...
