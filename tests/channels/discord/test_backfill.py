import logging
from collections import Counter
from datetime import timedelta

import pytest

from channels.discord.limits import BACKFILL_AGE, PAGE_LIMIT
from core.contracts.addresses import Privacy
from core.contracts.errors import ChannelDown, StoreUnavailable
from tests.channels.discord.taking import direct, opened, place
from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_guilds import (
    ALICE,
    BOB,
    BOT,
    FORUM,
    GENERAL,
    GUESTS,
    GUILD,
    KEEPERS,
    PEER_BOT,
    PRIVATE,
    RANDOM,
)
from tests.platforms.discord_permissions import ROLE
from tests.platforms.telegram_faults import Fault

NEW = 9700
AWAY = timedelta(minutes=5)


async def heard_before(world, *channels):
    """Let an earlier run have heard something in each channel, and time pass."""
    for channel in channels:
        world.sink.knows(world.server.user_says(channel, ALICE, "known"), chat=channel)
    await world.clock.advance(AWAY)


async def caught_up(world):
    """Run the channel until all it was told at the start is dealt with, and return the texts."""
    await world.listen()
    world.server.user_says(world.server.dm(PEER_BOT), PEER_BOT, "the end")
    await world.in_time(lambda: "the end" in world.sink.texts)
    return [text for text in world.sink.texts if text not in {"known", "the end"}]


def read(world):
    """Return how often the history of each channel was read."""
    return Counter(call.channel_id for call in world.server.calls_of("get_messages"))


# Where something was missed


async def test_what_was_missed_in_channels_is_handed_over_oldest_first():
    async with opened() as world:
        await heard_before(world, GENERAL, RANDOM, PRIVATE)
        for number in range(3):
            world.server.user_says(GENERAL, ALICE, f"general {number}")
            world.server.user_says(PRIVATE, ALICE, f"private {number}")
        texts = await caught_up(world)

        assert [text for text in texts if "general" in text] == ["general 0", "general 1", "general 2"]
        assert [text for text in texts if "private" in text] == ["private 0", "private 1", "private 2"]
        assert (read(world)[GENERAL], read(world)[PRIVATE]) == (1, 1)


async def test_it_is_handed_over_just_as_it_would_have_come():
    async with opened() as world:
        await heard_before(world, GENERAL)
        await world.listen()
        world.server.user_says(GENERAL, BOB, f"<@{BOT}> **hello** <@{ALICE}>")
        world.server.user_says(PRIVATE, ALICE, "among keepers")
        live = (await world.heard(3))[1:]
        await world.stop(world.tasks[0])
        world.sink.offers.clear()
        world.run()
        await world.hears()
        again = [event for event in await world.heard(3) if event.body.text != "known"]

        assert again == live
        assert again[0].sender.roles == (f"discord:{GUESTS}",)
        assert [event.privacy for event in again] == [Privacy.PUBLIC, Privacy.PRIVATE_GROUP]


async def test_what_was_missed_in_threads_and_posts_is_handed_over():
    async with opened() as world:
        asked = world.server.user_says(GENERAL, ALICE, "known")
        talk = world.server.says_in_new_thread(GENERAL, ALICE, "known", at=asked)
        post = world.server.posts_in_forum(FORUM, BOB, "Title", "known")
        world.sink.knows(talk, thread=talk)
        world.sink.knows(post, chat=FORUM, thread=post)
        await world.clock.advance(AWAY)
        world.server.user_says(talk, ALICE, "in the thread")
        world.server.user_says(post, ALICE, "in the post")
        texts = await caught_up(world)

        assert sorted(texts) == ["in the post", "in the thread"]
        assert {event.body.text: event.address for event in world.sink.messages if event.body.text in texts} == {
            "in the thread": place(GENERAL, talk),
            "in the post": place(FORUM, post),
        }


async def test_what_began_while_the_host_was_away_is_handed_over_whole():
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.people.opens_channel(NEW, "new", guild=GUILD)
        world.server.user_says(NEW, ALICE, "in a new channel")
        talk = world.server.says_in_new_thread(RANDOM, ALICE, "in a new thread")
        post = world.server.posts_in_forum(FORUM, BOB, "Title", "in a new post")
        texts = await caught_up(world)

        assert sorted(texts) == ["in a new channel", "in a new post", "in a new thread"]
        assert {event.address for event in world.sink.messages if event.body.text in texts} == {
            place(NEW),
            place(RANDOM, talk),
            place(FORUM, post),
        }


async def test_a_mention_that_began_a_conversation_while_the_host_was_away_is_heard():
    async with opened() as world:
        await heard_before(world, RANDOM)
        asked = world.server.user_says(GENERAL, BOB, f"<@{BOT}> are you there?")
        await caught_up(world)

        mentions = [event for event in world.sink.messages if event.address.space and event.body.addressed]

        assert [event.address for event in mentions] == [place(GENERAL, asked)]


async def test_what_was_missed_in_a_thread_that_is_archived_is_handed_over():
    async with opened() as world:
        asked = world.server.user_says(GENERAL, ALICE, "known")
        talk = world.server.says_in_new_thread(GENERAL, ALICE, "known", at=asked)
        world.sink.knows(talk, thread=talk)
        await world.clock.advance(AWAY)
        world.server.user_says(talk, ALICE, "a last word")
        world.server.archives_thread(talk)

        assert await caught_up(world) == ["a last word"]
        assert [event.address for event in world.sink.messages if event.body.text == "a last word"] == [
            place(GENERAL, talk)
        ]


async def test_what_was_missed_in_private_is_handed_over():
    async with opened() as world:
        for user in (ALICE, BOB):
            dm = world.server.dm(user)
            world.sink.knows(world.server.user_says(dm, user, "known"), chat=dm, space=None)
        await world.clock.advance(AWAY)
        world.server.user_says(world.server.dm(BOB), BOB, "in private")
        texts = await caught_up(world)
        (event,) = [event for event in world.sink.messages if event.body.text == "in private"]

        assert texts == ["in private"]
        assert (event.address, event.privacy) == (direct(world.server, BOB), Privacy.DIRECT)
        assert world.server.calls_of("guild_member") == []


async def test_many_pages_are_read_to_their_end():
    async with opened() as world:
        await heard_before(world, GENERAL)
        for number in range(2 * PAGE_LIMIT + 50):
            world.server.user_says(GENERAL, ALICE, f"{number}")
            await world.clock.advance(timedelta(milliseconds=1))
        texts = await caught_up(world)

        assert texts == [f"{number}" for number in range(2 * PAGE_LIMIT + 50)]
        assert read(world) == {GENERAL: 3}


async def test_a_history_that_ends_with_a_full_page_is_read_to_its_end():
    async with opened() as world:
        await heard_before(world, GENERAL)
        for number in range(PAGE_LIMIT):
            world.server.user_says(GENERAL, ALICE, f"{number}")

        assert await caught_up(world) == [f"{number}" for number in range(PAGE_LIMIT)]


# Who said it


async def test_what_an_author_may_is_asked_once_for_each_and_for_no_bot():
    async with opened() as world:
        await heard_before(world, GENERAL)
        for number in range(3):
            world.server.user_says(GENERAL, BOB, f"Bob {number}")
            world.server.user_says(GENERAL, ALICE, f"Alice {number}")
        world.server.user_says(GENERAL, PEER_BOT, "a bot")
        await caught_up(world)
        asked = [call.ids["user_id"] for call in world.server.calls_of("guild_member")]
        roles = {
            event.sender.identity: event.sender.roles for event in world.sink.messages if event.body.text[-1] == "2"
        }

        assert sorted(asked) == [str(ALICE), str(BOB)]
        assert roles[f"discord:{ALICE}"] == (f"discord:{KEEPERS}",)
        assert roles[f"discord:{BOB}"] == (f"discord:{GUESTS}",)


async def test_somebody_who_is_in_the_guild_no_more_has_no_roles():
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, BOB, "and goodbye")
        del world.server.directory.guilds[GUILD].members[BOB]

        assert await caught_up(world) == ["and goodbye"]
        (event,) = [event for event in world.sink.messages if event.body.text == "and goodbye"]
        assert (event.sender.identity, tuple(event.sender.roles)) == (f"discord:{BOB}", ())


# What is not read


async def test_at_the_first_start_nothing_is_read():
    async with opened() as world:
        world.server.user_says(GENERAL, ALICE, "long ago")
        world.server.user_says(world.server.dm(ALICE), ALICE, "long ago, too")

        assert await caught_up(world) == []
        assert read(world) == {}
        assert world.server.calls_of("channel") == []


async def test_where_nothing_is_new_no_more_than_one_look_is_taken():
    async with opened() as world:
        talk = world.server.says_in_new_thread(GENERAL, ALICE, "known")
        world.sink.knows(world.server.user_says(talk, ALICE, "known"), thread=talk)
        await heard_before(world, GENERAL, RANDOM)

        assert await caught_up(world) == []
        assert set(read(world).values()) == {1}
        assert world.server.calls_of("channel") == []


async def test_what_is_older_than_anything_heard_elsewhere_is_not_read_in_a_place_that_was_silent():
    async with opened() as world:
        world.server.user_says(PRIVATE, ALICE, "before the bot listened")
        await world.clock.advance(AWAY)
        await heard_before(world, GENERAL)

        assert await caught_up(world) == []


async def test_no_more_than_a_week_is_read():
    async with opened() as world:
        dm = world.server.dm(BOB)
        world.sink.knows(world.server.user_says(dm, BOB, "known"), chat=dm, space=None)
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, ALICE, "long ago")
        await world.clock.advance(BACKFILL_AGE)
        world.server.user_says(GENERAL, ALICE, "lately")
        world.server.user_says(dm, BOB, "lately, in private")

        assert await caught_up(world) == ["lately"]


async def test_the_bots_own_messages_and_discords_notes_are_left_out():
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.messages.send(GENERAL, {"content": "mine"}, [])
        world.server.user_says(GENERAL, ALICE, "", kind=7)
        world.server.user_says(GENERAL, ALICE, "hers")

        assert await caught_up(world) == ["hers"]


# What goes wrong


@pytest.mark.parametrize("denied", [allowed.VIEW_CHANNEL, allowed.READ_MESSAGE_HISTORY])
async def test_a_channel_that_is_refused_stops_no_other(denied, caplog):
    caplog.set_level(logging.INFO)
    async with opened() as world:
        await heard_before(world, GENERAL, PRIVATE, RANDOM)
        for channel in (GENERAL, PRIVATE, RANDOM):
            world.server.user_says(channel, ALICE, f"in {channel}")
        world.server.people.permits(GENERAL, BOT, deny=denied)
        texts = await caught_up(world)

        assert sorted(texts) == [f"in {RANDOM}", f"in {PRIVATE}"]
        assert ("discord_question_refused" in caplog.text) == (denied == allowed.VIEW_CHANNEL)


async def test_a_channel_or_thread_that_is_gone_stops_nothing(caplog):
    caplog.set_level(logging.INFO)
    async with opened() as world:
        talk = world.server.says_in_new_thread(GENERAL, ALICE, "known")
        world.sink.knows(talk, thread=talk)
        await heard_before(world, GENERAL, PRIVATE)
        world.server.people.deletes_thread(talk)
        world.server.people.deletes_channel(PRIVATE)
        world.server.user_says(GENERAL, ALICE, "still here")

        assert await caught_up(world) == ["still here"]
        assert caplog.text.count("discord_question_refused") == 2


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
@pytest.mark.parametrize("route", ["get_messages", "guild_member"])
async def test_a_history_that_is_not_answered_is_asked_for_again_and_comes_before_what_is_new(route, fault, caplog):
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, ALICE, "missed")
        world.server.fault(route, fault, times=2)

        assert await caught_up(world) == ["missed"]
        assert world.sink.texts[-1] == "the end"
        assert caplog.text.count("discord_not_reached") == 2


async def test_a_limit_is_kept():
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, ALICE, "missed")
        world.server.fault("get_messages", Fault.FLOODED, seconds=30)
        await world.listen()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(29, step=1)
        assert read(world) == {GENERAL: 1}
        await world.in_time(lambda: "missed" in world.sink.texts)


async def test_a_long_history_keeps_to_discords_pace():
    async with opened() as world:
        await heard_before(world, GENERAL)
        for number in range(8 * PAGE_LIMIT):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        world.server.pace.enforced = True
        texts = await caught_up(world)

        assert len(texts) == 8 * PAGE_LIMIT
        assert {call.status for call in world.server.calls_of("get_messages")} == {200}


async def test_a_token_that_is_refused_meanwhile_ends_the_channel():
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, ALICE, "missed")
        held = world.server.gate_next("get_messages")
        task = world.run()
        await held.entered.wait()
        world.server.account.revoked = True
        held.opened.set()
        await world.in_time(task.done)

        with pytest.raises(ChannelDown):
            task.result()


async def test_a_store_that_fails_meanwhile_loses_nothing():
    async with opened() as world:
        await heard_before(world, GENERAL)
        for number in range(5):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        world.sink.errors = [None, None, StoreUnavailable("locked"), StoreUnavailable("locked")]

        assert await caught_up(world) == [f"{number}" for number in range(5)]
        assert world.sink.errors == []


async def test_what_is_malformed_in_a_history_is_logged_and_passed_over(caplog):
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, ALICE, "odd", author={"name": "nobody"})
        world.server.user_says(GENERAL, ALICE, "next")

        assert await caught_up(world) == ["next"]
        assert caplog.text.count("discord_event_malformed") == 1


async def test_what_comes_while_a_history_is_read_is_heard_after_it_and_once():
    async with opened() as world:
        await heard_before(world, GENERAL)
        world.server.user_says(GENERAL, ALICE, "missed")
        held = world.server.gate_answer("get_messages")
        world.run()
        await held.entered.wait()
        world.server.user_says(GENERAL, ALICE, "new")
        held.opened.set()
        await world.in_time(lambda: "new" in world.sink.texts)

        assert world.sink.texts == ["known", "missed", "new"]


async def test_a_channel_that_everybody_may_see_is_told_as_public_and_another_is_not():
    async with opened() as world:
        await heard_before(world, GENERAL, RANDOM)
        world.server.people.permits(GENERAL, GUILD, kind=ROLE, deny=allowed.VIEW_CHANNEL)
        world.server.people.permits(GENERAL, BOT, allow=allowed.VIEW_CHANNEL)
        world.server.user_says(GENERAL, ALICE, "closed")
        world.server.user_says(RANDOM, ALICE, "open")
        await caught_up(world)
        privacy = {event.body.text: event.privacy for event in world.sink.messages}

        assert (privacy["closed"], privacy["open"]) == (Privacy.PRIVATE_GROUP, Privacy.PUBLIC)
