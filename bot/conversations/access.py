"""Who somebody is to this host, and whether they may talk to it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from core.contracts.addresses import Address, InboundEvent, Privacy, Sender
from core.contracts.delivery import place_key
from core.contracts.ids import PersonId
from core.contracts.people import PeopleStore, Person, PlaceState
from core.contracts.permissions import PersonRole
from core.contracts.runs import Turn

LOCAL_OWNER = "local:owner"
"""The identity of whoever sits at this machine: page, terminal and command line."""

_STEERING = frozenset({PersonRole.OWNER, PersonRole.OPERATOR})


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The `[access]` part of the configuration.

    `direct_messages`: pairing, allowlist or open. `groups`: mention, participate or all. `bots`
    are the identities of other bots that may talk; a bot is a member at most. `guests`: whether
    guests of an admitted place may talk there as its members do.
    """

    owners: Collection[str] = ()
    operators: Collection[str] = ()
    allow: Collection[str] = ()
    bots: Collection[str] = ()
    direct_messages: str = "pairing"
    groups: str = "mention"
    guests: bool = False


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
    """Answers who somebody is. Reads store and rules every time: a revoked right ends at once."""

    def __init__(self, people: PeopleStore, rules: Callable[[], AccessRules]) -> None:
        self._people = people
        self._rules = rules

    @property
    def rules(self) -> AccessRules:
        """The rules in force now."""
        return self._rules()

    def is_unheard_bot(self, sender: Sender) -> bool:
        """Whether this is a bot that no rule lets talk: it is overheard at most."""
        return sender.is_bot and sender.identity not in self.rules.bots

    async def standing(self, sender: Sender) -> Standing:
        """Return who sent something; a new identity becomes a person without rights."""
        person = await self._people.person_of(sender.identity)
        if person is None:
            person = await self._people.ensure_person(sender.identity, sender.name)
        if self.is_unheard_bot(sender):
            return Standing(person=person, role=PersonRole.STRANGER)
        return Standing(person=person, role=await self._role(person))

    async def standing_at(self, event: InboundEvent) -> Standing:
        """Return who sent something, as they stand where they sent it.

        In a group, server or workspace that is admitted everybody who is in it may talk, whatever the
        rules say of direct messages; guests only where a rule lets them. Nobody becomes an owner or
        operator by being somewhere.
        """
        who = await self.standing(event.sender)
        is_alone = event.privacy is Privacy.DIRECT and event.address.space is None
        is_kept_out = event.sender.is_guest and not self.rules.guests
        if who.may_talk or is_alone or is_kept_out or self.is_unheard_bot(event.sender):
            return who
        return replace(who, role=await self._role_in_group(event.address))

    async def role_of(self, person_id: PersonId | None, *, at: Address | None = None) -> PersonRole:
        """Return a person's role, in the group of `at` if that is one; nobody is a stranger."""
        if person_id is None:
            return PersonRole.STRANGER
        role = await self._role(await self._people.person(person_id))
        return await self._role_in_group(at) if role is PersonRole.STRANGER and at is not None else role

    async def may_steer(self, sender: Sender, turn: Turn) -> bool:
        """Return whether somebody may enter, interrupt or stop a turn: its requester, an operator, an owner."""
        who = await self.standing(sender)
        return who.person.id == turn.requester or who.role in _STEERING

    def wants_pairing(self, privacy: Privacy) -> bool:
        """Whether a stranger is offered a pairing code: in direct chats, where the rules say so."""
        return privacy is Privacy.DIRECT and self.rules.direct_messages == "pairing"

    async def _role_in_group(self, address: Address) -> PersonRole:
        """Return what a stranger is at an address: a member where an owner admitted the group."""
        place = await self._people.place(place_key(address))
        admitted = place is not None and place.state is PlaceState.ADMITTED
        return PersonRole.MEMBER if admitted else PersonRole.STRANGER

    async def _role(self, person: Person) -> PersonRole:
        rules = self.rules
        identities = set(person.identities)
        if identities & set(rules.bots):
            return PersonRole.MEMBER
        if LOCAL_OWNER in identities or identities & set(rules.owners):
            return PersonRole.OWNER
        if identities & set(rules.operators):
            return PersonRole.OPERATOR
        if rules.direct_messages == "open" or identities & set(rules.allow):
            return PersonRole.MEMBER
        for identity in person.identities:
            if await self._people.is_admitted(identity):
                return PersonRole.MEMBER
        return PersonRole.STRANGER
