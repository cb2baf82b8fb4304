"""What every PeopleStore promises; run on SQLite in a file and in memory."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import PersonId
from core.contracts.people import AuditEntry, Pairing, PairingState, Place, PlaceState
from tests.core.stores.samples import CHAT, START, World, open_world

ALICE = "telegram:111"
DEADLINE = START + timedelta(hours=1)


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        yield opened


async def test_a_new_identity_becomes_a_person_once(world: World):
    people = world.stores.people
    assert await people.person_of(ALICE) is None
    created = await asyncio.gather(*[people.ensure_person(ALICE, "Alice") for _ in range(5)])
    assert {person.id for person in created} == {created[0].id}
    assert (created[0].name, created[0].identities) == ("Alice", (ALICE,))
    assert await people.person(created[0].id) == await people.person_of(ALICE) == created[0]


async def test_a_linked_identity_is_the_same_person(world: World):
    people = world.stores.people
    alice = await people.ensure_person(ALICE, "Alice")
    other = await people.ensure_person("slack:U1", "alice.s")
    await people.link("slack:U1", alice.id)
    linked = await people.person_of("slack:U1")
    assert linked is not None
    assert (linked.id, set(linked.identities)) == (alice.id, {ALICE, "slack:U1"})
    assert (await people.person(other.id)).identities == ()


async def test_linking_to_nobody_is_not_found(world: World):
    with pytest.raises(NotFound):
        await world.stores.people.link(ALICE, PersonId("person-x"))
    assert await world.stores.people.person_of(ALICE) is None
    with pytest.raises(NotFound):
        await world.stores.people.person(PersonId("person-x"))


async def open_pairing(world: World, code: str = "c1", identity: str = ALICE) -> Pairing:
    return await world.stores.people.open_pairing(identity, "Alice", code=code, expires_at=DEADLINE)


async def test_an_identity_has_one_open_pairing(world: World):
    first = await open_pairing(world)
    assert (first.code, first.state, first.created_at, first.expires_at) == ("c1", PairingState.OPEN, START, DEADLINE)
    assert await open_pairing(world, "c2") == first
    assert await world.stores.people.pairings() == (first,)


async def test_an_expired_pairing_makes_room_for_a_new_one(world: World):
    await open_pairing(world)
    await world.clock.advance(timedelta(hours=1))
    assert await world.stores.people.pairings() == ()
    new = await world.stores.people.open_pairing(ALICE, "Alice", code="c2", expires_at=DEADLINE + timedelta(hours=1))
    assert new.code == "c2"


async def test_a_code_in_use_is_refused(world: World):
    await open_pairing(world)
    with pytest.raises(InvalidInput):
        await open_pairing(world, "c1", "slack:U1")


async def test_open_pairings_come_oldest_first(world: World):
    for code, identity in (("z", "slack:U1"), ("a", ALICE)):
        await open_pairing(world, code, identity)
        await world.clock.advance(timedelta(minutes=1))
    assert [pairing.code for pairing in await world.stores.people.pairings()] == ["z", "a"]


async def test_a_code_is_accepted_once(world: World):
    await open_pairing(world)
    accept = [world.stores.people.accept_pairing("c1", now=START) for _ in range(3)]
    outcomes = [outcome for outcome in await asyncio.gather(*accept) if outcome is not None]
    assert [(pairing.identity, pairing.state) for pairing in outcomes] == [(ALICE, PairingState.ACCEPTED)]
    assert await world.stores.people.is_admitted(ALICE)
    assert not await world.stores.people.is_admitted("slack:U1")
    assert await world.stores.people.pairings() == ()


async def test_a_late_or_unknown_code_is_not_accepted(world: World):
    await open_pairing(world)
    assert await world.stores.people.accept_pairing("c1", now=DEADLINE) is None
    assert await world.stores.people.accept_pairing("c9", now=START) is None
    assert not await world.stores.people.is_admitted(ALICE)


async def test_the_audit_trail_shows_the_newest_first(world: World):
    entries = [AuditEntry(at=START, who="p1", what=f"act {n}", detail={"n": str(n), "ä": "ö"}) for n in range(3)]
    for entry in entries:
        await world.stores.people.record(entry)
    assert await world.stores.people.audit(limit=2) == (entries[2], entries[1])


async def test_what_was_decided_about_a_group_is_kept(world: World):
    people = world.stores.people
    assert await people.place(CHAT) is None
    asked = Place(key=CHAT, state=PlaceState.ASKED, by=None, at=START)
    admitted = Place(key=CHAT, state=PlaceState.ADMITTED, by=PersonId("person-1"), at=START)
    for place in (asked, admitted):
        await people.set_place(place)
        assert await people.place(CHAT) == place
    assert await people.place(f"{CHAT}0") is None
