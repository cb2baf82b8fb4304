"""Who somebody is to this host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.conversations.access import LOCAL_OWNER, AccessDesk, AccessRules
from core.contracts.addresses import Address, InboundEvent, MessageBody, Privacy, Sender
from core.contracts.delivery import chat_key
from core.contracts.people import Place, PlaceState
from core.contracts.permissions import PersonRole
from core.contracts.runs import Turn, TurnState
from tests.core.stores.samples import open_world

ALICE = Sender(identity="telegram:111", name="Alice")


@pytest.fixture
async def people():
    async with open_world(":memory:") as world:
        yield world.stores.people


def desk(people, **rules) -> AccessDesk:
    return AccessDesk(people, lambda: AccessRules(**rules))


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
        ({"owners": ["telegram:111"], "bots": ["telegram:111"]}, PersonRole.MEMBER),
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


BOT = Sender(identity="telegram:999", name="Peer", is_bot=True)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOPIC = Address(channel="telegram", account="bot", chat="-100", thread="7")


async def decided(people, state: PlaceState) -> None:
    await people.set_place(Place(key=chat_key(TOPIC), state=state, by=None, at=NOON))


def said(sender: Sender, privacy: Privacy = Privacy.PRIVATE_GROUP) -> InboundEvent:
    return InboundEvent(
        address=TOPIC, key="e", sender=sender, body=MessageBody(text="x"), privacy=privacy, sent_at=NOON
    )


@pytest.mark.parametrize("state", [None, *PlaceState])
async def test_a_stranger_may_talk_in_a_group_that_an_owner_admitted(people, state):
    access = desk(people)
    if state is not None:
        await decided(people, state)
    admitted = state is PlaceState.ADMITTED
    assert (await access.standing_at(said(ALICE))).may_talk is admitted
    assert not (await access.standing_at(said(ALICE, Privacy.DIRECT))).may_talk
    alice = (await access.standing(ALICE)).person
    assert (await access.role_of(alice.id, at=TOPIC)) is (PersonRole.MEMBER if admitted else PersonRole.STRANGER)


async def test_a_group_takes_no_right_away(people):
    await decided(people, PlaceState.ASKED)
    access = desk(people, owners=[ALICE.identity])
    assert (await access.standing_at(said(ALICE))).role is PersonRole.OWNER


@pytest.mark.parametrize("rules", [{}, {"owners": [BOT.identity]}, {"allow": [BOT.identity]}])
async def test_a_bot_that_is_not_listed_as_one_may_talk_nowhere(people, rules):
    await decided(people, PlaceState.ADMITTED)
    access = desk(people, **rules)
    assert not (await access.standing_at(said(BOT))).may_talk
    assert access.is_unheard_bot(BOT)
    assert not access.is_unheard_bot(ALICE)


async def test_rules_are_read_whenever_somebody_asks(people):
    rules = [AccessRules(), AccessRules(owners=[ALICE.identity])]
    access = AccessDesk(people, lambda: rules[-1])
    assert (await access.standing(ALICE)).role is PersonRole.OWNER
    rules.pop()
    assert (await access.standing(ALICE)).role is PersonRole.STRANGER


async def test_a_turn_is_steered_by_who_asked_for_it_an_operator_or_an_owner(people):
    bob, carol, dan = (Sender(identity=f"telegram:{number}", name="x") for number in (2, 3, 4))
    access = desk(people, owners=[bob.identity], operators=[carol.identity], allow=[dan.identity])
    requester = (await access.standing(ALICE)).person
    turn = Turn(
        id="t",
        conversation_id="c",
        agent_id="a",
        requester=requester.id,
        origin=None,
        state=TurnState.RUNNING,
        started_at=NOON,
    )
    assert [await access.may_steer(who, turn) for who in (ALICE, bob, carol, dan)] == [True, True, True, False]
