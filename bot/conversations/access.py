"""Who somebody is to this host, and whether they may talk to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.contracts.addresses import Privacy, Sender
from core.contracts.ids import PersonId
from core.contracts.people import PeopleStore, Person
from core.contracts.permissions import PersonRole

LOCAL_OWNER = "local:owner"
"""The identity of whoever sits at this machine: page, terminal and command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The `[access]` part of the configuration. `direct_messages`: pairing, allowlist or open."""

    owners: Collection[str] = ()
    operators: Collection[str] = ()
    allow: Collection[str] = ()
    direct_messages: str = "pairing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A sender as this host knows them."""

    person: Person
    role: PersonRole

    @property
    def may_talk(self) -> bool:
        """Whether a message of theirs starts a turn."""
        return self.role is not PersonRole.STRANGER


class AccessDesk:
    """Answers who somebody is. Reads the store every time: a revoked right ends at once."""

    def __init__(self, people: PeopleStore, rules: AccessRules) -> None:
        self._people = people
        self._rules = rules

    async def standing(self, sender: Sender) -> Standing:
        """Return who sent something; a new identity becomes a person without rights."""
        person = await self._people.person_of(sender.identity)
        if person is None:
            person = await self._people.ensure_person(sender.identity, sender.name)
        return Standing(person=person, role=await self._role(person))

    async def role_of(self, person_id: PersonId | None) -> PersonRole:
        """Return a person's role; nobody is a stranger."""
        if person_id is None:
            return PersonRole.STRANGER
        return await self._role(await self._people.person(person_id))

    def wants_pairing(self, privacy: Privacy) -> bool:
        """Whether a stranger is offered a pairing code: in direct chats, where the rules say so."""
        return privacy is Privacy.DIRECT and self._rules.direct_messages == "pairing"

    async def _role(self, person: Person) -> PersonRole:
        identities = set(person.identities)
        if LOCAL_OWNER in identities or identities & set(self._rules.owners):
            return PersonRole.OWNER
        if identities & set(self._rules.operators):
            return PersonRole.OPERATOR
        if self._rules.direct_messages == "open" or identities & set(self._rules.allow):
            return PersonRole.MEMBER
        for identity in person.identities:
            if await self._people.is_admitted(identity):
                return PersonRole.MEMBER
        return PersonRole.STRANGER
