import asyncio
from datetime import timedelta

import pytest

from core.contracts.addresses import DeleteBody, EditBody, Privacy, ReactionBody
from core.contracts.errors import ChannelDown, StorageFull, StoreUnavailable
from tests.channels.discord.taking import direct, is_membership, opened, place
from tests.platforms.discord_account import Intent
from tests.platforms.discord_guilds import ALICE, BOB, BOT, FORUM, GENERAL, GUILD, PEER_BOT, PRIVATE, RANDOM
from tests.platforms.telegram_faults import Fault

ANOTHER = 9500
MANY = 20


def mine(world, text="mine"):
    """Let the bot say something and return its id."""
    return int(world.server.messages.send(GENERAL, {"content": text}, [])["id"])


async def bodies(world, count):
    """Return what was taken in when there is so much of it."""
    await world.until(lambda: len(world.sink.bodies) >= count)
    return world.sink.bodies


# What is said, and what becomes of it


async def test_what_is_said_is_told_where_it_was_said():
    async with opened() as world:
        await world.listen()
        asked = world.server.user_says(GENERAL, ALICE, f"<@{BOT}> help")
        talk = world.server.says_in_new_thread(GENERAL, ALICE, "in a thread", at=asked)
        post = world.server.posts_in_forum(FORUM, BOB, "Title", "in a post")
        world.server.user_says(PRIVATE, ALICE, "among keepers")
        world.server.user_says(world.server.dm(BOB), BOB, "in private")
        world.server.user_says(RANDOM, PEER_BOT, "by a bot")
        heard = await world.heard(6)

        assert [event.address for event in heard] == [
            place(GENERAL, asked),
            place(GENERAL, talk),
            place(FORUM, post),
            place(PRIVATE),
            direct(world.server, BOB),
            place(RANDOM),
        ]
        assert [event.privacy for event in heard[2:5]] == [Privacy.PUBLIC, Privacy.PRIVATE_GROUP, Privacy.DIRECT]
        assert [event.sender.is_bot for event in heard] == [False] * 5 + [True]


async def test_what_is_told_twice_has_one_key():
    async with opened() as world:
        await world.listen()
        world.server.fault("MESSAGE_CREATE", Fault.DUPLICATED)
        world.server.user_says(GENERAL, ALICE, "hello")
        world.server.user_says(GENERAL, ALICE, "once")
        await world.heard(2)

        assert [event.body.text for event in world.sink.offers if not is_membership(event)] == [
            "hello",
            "hello",
            "once",
        ]
        assert world.sink.texts == ["hello", "once"]


async def test_what_is_edited_or_deleted_is_told():
    async with opened() as world:
        await world.listen()
        first = world.server.user_says(GENERAL, ALICE, "helo")
        second = world.server.user_says(GENERAL, ALICE, "nonsense")
        world.server.user_edits(GENERAL, first, "hello")
        world.server.user_deletes(GENERAL, second)
        told = await bodies(world, 4)

        assert told[2:] == [EditBody(message_key=f"m/{first}", text="hello"), DeleteBody(message_key=f"m/{second}")]


async def test_many_that_are_deleted_together_are_all_told():
    async with opened() as world:
        await world.listen()
        gone = {"ids": ["11", "12", "13"], "channel_id": str(GENERAL), "guild_id": str(GUILD)}
        world.server.gateway.publish("MESSAGE_DELETE_BULK", gone, Intent.GUILD_MESSAGES)

        assert await bodies(world, 3) == [DeleteBody(message_key=f"m/{number}") for number in (11, 12, 13)]


async def test_what_a_link_shows_is_no_edit():
    async with opened() as world:
        await world.listen()
        said = world.server.user_says(GENERAL, ALICE, "https://example.com/")
        world.server.embeds_added(GENERAL, said)
        world.server.user_says(GENERAL, ALICE, "next")
        await world.heard(2)

        assert len(world.sink.bodies) == 2


async def test_reactions_to_the_bots_messages_are_told_and_others_are_not():
    async with opened() as world:
        await world.listen()
        hers = world.server.user_says(GENERAL, ALICE, "hers")
        ours = mine(world)
        world.server.user_reacts(GENERAL, hers, BOB, "👍")
        world.server.user_reacts(GENERAL, ours, BOB, "👍")
        world.server.user_reacts(GENERAL, ours, BOB, "🎉")
        world.server.people.unreacts(GENERAL, ours, BOB, "👍")
        told = await bodies(world, 4)

        assert [body.emoji for body in told if isinstance(body, ReactionBody)] == [("👍",), ("👍", "🎉"), ("🎉",)]
        assert {event.external_id for event in world.sink.events if isinstance(event.body, ReactionBody)} == {str(ours)}
        assert len({event.key for event in world.sink.events}) == 5


async def test_what_changes_in_an_archived_thread_is_told_as_of_that_thread():
    async with opened() as world:
        asked = world.server.user_says(GENERAL, ALICE, f"<@{BOT}> help")
        talk = world.server.says_in_new_thread(GENERAL, ALICE, "in a thread", at=asked)
        (said,) = world.server.visible(talk, everyone=True)[-1:]
        world.server.archives_thread(talk)
        await world.listen()
        world.server.user_deletes(talk, said.id)
        world.server.user_deletes(GENERAL, asked)
        await bodies(world, 2)

        assert [event.address for event in world.sink.events if isinstance(event.body, DeleteBody)] == [
            place(GENERAL, talk),
            place(GENERAL),
        ]
        assert [call.channel_id for call in world.server.calls_of("channel")] == [talk]


async def test_what_happens_where_the_bot_may_not_look_is_told_all_the_same(caplog):
    async with opened() as world:
        await world.listen()
        caplog.set_level("INFO")
        gone = {"id": "11", "channel_id": "12", "guild_id": str(GUILD)}
        world.server.gateway.publish("MESSAGE_DELETE", gone, Intent.GUILD_MESSAGES)
        await bodies(world, 1)

        assert world.sink.events[-1].address == place(12)
        assert "discord_question_refused" in caplog.text


async def test_a_place_that_discord_cannot_tell_of_just_now_is_asked_for_again():
    async with opened() as world:
        thread = world.server.says_in_new_thread(GENERAL, ALICE, "in a thread")
        world.server.archives_thread(thread)
        await world.listen()
        world.server.fail_next("channel", 503)
        first = next(iter(world.server.messages.by_channel[thread]))
        world.server.user_deletes(thread, first)
        await world.in_time(lambda: any(isinstance(body, DeleteBody) for body in world.sink.bodies))

        assert world.sink.events[-1].address == place(GENERAL, thread=thread)


async def test_a_token_that_is_refused_while_a_place_is_looked_up_ends_the_channel():
    async with opened() as world:
        task = await world.listen()
        world.server.account.revoked = True
        gone = {"id": "11", "channel_id": "12", "guild_id": str(GUILD)}
        world.server.gateway.publish("MESSAGE_DELETE", gone, Intent.GUILD_MESSAGES)
        with pytest.raises(ChannelDown):
            await asyncio.wait_for(task, 30)

        assert not (await world.channel.probe()).healthy


# A store that fails


async def test_what_cannot_be_stored_is_tried_again_and_what_follows_waits():
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked"), StorageFull("full"), StoreUnavailable("locked")]
        for number in range(MANY):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        red = await world.hears(well=False)
        await world.until(lambda: world.clock.sleeping)
        assert world.sink.texts == []
        await world.in_time(lambda: len(world.sink.texts) == MANY)

        assert "cannot be stored" in red.detail
        assert world.sink.texts == [f"{number}" for number in range(MANY)]
        assert [event.body.text for event in world.sink.refused] == ["0", "0", "0"]
        assert (await world.channel.probe()).healthy


async def test_a_store_that_stays_broken_is_not_hammered_and_complained_of_once(caplog):
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked")] * 1_000
        world.server.user_says(GENERAL, ALICE, "hello")
        await world.hears(well=False)
        await world.pass_time(600, step=5)
        tries = len(world.sink.refused)
        world.sink.errors.clear()
        await world.in_time(lambda: world.sink.texts)

        assert 10 < tries < 30
        assert caplog.text.count("discord_event_not_stored") == 1


async def test_a_store_that_cannot_be_read_at_first_is_asked_again_before_anything_is_told():
    async with opened() as world:
        earlier = world.server.user_says(GENERAL, ALICE, "earlier")
        world.sink.knows(earlier)
        await world.clock.advance(timedelta(minutes=1))
        world.server.user_says(GENERAL, ALICE, "missed")
        world.sink.marks_errors = [StoreUnavailable("locked"), StoreUnavailable("locked")]
        world.run()
        await world.in_time(lambda: "missed" in world.sink.texts)

        assert world.sink.marks_errors == []


async def test_a_cut_while_the_store_fails_loses_nothing():
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked")] * 4
        world.server.user_says(GENERAL, ALICE, "before")
        await world.hears(well=False)
        world.server.gateway.cut()
        world.server.user_says(GENERAL, ALICE, "during")
        await world.in_time(lambda: len(world.sink.texts) == 2)

        assert world.sink.texts == ["before", "during"]


# What is not as documented


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("MESSAGE_CREATE", {}),
        ("MESSAGE_CREATE", {"channel_id": str(GENERAL), "guild_id": str(GUILD)}),
        ("MESSAGE_CREATE", {"id": "x", "channel_id": str(GENERAL), "content": "?", "author": {"id": "1"}}),
        ("MESSAGE_UPDATE", {"id": 5, "channel_id": [], "content": {}}),
        ("MESSAGE_DELETE", {"id": "11"}),
        ("MESSAGE_DELETE_BULK", {"ids": "11"}),
        ("MESSAGE_REACTION_ADD", {"user_id": "7001", "message_author_id": str(BOT)}),
        ("GUILD_CREATE", {"name": "nowhere"}),
        ("GUILD_DELETE", {"id": None}),
        ("CHANNEL_CREATE", {"guild_id": str(GUILD)}),
        ("CHANNEL_DELETE", {}),
        ("GUILD_ROLE_CREATE", {}),
        ("INTERACTION_CREATE", {"type": 3}),
        ("INTERACTION_CREATE", {"type": 3, "id": "5", "application_id": str(BOT), "token": "a/b"}),
        ("INTERACTION_CREATE", {"type": 5, "id": "5", "application_id": str(BOT), "token": "t", "user": {"id": "1"}}),
    ],
)
async def test_what_is_malformed_is_logged_and_passed_over(name, shown, caplog):
    async with opened() as world:
        await world.listen()
        before = len(world.sink.events)
        world.server.gateway.publish(name, shown, Intent.NONE)
        world.server.user_says(GENERAL, ALICE, "next")
        await world.heard(1)
        await world.settle()
        malformed = [record for record in caplog.records if record.message == "discord_event_malformed"]

        assert len(world.sink.events) == before + 1
        assert "discord_event_crashed" not in caplog.text
        assert [record.event_name for record in malformed] == [name]


@pytest.mark.parametrize("shown", [{}, {"type": 99}, {"type": 1, "id": "5"}])
async def test_an_interaction_that_nobody_waits_for_is_passed_over(shown, caplog):
    async with opened() as world:
        await world.listen()
        world.server.gateway.publish("INTERACTION_CREATE", shown, Intent.NONE)
        world.server.user_says(GENERAL, ALICE, "next")
        await world.heard(1)

        assert world.sink.bodies == [world.sink.messages[0].body]
        assert "discord_event" not in caplog.text
        assert world.server.calls_of("callback") == []


async def test_a_bug_in_one_event_does_not_stop_the_next(caplog):
    async with opened() as world:
        await world.listen()
        world.sink.errors = [RuntimeError("a bug")]
        world.server.user_says(GENERAL, ALICE, "that breaks it")
        world.server.user_says(GENERAL, ALICE, "next")
        await world.heard(1)
        crashed = [record for record in caplog.records if record.message == "discord_event_crashed"]

        assert world.sink.texts == ["next"]
        assert [record.event_name for record in crashed] == ["MESSAGE_CREATE"]
        assert crashed[0].exc_info is not None
        assert (await world.channel.probe()).healthy


async def test_a_bug_in_one_missed_message_does_not_stop_the_next(caplog):
    async with opened() as world:
        world.sink.knows(world.server.user_says(GENERAL, ALICE, "known"))
        await world.clock.advance(timedelta(minutes=1))
        for text in ("that breaks it", "next", "last"):
            world.server.user_says(GENERAL, ALICE, text)
        world.server.user_says(RANDOM, ALICE, "elsewhere")
        gate = world.server.gate_next("get_messages")
        await world.listen()
        await gate.entered.wait()
        world.sink.errors = [None, RuntimeError("a bug")]
        gate.opened.set()
        await world.heard(4)

        assert world.sink.texts == ["known", "next", "last", "elsewhere"]
        assert caplog.text.count("discord_event_crashed") == 1


# Guilds


async def test_being_in_a_guild_is_told_at_every_start_under_one_key():
    async with opened() as world:
        await world.stop(await world.listen())
        await world.listen()
        await world.until(lambda: len(world.sink.offers) == 2)

        assert len({event.key for event in world.sink.offers}) == 1
        assert world.sink.memberships == [(str(GUILD), True)]


async def test_a_guild_that_lets_the_bot_in_is_told_with_a_channel_to_speak_in():
    async with opened() as world:
        await world.listen()
        world.server.adds_bot(ANOTHER, "Another lodge")
        await world.until(lambda: len(world.sink.memberships) == 2)
        event = world.sink.events[-1]
        world.server.user_says(ANOTHER + 1, ALICE, "welcome")
        await world.heard(1)

        assert event.address == place(ANOTHER + 1, space=ANOTHER)
        assert (event.body.present, event.sender.name) == (True, "Another lodge")
        assert world.server.calls_of("get_messages") == []


async def test_being_put_out_of_a_guild_is_told_with_its_channel_and_name():
    async with opened() as world:
        await world.listen()
        world.server.removes_bot(GUILD)
        await world.until(lambda: len(world.sink.memberships) == 2)
        event = world.sink.events[-1]

        assert event.address == place(GENERAL)
        assert (event.body.present, event.sender.name) == (False, "Lodge")


async def test_being_let_in_again_is_another_event():
    async with opened() as world:
        await world.listen()
        world.server.removes_bot(GUILD)
        await world.until(lambda: len(world.sink.memberships) == 2)
        await world.clock.advance(timedelta(minutes=1))
        world.server.adds_bot(GUILD)
        await world.until(lambda: len(world.sink.memberships) == 3)

        assert world.sink.memberships == [(str(GUILD), True), (str(GUILD), False), (str(GUILD), True)]


async def test_a_guild_that_nobody_knew_is_told_to_be_left():
    async with opened() as world:
        await world.listen()
        world.server.gateway.publish("GUILD_DELETE", {"id": "12"}, Intent.GUILDS)
        await world.until(lambda: len(world.sink.memberships) == 2)

        assert world.sink.events[-1].address == place(12, space=12)


async def test_an_outage_of_a_guild_is_no_leaving_and_what_was_missed_is_read_after_it():
    async with opened() as world:
        await world.listen()
        world.server.user_says(GENERAL, ALICE, "before")
        await world.heard(1)
        world.server.people.loses_guild(GUILD)
        world.server.fault("MESSAGE_CREATE", Fault.REORDERED)
        await world.clock.advance(timedelta(minutes=1))
        missed = world.server.user_says(GENERAL, ALICE, "in the outage")
        world.server.people.loses_guild(GUILD, lost=False)
        await world.until(lambda: "in the outage" in world.sink.texts)

        assert [call.channel_id for call in world.server.calls_of("get_messages")] == [GENERAL]
        assert world.sink.messages[-1].external_id == str(missed)
        assert world.sink.memberships == [(str(GUILD), True)]


async def test_a_guild_that_is_away_at_the_start_is_no_leaving_and_comes_later():
    async with opened() as world:
        await world.listen()
        away = {"id": "9600", "unavailable": True}
        world.server.gateway.publish("GUILD_CREATE", away, Intent.GUILDS)
        world.server.gateway.publish("GUILD_DELETE", away, Intent.GUILDS)
        world.server.user_says(GENERAL, ALICE, "next")
        await world.heard(1)

        assert world.sink.memberships == [(str(GUILD), True)]


async def test_a_channel_that_is_opened_or_closed_to_everybody_is_known_as_such():
    async with opened() as world:
        await world.listen()
        world.server.people.opens_channel(9700, "new", guild=GUILD)
        world.server.user_says(9700, ALICE, "open")
        world.server.people.permits(9700, GUILD, kind=0, deny=1 << 10)
        world.server.people.permits(9700, BOT, allow=1 << 10)
        world.server.user_says(9700, ALICE, "closed")
        first, second = await world.heard(2)

        assert (first.privacy, second.privacy) == (Privacy.PUBLIC, Privacy.PRIVATE_GROUP)
        assert world.server.calls_of("channel") == []
