"""Who people are, as the fake Slack tells it to the real client over the wire."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from channels.slack.people import ASK_AGAIN_AFTER, REMEMBERED_FOR, People
from core.contracts.addresses import Sender
from tests.channels.slack import sending
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import (
    ALICE,
    ALICE_DM,
    BOB,
    BOT_USER,
    EXTERNAL,
    GUEST,
    OTHER_BOT,
    OTHER_BOT_USER,
    OTHER_TEAM,
    PRIVATE,
    ROOM,
    SHARED,
    TEAM,
    TRIO,
)

A_MOMENT = timedelta(seconds=1)


@asynccontextmanager
async def opened(**settings):
    """Give a scene, and who knows its people."""
    async with sending.opened() as scene:
        people = People(scene.api, scene.clock, **{"name": "slack", "team": TEAM} | settings)
        try:
            yield scene, people
        finally:
            await people.aclose()


def asked(scene, method="users.info"):
    return len(scene.server.calls_of(method))


async def known(people, user):
    """Return what somebody is called, when that is known."""
    async with asyncio.timeout(60):
        while (name := await people.name(user)) == user:
            await asyncio.sleep(0)
    return name


def show(user, **fields):
    """Return what users.info says of somebody."""
    return {"ok": True, "user": {"id": user, "team_id": TEAM} | fields}


# Who somebody is


async def test_a_person_has_an_identity_a_name_and_the_groups_they_are_in():
    async with opened() as (scene, people):
        scene.server.workspace.usergroups["S0DEV"] = ("dev", [BOB, ALICE])

        assert await people.sender(ALICE) == Sender(
            identity="slack:T0TEAM/U0ALICE", name="alice", roles=("slack:S0OPS", "slack:S0DEV")
        )
        assert (await people.sender(BOB)).roles == ("slack:S0DEV",)
        assert (await people.sender(GUEST)).roles == ()


async def test_identities_and_roles_carry_the_name_of_the_adapter():
    async with opened(name="work") as (_, people):
        sender = await people.sender(ALICE)

        assert (sender.identity, sender.roles) == ("work:T0TEAM/U0ALICE", ("work:S0OPS",))


@pytest.mark.parametrize(
    ("fields", "is_guest"),
    [
        ({"is_restricted": True}, True),
        ({"is_restricted": True, "is_ultra_restricted": True}, True),
        ({"is_ultra_restricted": True}, True),
        ({"is_restricted": False, "is_ultra_restricted": False}, False),
        ({"is_restricted": None}, False),
        ({"team_id": OTHER_TEAM}, True),
        ({"is_admin": True, "team_id": OTHER_TEAM}, True),
        ({}, False),
    ],
)
async def test_whoever_has_less_than_a_members_rights_or_is_of_another_workspace_is_a_guest(fields, is_guest):
    async with opened() as (scene, people):
        scene.server.fail_next("users.info", 200, show(ALICE, **fields))

        assert (await people.sender(ALICE)).is_guest is is_guest


async def test_a_stranger_of_a_connected_workspace_is_known_under_that():
    async with opened() as (_, people):
        stranger = await people.sender(EXTERNAL, team=OTHER_TEAM)

        assert (stranger.identity, stranger.is_guest) == (f"slack:{OTHER_TEAM}/{EXTERNAL}", True)
        assert await people.sender(EXTERNAL) == await people.sender(EXTERNAL, team=TEAM) == stranger
        assert (await people.sender(GUEST)).identity == f"slack:{TEAM}/{GUEST}"


async def test_bots_are_told_apart_from_people():
    async with opened() as (_, people):
        assert (await people.sender(OTHER_BOT_USER)).is_bot is True
        assert (await people.sender(BOT_USER)).is_bot is True
        assert (await people.sender(ALICE)).is_bot is False


async def test_a_bot_without_a_user_is_known_by_its_own_id_and_nobody_is_asked():
    async with opened() as (scene, people):
        assert people.bot(OTHER_BOT, "Builds") == Sender(
            identity=f"slack:{TEAM}/{OTHER_BOT}", name="Builds", is_bot=True
        )
        assert people.bot(OTHER_BOT, "").name == OTHER_BOT
        assert scene.server.calls == []


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"profile": {"display_name": "al", "real_name": "Al Ice"}, "real_name": "Alice", "name": "alice"}, "al"),
        ({"profile": {"display_name": "", "real_name": "Al Ice"}, "real_name": "Alice", "name": "alice"}, "Alice"),
        ({"profile": {"display_name": "  ", "real_name": "Al Ice"}, "name": "alice"}, "Al Ice"),
        ({"profile": None, "name": "alice"}, "alice"),
        ({"profile": {"display_name": 5}, "name": None}, ALICE),
        ({}, ALICE),
    ],
)
async def test_people_are_called_what_they_chose_to_be_called(fields, name):
    async with opened() as (scene, people):
        scene.server.fail_next("users.info", 200, show(ALICE, **fields))

        assert await people.name(ALICE) == name
        assert (await people.sender(ALICE)).name == name


# Asked once


async def test_a_person_is_asked_for_once_in_ten_minutes():
    async with opened() as (scene, people):
        await people.sender(ALICE)
        scene.server.workspace.people[ALICE].name = "alicia"
        await scene.clock.advance(REMEMBERED_FOR - A_MOMENT)
        assert (await people.sender(ALICE)).name == await people.name(ALICE) == "alice"
        assert (asked(scene), asked(scene, "usergroups.list")) == (1, 1)
        await scene.clock.advance(A_MOMENT)
        assert await people.name(ALICE) == "alicia"

        assert asked(scene) == 2


async def test_whoever_asks_while_it_is_asked_gets_the_same_answer():
    async with opened() as (scene, people):
        gates = [scene.server.gate_next(method) for method in ("users.info", "usergroups.list")]
        asking = [asyncio.create_task(people.sender(ALICE)) for _ in range(5)]
        await scene.until(lambda: (asked(scene), asked(scene, "usergroups.list")) == (1, 1))
        for gate in gates:
            gate.opened.set()
        senders = await asyncio.gather(*asking)

        assert {(sender.name, sender.roles) for sender in senders} == {("alice", ("slack:S0OPS",))}
        assert (asked(scene), asked(scene, "usergroups.list")) == (1, 1)


async def test_groups_are_asked_for_once_for_everybody_and_again_later():
    async with opened() as (scene, people):
        for user in (ALICE, BOB, GUEST):
            await people.sender(user)
        scene.server.workspace.usergroups["S0OPS"] = ("ops", [BOB])
        assert (await people.sender(ALICE)).roles == ("slack:S0OPS",)
        assert asked(scene, "usergroups.list") == 1
        await scene.clock.advance(REMEMBERED_FOR)

        assert (await people.sender(ALICE)).roles == ()
        assert (await people.sender(BOB)).roles == ("slack:S0OPS",)
        assert asked(scene, "usergroups.list") == 2


async def test_somebody_who_is_a_stranger_and_a_room_of_the_same_id_are_not_mixed_up():
    async with opened() as (scene, people):
        await people.name(ROOM)
        room = await people.room(ROOM)

        assert room["id"] == ROOM
        assert asked(scene) == asked(scene, "conversations.info") == 1


async def test_of_very_many_people_those_asked_for_first_are_forgotten():
    async with opened() as (scene, people):
        many = [f"U{number}" for number in range(2_001)]
        for user in many:
            scene.server.workspace.add_person(user)
        for start in range(0, len(many), 50):
            await asyncio.gather(*map(people.name, many[start : start + 50]))
        before = asked(scene)
        await people.name(many[-1])
        assert asked(scene) == before
        await people.name(many[0])

        assert asked(scene) == before + 1


# What Slack does not tell


FAILURES = [
    pytest.param(lambda server: server.fail_next("users.info", 503), id="503"),
    pytest.param(lambda server: server.fault("users.info", Fault.FLOODED, seconds=9), id="429"),
    pytest.param(lambda server: server.fault("users.info", Fault.LOST_REQUEST, times=2), id="lost"),
    pytest.param(lambda server: server.fail_next("users.info", 200, "<html>"), id="no answer of Slack's"),
    pytest.param(lambda server: server.refuse_next("users.info", "user_not_found"), id="refused"),
    pytest.param(lambda server: server.take_scope("users:read"), id="no scope"),
    pytest.param(lambda server: server.revoke(), id="no token"),
]


@pytest.mark.parametrize("fails", FAILURES)
async def test_somebody_whom_slack_does_not_tell_of_is_what_the_event_says(fails, caplog):
    caplog.set_level("INFO")
    async with opened() as (scene, people):
        fails(scene.server)
        sender = await people.sender(EXTERNAL, team=OTHER_TEAM, name="stranger")

        assert sender == Sender(identity=f"slack:{OTHER_TEAM}/{EXTERNAL}", name="stranger", is_guest=True)
        asked_before = asked(scene)
        assert (await people.name(EXTERNAL), asked(scene)) == (EXTERNAL, asked_before)
        assert "user" in {record.what for record in caplog.records if record.message == "slack_not_told"}


async def test_somebody_of_whom_nothing_is_known_is_called_by_their_id():
    async with opened() as (_, people):
        assert await people.sender("U0NOBODY") == Sender(identity=f"slack:{TEAM}/U0NOBODY", name="U0NOBODY")


async def test_an_answer_that_did_not_come_is_asked_for_again_after_a_minute():
    async with opened() as (scene, people):
        scene.server.fail_next("users.info", 503)
        scene.server.fail_next("usergroups.list", 503)
        before = await people.sender(ALICE)
        await scene.clock.advance(ASK_AGAIN_AFTER - A_MOMENT)
        assert await people.sender(ALICE) == before
        assert (asked(scene), asked(scene, "usergroups.list")) == (1, 1)
        await scene.clock.advance(A_MOMENT)
        after = await people.sender(ALICE)

        assert (before.name, before.roles) == (ALICE, ())
        assert (after.name, after.roles) == ("alice", ("slack:S0OPS",))


@pytest.mark.parametrize("fault", [Fault.FLOODED, Fault.ANSWERED, Fault.LOST_REQUEST])
async def test_what_was_told_holds_on_while_slack_cannot_be_asked(fault):
    async with opened() as (scene, people):
        before = await people.sender(GUEST)
        roles = (await people.sender(ALICE)).roles
        await scene.clock.advance(REMEMBERED_FOR)
        for method in ("users.info", "usergroups.list"):
            scene.server.fault(method, fault, times=3)

        assert await people.sender(GUEST) == before
        assert before.is_guest
        assert (await people.sender(ALICE)).roles == roles == ("slack:S0OPS",)
        await scene.clock.advance(ASK_AGAIN_AFTER)
        assert (await people.sender(GUEST)).is_guest


async def test_what_was_told_holds_no_longer_when_slack_refuses_to_tell_it():
    async with opened() as (scene, people):
        await people.sender(ALICE)
        await scene.clock.advance(REMEMBERED_FOR)
        scene.server.take_scope("usergroups:read", "users:read")

        assert await people.sender(ALICE) == Sender(identity=f"slack:{TEAM}/{ALICE}", name=ALICE)


async def test_without_the_scope_for_groups_people_are_known_all_the_same():
    async with opened() as (scene, people):
        scene.server.take_scope("usergroups:read")

        assert await people.sender(ALICE) == Sender(identity=f"slack:{TEAM}/{ALICE}", name="alice")


async def test_nobody_waits_long_for_a_name_and_it_is_known_when_it_came_late():
    async with opened(patience_seconds=0.2) as (scene, people):
        gate = scene.server.gate_next("users.info")
        assert (await people.sender(ALICE, name="al")).name == "al"
        gate.opened.set()

        assert await known(people, ALICE) == "alice"
        assert asked(scene) == 1


async def test_a_question_that_was_waited_for_in_vain_holds_up_no_other_event():
    async with opened(patience_seconds=0.2) as (scene, people):
        gate = scene.server.gate_next("users.info")
        async with asyncio.timeout(60):
            names = [await people.name(ALICE) for _ in range(50)]

        assert set(names) == {ALICE}
        assert asked(scene) == 1
        gate.opened.set()


async def test_while_a_new_answer_is_late_the_old_one_holds():
    async with opened(patience_seconds=0.2) as (scene, people):
        await known(people, ALICE)
        await scene.clock.advance(REMEMBERED_FOR)
        gate = scene.server.gate_next("users.info")
        assert await people.name(ALICE) == "alice"
        gate.opened.set()


async def test_closing_ends_what_is_asked():
    async with opened() as (scene, people):
        scene.server.gate_next("users.info")
        scene.server.gate_next("conversations.info")
        asking = [asyncio.create_task(people.name(ALICE)), asyncio.create_task(people.room(ROOM))]
        await scene.until(lambda: asked(scene) == asked(scene, "conversations.info") == 1)
        async with asyncio.timeout(60):
            await people.aclose()

        assert await asyncio.gather(*asking) == [ALICE, {}]
        await people.aclose()


@pytest.mark.parametrize(
    "groups",
    [
        None,
        "x",
        [None, 5, "x"],
        [{}, {"id": "S1"}, {"id": "S1", "users": None}, {"id": "S1", "users": "U0ALICE"}],
        [{"id": "S1", "users": [None, 5, {}, ["U0ALICE"]]}],
    ],
)
async def test_groups_that_cannot_be_read_are_none(groups):
    async with opened() as (scene, people):
        scene.server.fail_next("usergroups.list", 200, {"ok": True, "usergroups": groups})

        assert (await people.sender(ALICE)).roles == ()


@pytest.mark.parametrize("user", [None, "x", [], 5])
async def test_a_person_who_cannot_be_read_is_nobody_in_particular(user):
    async with opened() as (scene, people):
        scene.server.fail_next("users.info", 200, {"ok": True, "user": user})

        assert await people.sender(ALICE, name="al") == Sender(
            identity=f"slack:{TEAM}/{ALICE}", name="al", roles=("slack:S0OPS",)
        )


# Rooms


@pytest.mark.parametrize(
    ("channel", "marks"),
    [
        (ROOM, ()),
        (PRIVATE, ("is_private",)),
        (SHARED, ("is_ext_shared",)),
        (TRIO, ("is_private", "is_mpim")),
        (ALICE_DM, ("is_im", "is_private")),
    ],
)
async def test_a_room_is_what_slack_shows_of_it(channel, marks):
    async with opened() as (_, people):
        room = await people.room(channel)

        assert {mark for mark in ("is_private", "is_mpim", "is_ext_shared", "is_im") if room[mark]} == set(marks)


async def test_a_room_is_asked_for_once_and_one_that_cannot_be_seen_is_empty():
    async with opened() as (scene, people):
        rooms = [await people.room(channel) for channel in (ROOM, ROOM, "C0SECRET", "C0SECRET")]

        assert rooms[0] == rooms[1] != {}
        assert rooms[2:] == [{}, {}]
        assert asked(scene, "conversations.info") == 2
