import itertools
import logging
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bot.console.server import serve
from channels.telegram.adapter import WebhookSettings
from channels.telegram.administrators import REQUESTS_AT_ONCE, Administrators
from channels.telegram.limits import Timing
from channels.telegram.transport import BotApi
from core.contracts.addresses import (
    Address,
    Button,
    CardContent,
    InboundEvent,
    MembershipBody,
    MessageBody,
    MigrationBody,
    OutboundItem,
    Privacy,
    Sender,
)
from tests.platforms.telegram_faults import Fault
from tests.platforms.telegram_json import ANONYMOUS, CHANNEL, OTHER_BOT, emoji, in_group, membership, reaction
from tests.platforms.telegram_json import GROUP as GROUP_CHAT
from tests.platforms.telegram_server import TOKEN

GROUP = GROUP_CHAT["id"]
ALICE, BOB = 111, 222
OWNER = ("telegram:owner", "telegram:administrator")
ADMINISTRATOR = ("telegram:administrator",)
ASKED = "getChatAdministrators"


@pytest.fixture
async def team(world):
    """A group that Alice owns, in which Bob and the bot are members; the channel runs."""
    world.server.open_chat(GROUP, title="Team")
    world.server.appoint(GROUP, ALICE, "creator")
    world.run()
    await world.polls()
    return world


def asked(world, chat=GROUP):
    return len(world.server.calls_of(ASKED, chat))


async def roles_of_next(world, user=ALICE, chat=GROUP, **extra):
    """Let somebody say something in the group, and return the roles that came with it."""
    before = len(world.sink.events)
    world.server.user_says(chat, "hello", user=user, **extra)
    await world.until(lambda: len(world.sink.events) > before)
    assert len(world.sink.events) == before + 1
    return world.sink.events[-1].sender.roles


async def heard(world):
    """Return when every update has been read, and confirmed."""
    updates = world.server.updates
    await world.server.wait_for(lambda: updates.is_polled and not updates.unconfirmed)


async def without_waiting(world, sayings):
    """Assert that time need not pass for `sayings`, and return what they come to."""
    before = world.clock.monotonic()
    result = await sayings
    assert world.clock.monotonic() == before
    return result


async def test_an_owner_an_administrator_and_a_member_have_their_roles(team):
    team.server.appoint(GROUP, 333)

    assert await roles_of_next(team, ALICE) == OWNER
    assert await roles_of_next(team, 333) == ADMINISTRATOR
    assert await roles_of_next(team, BOB) == ()
    assert asked(team) == 1


async def test_everything_a_person_does_in_a_group_comes_with_their_roles(team):
    rows = ((Button(token="tok", label="Approve"),),)
    where = Address(channel="telegram", account="123456789", chat=str(GROUP), thread="7")
    team.server.open_chat(GROUP, topics=(7,))
    card = await team.channel.deliver(
        OutboundItem(id="t/1", address=where, content=CardContent(text="Run?", rows=rows))
    )
    said = team.server.user_says(GROUP, "/status@lodger_bot", user=ALICE, thread=7)
    team.server.user_edits(GROUP, said, "/status", user=ALICE)
    team.server.press(GROUP, int(card), "tok", user=ALICE)
    team.server.push_update({"message_reaction": reaction(emoji("👍"), chat=GROUP_CHAT)})
    team.server.push_update({"my_chat_member": membership("left", "member")})
    await team.until(lambda: len(team.sink.events) == 5)

    kinds = [type(event.body).__name__ for event in team.sink.events]
    assert kinds == ["MessageBody", "EditBody", "PressBody", "ReactionBody", "MembershipBody"]
    assert [event.sender.roles for event in team.sink.events] == [OWNER] * 5


async def test_nobody_has_roles_in_a_direct_chat_and_nothing_is_asked_there(team):
    assert await roles_of_next(team, ALICE, chat=ALICE) == ()
    assert team.server.calls_of(ASKED) == []


async def test_bots_and_chats_have_no_roles_and_nothing_is_asked_for_their_sake(team):
    told = [
        in_group("a bot", OTHER_BOT),
        in_group("a channel", ANONYMOUS, sender_chat=CHANNEL),
        in_group("the group", ANONYMOUS, sender_chat=GROUP_CHAT),
    ]
    for message in told:
        team.server.push_update({"message": message})
    await team.until(lambda: len(team.sink.events) == 3)

    assert [event.sender.roles for event in team.sink.events] == [(), (), ADMINISTRATOR]
    assert team.server.calls_of(ASKED) == []


async def test_nothing_is_asked_about_a_group_that_was_left_or_has_moved(team):
    team.server.push_update({"my_chat_member": membership("member", "kicked")})
    team.server.migrate(-4001, -1001000000002)
    await team.until(lambda: len(team.sink.events) == 3)

    assert [type(event.body) for event in team.sink.events] == [MembershipBody, MigrationBody, MigrationBody]
    assert team.server.calls_of(ASKED) == []


async def test_what_is_known_is_kept_for_five_minutes(team):
    assert await roles_of_next(team) == OWNER
    team.server.chats.by_id[GROUP].standings[ALICE] = "member"
    await team.pass_time(299, step=23)
    assert await roles_of_next(team) == OWNER
    assert asked(team) == 1
    await team.pass_time(1)

    assert await roles_of_next(team) == ()
    assert asked(team) == 2


async def test_a_machine_that_was_suspended_asks_again(team):
    assert await roles_of_next(team) == OWNER
    await team.pass_time(2)
    team.clock.step_wall(timedelta(hours=8))
    await roles_of_next(team)
    await team.pass_time(2)
    team.clock.step_wall(timedelta(hours=-16))
    await roles_of_next(team)

    assert asked(team) == 2


async def test_what_several_say_at_once_is_one_request(team):
    answer = team.server.gate_answer(ASKED)
    for number in range(5):
        team.server.user_says(GROUP, str(number), user=ALICE)
    await answer.entered.wait()
    assert team.sink.events == []
    answer.opened.set()
    await team.until(lambda: len(team.sink.events) == 5)

    assert [event.sender.roles for event in team.sink.events] == [OWNER] * 5
    assert team.sink.texts == ["0", "1", "2", "3", "4"]
    assert asked(team) == 1


# Changes


def service(**told):
    return {"message": in_group(None, **told)}


@pytest.mark.parametrize(
    "update",
    [
        {"my_chat_member": membership("member", "administrator")},
        {"chat_member": membership("member", "administrator")},
        service(left_chat_member={"id": 5, "is_bot": False, "first_name": "Eve"}),
        service(new_chat_members=[{"id": 5, "is_bot": False, "first_name": "Eve"}]),
        service(chat_owner_changed={"new_owner": {"id": 5, "is_bot": False, "first_name": "Eve"}}),
        service(migrate_from_chat_id=-4001, message_id=90),
    ],
    ids=lambda update: next(reversed(next(iter(update.values())))),
)
async def test_a_change_of_members_makes_it_ask_again(team, update):
    assert await roles_of_next(team, BOB) == ()
    await team.pass_time(2)
    team.server.chats.by_id[GROUP].standings[BOB] = "administrator"
    assert await roles_of_next(team, BOB) == ()
    team.server.push_update(update)
    await heard(team)
    team.sink.events.clear()

    assert await without_waiting(team, roles_of_next(team, BOB)) == ADMINISTRATOR
    assert asked(team) == 2


async def test_where_the_bot_is_an_administrator_a_dismissal_counts_at_once(team):
    team.server.appoint(GROUP, team.server.bot["id"])
    team.server.appoint(GROUP, BOB)
    assert await roles_of_next(team, BOB) == ADMINISTRATOR
    await team.pass_time(2)
    team.server.appoint(GROUP, BOB, "member")
    await heard(team)

    assert await without_waiting(team, roles_of_next(team, BOB)) == ()


async def test_a_change_in_another_group_changes_nothing(team):
    await roles_of_next(team)
    team.server.push_update({"chat_member": membership("member", "left", chat={**GROUP_CHAT, "id": -5})})
    await roles_of_next(team)

    assert asked(team) == 1


async def test_an_answer_from_before_a_change_is_not_believed(team):
    team.server.appoint(GROUP, BOB)
    answer = team.server.gate_answer(ASKED)
    team.server.user_says(GROUP, "one", user=BOB)
    await answer.entered.wait()
    await team.pass_time(2)
    team.server.chats.by_id[GROUP].standings[BOB] = "member"
    team.server.push_update({"chat_member": membership("administrator", "member")})
    await heard(team)
    answer.opened.set()
    await team.until(lambda: asked(team) == 2)

    assert await roles_of_next(team, BOB) == ()
    assert asked(team) == 2


async def test_a_storm_of_members_is_asked_about_once_a_second(team):
    for number in range(20):
        team.server.push_update(service(new_chat_members=[], message_id=100 + number))
        team.server.user_says(GROUP, str(number), user=ALICE)
        await team.pass_time(0.25, step=0.25)
    await team.pass_time(2, step=0.25)

    assert len(team.sink.events) == 20
    times = [call.at for call in team.server.calls_of(ASKED)]
    assert 3 <= len(times) <= 7
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(times))
    assert {event.sender.roles for event in team.sink.events} == {OWNER}


# Failures

FAILURES = {
    "refused": {"status": 400, "body": {"ok": False, "error_code": 400, "description": "Bad Request: no list"}},
    "put out": {"status": 403, "body": {"ok": False, "error_code": 403, "description": "Forbidden: bot was kicked"}},
    "broken": {"status": 502},
    "lost": {"drop_after": True},
    "no list": {"status": 200, "body": {"ok": True, "result": {"administrators": []}}},
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_after_a_failure_events_go_on_and_it_asks_again_a_minute_later(team, failure, caplog):
    caplog.set_level(logging.WARNING)
    team.server.fail_next(ASKED, times=2, **failure)
    for _ in range(3):
        assert await without_waiting(team, roles_of_next(team)) == ()
    team.server.push_update(service(new_chat_members=[]))
    await team.pass_time(59)
    assert await roles_of_next(team) == ()
    assert asked(team) == 1
    await team.pass_time(1)
    assert await roles_of_next(team) == ()
    await team.pass_time(60)

    assert await roles_of_next(team) == OWNER
    assert asked(team) == 3
    (warning,) = caplog.records
    assert (warning.message, warning.chat) == ("telegram_administrators_unknown", str(GROUP))
    assert TOKEN not in caplog.text + warning.detail


async def test_a_failure_after_an_answer_is_told_again_and_old_roles_are_not_used(team, caplog):
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        team.server.fail_next(ASKED, 500)
        assert await roles_of_next(team) == ()
        await team.pass_time(60)
        assert await roles_of_next(team) == OWNER
        await team.pass_time(300, step=23)
        await team.pass_time(2)

    assert [record.message for record in caplog.records] == ["telegram_administrators_unknown"] * 2


async def test_a_limit_stops_the_questions_about_all_groups_and_nothing_else(team):
    others = [GROUP - number for number in range(1, 4)]
    for chat in others:
        team.server.open_chat(chat)
        team.server.appoint(chat, ALICE)
    team.server.fault(ASKED, Fault.FLOODED, seconds=90)
    assert await roles_of_next(team) == ()
    for chat in others:
        assert await without_waiting(team, roles_of_next(team, chat=chat)) == ()
    assert len(team.server.calls_of(ASKED)) == 1
    await without_waiting(team, team.channel.deliver(team.text("an answer", chat=str(GROUP))))
    await team.pass_time(89)
    assert await roles_of_next(team) == ()
    await team.pass_time(1)

    assert await roles_of_next(team) == OWNER
    assert await roles_of_next(team, chat=others[0]) == ADMINISTRATOR
    assert len(team.server.calls_of(ASKED)) == 3


class StumblingApi(BotApi):
    """Has a bug that shows once."""

    bugs = 1

    async def administrators(self, chat_id):
        if self.bugs:
            self.bugs -= 1
            raise KeyError("a bug")
        return await super().administrators(chat_id)


@asynccontextmanager
async def administrators(world, api=BotApi, **more):
    """Open the part alone, on an API of its own."""
    api = api(TOKEN, world.server.api_base, lambda text: text)
    async with Administrators(api, channel="telegram", clock=world.clock, timing=Timing(), **more) as opened:
        yield opened
    await api.aclose()


def said_in(world, chat, user=ALICE):
    return InboundEvent(
        address=Address(channel="telegram", account="123456789", chat=str(chat)),
        key="message/1",
        sender=Sender(identity=f"telegram:{user}", name="Alice"),
        body=MessageBody(text="hello"),
        privacy=Privacy.PRIVATE_GROUP,
        sent_at=world.clock.now(),
    )


async def test_an_error_that_nobody_foresaw_is_a_failure_like_others(team, caplog):
    async with administrators(team, StumblingApi) as opened:
        for _ in range(2):
            assert (await opened.with_roles(said_in(team, GROUP))).sender.roles == ()
        await team.pass_time(60)

        assert (await opened.with_roles(said_in(team, GROUP))).sender.roles == OWNER
    assert [record.message for record in caplog.records] == ["telegram_administrators_crashed"]


# Slowness


async def test_an_event_waits_two_seconds_and_those_behind_it_no_longer(team):
    slow = team.server.fault(ASKED, Fault.HALF_OPEN)
    team.server.user_says(GROUP, "one", user=ALICE)
    await slow.entered.wait()
    await team.pass_time(1.9, step=0.1)
    assert team.sink.events == []
    await team.pass_time(0.2, step=0.1)
    await team.until(lambda: team.sink.texts == ["one"])
    await heard(team)

    assert team.sink.events[0].sender.roles == ()
    assert await without_waiting(team, roles_of_next(team)) == ()
    assert asked(team) == 1


async def test_an_answer_that_comes_late_serves_what_follows(team):
    answer = team.server.gate_answer(ASKED)
    team.server.user_says(GROUP, "one", user=ALICE)
    await answer.entered.wait()
    await team.pass_time(2)
    assert team.sink.events[0].sender.roles == ()
    answer.opened.set()
    await team.server.wait_for(lambda: team.server.calls_of(ASKED)[0].status == 200)
    await team.pass_time(1)

    assert await roles_of_next(team) == OWNER
    assert asked(team) == 1


async def test_a_press_is_answered_in_time_while_the_request_is_slow_c27(team):
    rows = ((Button(token="tok", label="Approve"),),)
    where = Address(channel="telegram", account="123456789", chat=str(GROUP))
    card = await team.channel.deliver(OutboundItem(id="t/1", address=where, content=CardContent(text="?", rows=rows)))
    slow = team.server.fault(ASKED, Fault.HALF_OPEN)
    query = team.server.press(GROUP, int(card), "tok", user=ALICE)
    await slow.entered.wait()
    await team.pass_time(1, step=0.1)

    assert team.server.answers == {query: ""}
    assert team.sink.events == []
    await team.pass_time(1)
    assert team.sink.events[0].body.token == "tok"


async def test_many_groups_at_once_wait_together_and_are_asked_about_a_few_at_a_time(team):
    chats = [GROUP - number for number in range(1, 31)]
    for chat in chats:
        team.server.open_chat(chat)
        team.server.appoint(chat, ALICE)
    answers = [team.server.gate_answer(ASKED) for _ in chats]
    before = team.clock.monotonic()
    for chat in chats:
        team.server.user_says(chat, "hello", user=ALICE)
    await team.until(lambda: len(team.server.calls_of(ASKED)) == REQUESTS_AT_ONCE)
    await team.pass_time(2.5, step=0.5)
    assert len(team.sink.events) == len(chats)
    assert len(team.server.calls_of(ASKED)) == REQUESTS_AT_ONCE
    for answer in answers:
        answer.opened.set()
    await team.until(lambda: len(team.server.calls_of(ASKED)) == len(chats))
    await team.pass_time(1)

    assert team.clock.monotonic() - before <= 4
    for chat in chats:
        assert await roles_of_next(team, chat=chat) == ADMINISTRATOR
    assert len(team.server.calls_of(ASKED)) == len(chats)


async def test_many_groups_that_are_answered_soon_have_their_roles_without_waiting(team):
    chats = [GROUP - number for number in range(1, 31)]
    for chat in chats:
        team.server.open_chat(chat)
        team.server.appoint(chat, ALICE)
    for chat in chats:
        team.server.user_says(chat, "hello", user=ALICE)
    await without_waiting(team, team.until(lambda: len(team.sink.events) == len(chats)))

    assert {event.sender.roles for event in team.sink.events} == {ADMINISTRATOR}


async def test_the_group_that_was_silent_for_longest_is_forgotten_above_the_limit(team):
    chats = [GROUP - number for number in range(4)]
    for chat in chats[1:]:
        team.server.open_chat(chat)
    async with administrators(team, groups_limit=3) as opened:
        for chat in (*chats[:3], chats[0], chats[3]):
            await opened.with_roles(said_in(team, chat))
        for chat in (chats[0], chats[2], chats[3]):
            await opened.with_roles(said_in(team, chat))
        assert len(team.server.calls_of(ASKED)) == 4
        await opened.with_roles(said_in(team, chats[1]))

    assert asked(team, chats[1]) == 2


async def test_a_group_for_which_there_is_no_room_goes_on_without_roles(team):
    slow = team.server.fault(ASKED, Fault.HALF_OPEN)
    async with administrators(team, groups_limit=1) as opened:
        opened.expect(said_in(team, GROUP - 1))
        await slow.entered.wait()
        event = await opened.with_roles(said_in(team, GROUP))

    assert event.sender.roles == ()
    assert asked(team) == 0


# Starts and ends


async def test_what_waited_for_its_roles_when_the_host_was_stopped_comes_again_with_them(team):
    slow = team.server.fault(ASKED, Fault.HALF_OPEN)
    team.server.user_says(GROUP, "one", user=ALICE)
    await slow.entered.wait()
    await team.stop(team.tasks[0])
    assert team.sink.events == []
    async with team.channel_with() as restarted:
        team.run(restarted)
        await team.until(lambda: team.sink.events)

    assert team.sink.texts == ["one"]
    assert team.sink.events[0].sender.roles == OWNER


async def test_nothing_is_known_after_a_restart(team):
    assert await roles_of_next(team) == OWNER
    await team.stop(team.tasks[0])
    team.server.chats.by_id[GROUP].standings[ALICE] = "member"
    team.run()

    assert await roles_of_next(team) == ()


async def test_by_webhook_events_carry_roles_too(world):
    world.server.open_chat(GROUP)
    world.server.appoint(GROUP, ALICE, "creator")
    world.server.updates.unconfirmed.clear()
    settings = WebhookSettings(url="https://bot.example/hook", secret="s3cret-" + "S" * 20)
    async with world.channel_with(webhook=settings) as channel, serve(channel.webhook, listen="127.0.0.1:0") as bound:
        world.server.webhook.proxies["https://bot.example"] = f"http://{bound.removeprefix('http://')}"
        task = world.run(channel)
        for user in (ALICE, BOB):
            world.server.user_says(GROUP, "hello", user=user)
        await world.until(lambda: len(world.sink.events) == 2)
        await world.stop(task)

    assert [event.sender.roles for event in world.sink.events] == [OWNER, ()]
    assert asked(world) == 1
