"""Who somebody is to this host."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.conversations.access import LOCAL_OWNER, AccessDesk, AccessRules
from core.contracts.addresses import Privacy, Sender
from core.contracts.permissions import PersonRole
from tests.core.stores.samples import open_world

ALICE = Sender(identity="telegram:111", name="Alice")


@pytest.fixture
async def people():
    async with open_world(":memory:") as world:
        yield world.stores.people


def desk(people, **rules) -> AccessDesk:
    return AccessDesk(people, AccessRules(**rules))


@pytest.mark.parametrize(
    ("rules", "role"),
    [
        ({}, PersonRole.STRANGER),
        ({"owners": ["telegram:111"]}, PersonRole.OWNER),
        ({"operators": ["telegram:111"]}, PersonRole.OPERATOR),
        ({"owners": ["telegram:111"], "operators": ["telegram:111"]}, PersonRole.OWNER),
        ({"allow": ["telegram:111"]}, PersonRole.MEMBER),
        ({"direct_messages": "open"}, PersonRole.MEMBER),
        ({"direct_messages": "allowlist"}, PersonRole.STRANGER),
        ({"owners": ["telegram:1111", "slack:111", "111"]}, PersonRole.STRANGER),
    ],
)
async def test_the_rules_say_who_one_is(people, rules, role):
    standing = await desk(people, **rules).standing(ALICE)
    assert standing.role is role
    assert standing.may_talk is (role is not PersonRole.STRANGER)


async def test_a_new_sender_becomes_a_person_once(people):
    access = desk(people)
    first = await access.standing(ALICE)
    again = await access.standing(Sender(identity="telegram:111", name="Alice B."))
    assert first.person.id == again.person.id


async def test_a_linked_identity_has_the_rights_of_its_person(people):
    access = desk(people, owners=["slack:U0ALICE"])
    alice = (await access.standing(ALICE)).person
    await people.link("slack:U0ALICE", alice.id)
    assert (await access.standing(ALICE)).role is PersonRole.OWNER


async def test_who_sits_at_this_machine_is_an_owner(people):
    assert (await desk(people).standing(Sender(identity=LOCAL_OWNER, name="me"))).role is PersonRole.OWNER


async def test_a_paired_person_may_talk(people):
    access = desk(people)
    await access.standing(ALICE)
    now = people._clock.now()
    await people.open_pairing(ALICE.identity, "Alice", code="CODE", expires_at=now + timedelta(hours=1))
    assert not (await access.standing(ALICE)).may_talk
    await people.accept_pairing("CODE", now=now)
    assert (await access.standing(ALICE)).role is PersonRole.MEMBER


async def test_nobody_is_a_stranger(people):
    assert await desk(people, direct_messages="open").role_of(None) is PersonRole.STRANGER


@pytest.mark.parametrize(
    ("rule", "privacy", "offered"),
    [
        ("pairing", Privacy.DIRECT, True),
        ("pairing", Privacy.PRIVATE_GROUP, False),
        ("pairing", Privacy.PUBLIC, False),
        ("allowlist", Privacy.DIRECT, False),
        ("open", Privacy.DIRECT, False),
    ],
)
async def test_a_code_is_offered_in_direct_chats_where_the_rules_say_so(people, rule, privacy, offered):
    assert desk(people, direct_messages=rule).wants_pairing(privacy) is offered
