"""What was said while nobody listened: handed over once, the oldest first, before the connection and behind it."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from channels.slack.limits import BACKFILL_AGE
from core.contracts.addresses import Privacy
from core.contracts.errors import ChannelDown, StoreUnavailable
from tests.channels.slack.taking import opened, place, posted_to
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_message import Message
from tests.platforms.slack_workspace import (
    ALICE,
    ALICE_DM,
    BOB,
    BOT,
    BOT_USER,
    OTHER_BOT_USER,
    PRIVATE,
    ROOM,
    SHARED,
    TRIO,
)

MENTION = f"<@{BOT_USER}>"


@asynccontextmanager
async def away(*known, **settings):
    """Give a channel that heard something in each of the channels `known` before it went away."""
    async with opened(**settings) as world:
        for channel in known:
            world.sink.knows(channel, missed(world, "known", channel))
        await world.clock.advance(timedelta(minutes=10))
        yield world


def missed(world, text, channel=ROOM, user=ALICE, thread=None, **more):
    """Let somebody say something of which the host is never told; return its ts."""
    ts = world.server.user_says(channel, user, text, thread, **more)
    world.server.deliveries.forget_waiting()
    return ts


def histories(world, method="conversations.history"):
    return [call.params for call in world.server.calls_of(method)]


@asynccontextmanager
async def gap(world):
    """Let the connection be away, until the block ends."""
    gate = world.server.gate_next("apps.connections.open")
    world.server.sockets.refresh()
    await gate.entered.wait()
    yield
    gate.opened.set()


# What is found


@pytest.mark.parametrize("channel", [ROOM, PRIVATE, SHARED, TRIO, ALICE_DM])
async def test_what_was_said_meanwhile_is_handed_over_the_oldest_first_and_once(channel):
    async with away(channel) as world:
        sent = [missed(world, f"{number}", channel) for number in range(5)]
        await world.listen()

        assert world.sink.texts == ["0", "1", "2", "3", "4"]
        assert [event.external_id for event in world.sink.events] == sent
        # What was known before is recognised.
        assert {offer.body.text for offer in world.sink.offers} == {"known", "0", "1", "2", "3", "4"}


async def test_what_was_missed_is_just_what_would_have_been_told():
    async with opened() as told, away(ROOM, ALICE_DM) as untold:
        await told.listen()
        file = untold.server.files.keep(b"x", user=ALICE)
        told.server.files.keep(b"x", user=ALICE)
        await told.clock.advance(timedelta(minutes=10))
        for world in (told, untold):
            world.server.user_says(ROOM, ALICE, f"{MENTION} hello <@{BOB}> &amp; all")
            world.server.user_says(ROOM, OTHER_BOT_USER, "I am a bot")
            world.server.user_says(ALICE_DM, ALICE, "see", files=(file,))
        untold.server.deliveries.forget_waiting()
        await untold.listen()
        facts = {
            name: {(e.body, e.sender, e.privacy, e.address.chat) for e in world.sink.events if hasattr(e.body, "text")}
            for name, world in (("told", told), ("untold", untold))
        }
        await told.heard(3)
        facts["told"] = {(e.body, e.sender, e.privacy, e.address.chat) for e in told.sink.events}

        assert len(facts["untold"]) == 3
        assert facts["untold"] == facts["told"]


async def test_threads_are_read_those_that_are_known_and_those_that_are_new():
    async with opened() as world:
        known = missed(world, "known root")
        world.sink.knows(ROOM, known, thread=known)
        await world.clock.advance(timedelta(minutes=10))
        missed(world, "1 below the known", thread=known, user=BOB)
        new = missed(world, "2 new root")
        missed(world, "3 below the new", thread=new, user=BOB)
        missed(world, "4 below the known", thread=known, user=BOB)
        await world.listen()

        assert world.sink.texts == ["1 below the known", "2 new root", "3 below the new", "4 below the known"]
        assert [event.address.thread for event in world.sink.events] == [known, new, new, known]
        assert world.sink.events[0].external_id.startswith(f"{known}:")


async def test_a_reply_that_was_shown_in_the_channel_too_is_one_message():
    async with opened() as world:
        known = missed(world, "known root")
        world.sink.knows(ROOM, known, thread=known)
        await world.clock.advance(timedelta(minutes=10))
        ts = missed(world, "reply", thread=known, user=BOB)
        world.server.workspace.channels[ROOM].messages[ts].is_broadcast = True
        await world.listen()

        assert world.sink.texts == ["reply"]
        assert world.sink.events[0].address == place(ROOM, known)


@pytest.mark.parametrize(("where", "count"), [("channel", 250), ("thread", 450)])
async def test_of_very_much_the_newest_is_taken_and_that_is_said(where, count, caplog):
    async with opened() as world:
        root = missed(world, "root")
        world.sink.knows(ROOM, root, thread=root)
        await world.clock.advance(timedelta(minutes=10))
        for number in range(count):
            missed(world, f"{number}", thread=root if where == "thread" else None)
        await world.listen()

        assert world.sink.texts == [f"{number}" for number in range(count - 200, count)]
        assert caplog.text.count("slack_missed_too_much") >= 1
        if where == "thread":
            # By pages, each asked for with the cursor of the one before.
            cursors = [params.get("cursor", "") for params in histories(world, "conversations.replies")[:3]]
            assert len(set(cursors)) == 3


async def test_joins_its_own_words_and_deleted_ones_are_no_messages_c08():
    async with away(ROOM) as world:
        messages = world.server.workspace.channels[ROOM].messages
        joined = missed(world, f"<@{BOB}> has joined the channel", user=BOB)
        messages[joined].subtype = "channel_join"
        own = Message(world.server.workspace.next_ts(), ROOM, BOT_USER, f"{MENTION} done", bot_id=BOT)
        messages[own.ts] = own
        world.server.user_deletes(ROOM, missed(world, "deleted"))
        world.server.deliveries.forget_waiting()
        missed(world, "hello")
        await world.listen()

        assert world.sink.texts == ["hello"]


async def test_what_is_known_stays_one_event_c01():
    async with opened() as world:
        task = await world.listen()
        for number in range(3):
            world.server.user_says(ROOM, ALICE, f"{MENTION} {number}")
        await world.acked()
        await world.heard(3)
        await world.stop(task)
        before = list(world.sink.events)
        await world.listen()
        await world.pass_time(5)

        assert world.sink.events == before
        # It was read again, and recognised by its keys.
        assert len(world.sink.offers) > 6


async def test_root_and_replies_are_one_conversation_after_a_restart_c09():
    async with opened() as world:
        task = await world.listen()
        root = world.server.user_says(ROOM, ALICE, f"{MENTION} remember: colour is teal")
        await world.heard(1)
        await world.acked()
        await world.stop(task)
        await world.server.wait_for(lambda: not world.server.sockets.open)
        missed(world, f"{MENTION} which colour?", thread=root, user=BOB)
        await world.listen()
        first, second = world.sink.events

        assert first.address == second.address == place(ROOM, root)


# Where it is looked for


async def test_each_channel_is_asked_from_where_it_stands():
    async with opened() as world:
        marks = {}
        for channel in (ROOM, ALICE_DM):
            marks[channel] = missed(world, "known", channel)
            world.sink.knows(channel, marks[channel])
            await world.clock.advance(timedelta(minutes=10))
        await world.listen()
        asked = {params["channel"]: float(params["oldest"]) for params in histories(world)[:2]}

        # A second earlier: what is known already is recognised.
        assert asked == {channel: pytest.approx(float(ts) - 1, abs=0.001) for channel, ts in marks.items()}
        assert world.sink.events == []


async def test_nothing_is_asked_where_nothing_was_heard_or_not_for_a_week():
    async with opened() as world:
        missed(world, "never heard")
        old = missed(world, "old", PRIVATE)
        world.sink.knows(PRIVATE, old)
        world.sink.knows("home:U0ALICE", old)
        await world.clock.advance(BACKFILL_AGE + timedelta(minutes=1))
        await world.listen()
        await world.pass_time(2)

        assert histories(world) == []
        assert world.sink.offers == []


@pytest.mark.parametrize("word", ["not_in_channel", "channel_not_found", "missing_scope"])
async def test_a_history_that_is_refused_is_logged_and_the_others_are_read(word, caplog):
    caplog.set_level("INFO")
    async with away(PRIVATE, ROOM) as world:
        world.server.refuse_next("conversations.history", word, channel=PRIVATE, times=2)
        missed(world, "hello")
        await world.listen()

        assert "hello" in world.sink.texts
        assert "known" not in world.sink.texts
        refused = [record.detail for record in caplog.records if record.message == "slack_history_refused"]
        assert refused
        assert all(word in detail for detail in refused)


async def test_a_thread_that_is_gone_keeps_nothing_else_back(caplog):
    caplog.set_level("INFO")
    async with away(ROOM) as world:
        gone = missed(world, "gone")
        world.sink.knows(ROOM, gone, thread=gone)
        world.server.user_deletes(ROOM, gone)
        world.server.deliveries.forget_waiting()
        missed(world, "hello")
        await world.listen()

        assert world.sink.texts == ["hello"]
        assert "slack_history_refused" in caplog.text


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_RESPONSE, Fault.FLOODED])
async def test_a_history_that_does_not_come_is_asked_for_again(fault):
    async with away(ROOM) as world:
        missed(world, "hello")
        world.server.fault("conversations.history", fault, times=2, seconds=3)
        world.run()
        await world.server.wait_for(lambda: histories(world))
        await world.until(lambda: world.clock.sleeping)
        assert not (await world.channel.probe()).healthy
        await world.pass_time(10)
        await world.hears()

        assert world.sink.texts == ["hello"]


async def test_what_could_not_be_stored_is_found_again_and_stops_nothing():
    async with away(ROOM) as world:
        for number in range(3):
            missed(world, f"{number}")
        world.sink.marks_errors = [StoreUnavailable("locked")]
        task = world.run()
        await world.until(lambda: world.clock.sleeping)
        world.sink.errors = [StoreUnavailable("locked")]
        await world.pass_time(1)
        await world.until(lambda: world.sink.refused)
        await world.pass_time(3)
        await world.hears()

        assert not task.done()
        assert world.sink.texts == ["0", "1", "2"]


async def test_a_message_that_breaks_the_host_keeps_none_of_the_others_from_it(caplog):
    async with away(ROOM) as world:
        for number in range(3):
            missed(world, f"{number}")
        world.sink.errors = [RuntimeError("nobody foresaw it")]
        await world.listen()

        # The broken one is offered again behind the connection.
        await world.heard(3)
        assert sorted(world.sink.texts) == ["0", "1", "2"]
        assert "slack_missed_message_crashed" in caplog.text


async def test_a_token_that_is_refused_meanwhile_ends_it_for_good():
    async with away(ROOM) as world:
        world.server.refuse_next("conversations.history", "token_revoked")
        with pytest.raises(ChannelDown, match="token_revoked"):
            await world.channel.run(world.sink)


# Behind the connection


async def test_what_is_said_between_the_reading_and_the_connection_is_not_lost():
    async with away(ROOM) as world:
        missed(world, "before")
        gate = world.server.gate_next("apps.connections.open")
        world.run()
        await gate.entered.wait()
        await world.heard(1)
        missed(world, "between")
        gate.opened.set()
        await world.heard(2)
        world.server.user_says(ROOM, ALICE, "after")
        await world.heard(3)

        assert world.sink.texts == ["before", "between", "after"]


async def test_what_is_said_before_slack_may_post_is_not_lost():
    async with posted_to() as (world, url):
        world.sink.knows(ROOM, missed(world, "known"))
        gate = world.server.gate_answer("conversations.history")
        task = world.run()
        await gate.entered.wait()
        missed(world, "between")
        gate.opened.set()
        await world.heard(1)
        world.server.posts.url = url
        world.server.user_says(ROOM, ALICE, "after")
        await world.heard(2)

        assert world.sink.texts == ["between", "after"]
        assert not task.done()


async def test_what_is_said_while_the_connection_is_away_is_not_lost():
    async with opened() as world:
        await world.listen()
        root = world.server.user_says(ROOM, ALICE, "one")
        world.server.user_says(ALICE_DM, ALICE, "direct")
        await world.heard(2)
        async with gap(world):
            await world.pass_time(600, step=60)
            missed(world, "two")
            missed(world, "three", thread=root, user=BOB)
            missed(world, "direct too", ALICE_DM)
            await world.pass_time(600, step=60)
        await world.heard(5)
        texts = [event.body.text for event in world.sink.events if event.address.chat == ROOM]

        assert texts == ["one", "two", "three"]
        assert world.sink.events[-1].privacy in {Privacy.PUBLIC, Privacy.DIRECT}


async def test_what_comes_at_once_behind_the_connection_waits_for_what_was_said_before_it():
    async with opened() as world:
        await world.listen()
        world.server.user_says(ROOM, ALICE, "one")
        await world.heard(1)
        await world.acked()
        async with gap(world):
            missed(world, "two")
            reading = world.server.gate_answer("conversations.history")
            world.server.user_says(ROOM, ALICE, "three")
        await reading.entered.wait()
        await world.pass_time(0.5, step=0.25)
        assert world.sink.texts == ["one"]
        reading.opened.set()
        await world.heard(3)
        await world.acked()

        assert world.sink.texts == ["one", "two", "three"]


async def test_it_does_not_wait_for_ever_and_what_it_overtook_is_found_all_the_same():
    async with opened() as world:
        await world.listen()
        world.server.user_says(ROOM, ALICE, "one")
        await world.heard(1)
        await world.acked()
        async with gap(world):
            await world.pass_time(600, step=60)
            missed(world, "two")
            await world.pass_time(600, step=60)
            world.sink.marks_errors = [StoreUnavailable("locked"), StoreUnavailable("locked")]
            world.server.user_says(ROOM, ALICE, "three")
        await world.until(lambda: len(world.sink.marks_errors) < 2)
        await world.pass_time(1.25, step=0.25)
        await world.acked()
        # Its mark is newer now than what is missing.
        assert world.sink.texts == ["one", "three"]
        await world.pass_time(5)
        await world.heard(3)

        assert world.sink.texts == ["one", "three", "two"]


async def test_acts_and_commands_wait_for_nothing_c27():
    async with away(ROOM) as world:
        gate = world.server.gate_next("apps.connections.open")
        world.run()
        await gate.entered.wait()
        reading = world.server.gate_next("conversations.history")
        gate.opened.set()
        await reading.entered.wait()
        command = world.server.runs_command("/lodger", "status")
        await world.server.acked(command)
        reading.opened.set()

        assert command.latency == 0


async def test_a_token_that_is_refused_behind_the_connection_ends_it_for_good():
    async with away(ROOM) as world:
        gate = world.server.gate_next("apps.connections.open")
        task = world.run()
        await gate.entered.wait()
        world.server.refuse_next("conversations.history", "account_inactive")
        gate.opened.set()
        with pytest.raises(ChannelDown, match="account_inactive"):
            await asyncio.wait_for(task, 30)


async def test_a_connection_that_comes_while_it_is_read_is_read_behind_as_well():
    async with away(ROOM) as world:
        await world.listen()
        await world.pass_time(1)
        reading = world.server.gate_answer("conversations.history")
        async with gap(world):
            missed(world, "one")
        await reading.entered.wait()
        async with gap(world):
            missed(world, "two")
        reading.opened.set()
        await world.heard(2)

        assert world.sink.texts == ["one", "two"]
