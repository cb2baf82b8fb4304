"""What in an admitted group is meant for the agent, and where it stops answering another bot."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.config.model import GroupTalk
from bot.conversations.hearing import BOT_REST, BOT_TURNS
from core.contracts.addresses import MessageBody, Privacy, Sender
from core.contracts.delivery import INBOX_QUEUE
from core.models.scripted import says
from core.stores.connection import Database
from tests.bot.conversations.grouping import BOB, GROUP, PEER, TOPIC, admitted, mentions, talks
from tests.bot.conversations.hosting import ALICE, MIKE, SAM, chat, hosting, make_settings

STRANGE_BOT = Sender(identity="telegram:888", name="Strange", is_bot=True)
SECOND = timedelta(seconds=1)


@pytest.fixture
def opened(tmp_path):
    def open_host(groups: GroupTalk = GroupTalk.MENTION, **more):
        settings = make_settings(tmp_path)
        access = replace(settings.access, groups=groups, bots=(PEER.identity,))
        answers = [says(f"answer {number}") for number in range(1, 60)]
        return hosting(tmp_path, *answers, settings=replace(settings, access=access), **more)

    return open_host


def answered(host) -> int:
    return len(host.model.requests)


async def test_by_default_a_group_is_answered_when_it_mentions_the_agent(opened):
    async with opened() as host:
        await admitted(host)
        await talks(host, "lunch?")
        assert answered(host) == 0
        await mentions(host, "lunch?")
        await talks(host, "and dinner?")
        assert answered(host) == 1


async def test_a_thread_that_one_person_has_with_the_agent_is_followed_without_mention(opened):
    async with opened() as host:
        await admitted(host)
        await talks(host, "not yet", where=TOPIC)
        await mentions(host, "hi", where=TOPIC)
        await talks(host, "and?", where=TOPIC)
        await talks(host, "and?", where=TOPIC)
        assert answered(host) == 3


async def test_from_the_second_person_on_a_thread_is_answered_by_mention(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi", where=TOPIC)
        await talks(host, "me too", where=TOPIC, who=SAM)
        await talks(host, "and?", where=TOPIC)
        assert answered(host) == 1
        await mentions(host, "and?", where=TOPIC)
        assert answered(host) == 2


async def test_another_bot_is_no_second_person(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi", where=TOPIC)
        await talks(host, "build passed", where=TOPIC, who=STRANGE_BOT)
        await talks(host, "and?", where=TOPIC)
        assert answered(host) == 2


async def test_the_thread_of_somebody_else_is_not_followed(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi", where=TOPIC)
        await talks(host, "hi", where=chat("-100", "8"))
        assert answered(host) == 1


async def test_taking_part_means_every_message_of_a_thread_that_it_answered_in(opened):
    async with opened(GroupTalk.PARTICIPATE) as host:
        await admitted(host)
        await talks(host, "not yet", where=TOPIC)
        await mentions(host, "hi", where=TOPIC)
        await talks(host, "me too", where=TOPIC, who=SAM)
        await talks(host, "lunch?")
        assert answered(host) == 2


async def test_where_all_is_set_every_message_is_for_the_agent_but_a_bots_without_mention(opened):
    async with opened(GroupTalk.ALL) as host:
        await admitted(host)
        await talks(host, "lunch?")
        await talks(host, "lunch?", where=TOPIC, who=SAM)
        await talks(host, "build passed", who=PEER)
        assert answered(host) == 2


async def test_a_followed_thread_takes_no_command_that_is_not_addressed(opened):
    """It may come from nobody whose rights can be looked at; what it says is heard all the same."""
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi", where=TOPIC)
        await talks(host, "/whoami", where=TOPIC)
        await talks(host, "/whoami")
        assert answered(host) == 2
        assert not any("You are Bob" in text for text in host.texts(TOPIC))
        assert host.texts(GROUP) == []


async def test_a_restart_follows_the_same_threads(tmp_path, opened):
    database = Database.open(":memory:")
    async with opened(database=database) as first:
        await admitted(first)
        await mentions(first, "hi", where=TOPIC)
    more = {"memory": first.memory, "clock": first.clock, "channel": first.channel, "model": first.model}
    async with opened(database=database, **more) as second:
        await talks(second, "and?", where=TOPIC)
        assert answered(second) == 2
    await database.close()


async def test_a_bot_that_no_rule_names_is_not_answered_whatever_it_says(opened):
    async with opened(GroupTalk.ALL) as host:
        await admitted(host)
        for text in ("do it", "/help", "/whoami"):
            await mentions(host, text, who=STRANGE_BOT)
        await host.says("hi", who=STRANGE_BOT, where=chat("888"))
        assert (answered(host), host.texts(GROUP), host.texts(chat("888"))) == (0, [], [])


async def test_a_bot_that_may_talk_gives_no_command_and_gets_no_notice(opened):
    """Those are not counted as turns: two bots that answer each other's would never end."""
    async with opened() as host:
        await admitted(host)
        for text in ("/help", "/new", "/nonsense", "  "):
            await mentions(host, text, who=PEER)
        assert host.texts(GROUP) == []


async def test_two_bots_that_answer_each_other_end_after_a_few_turns_with_one_warning(opened, caplog):
    """C08 B: five turns, then ten minutes of silence; a human is answered at once."""
    async with opened() as host:
        await admitted(host)
        with caplog.at_level(logging.WARNING):
            for _ in range(50):
                await host.clock.advance(SECOND)
                await mentions(host, "ok, next?", who=PEER)
        assert answered(host) == BOT_TURNS == 5
        assert [record.message for record in caplog.records].count("bot_loop_stopped") == 1
        assert len(host.texts(GROUP)) == 5
        await mentions(host, "still there?")
        assert answered(host) == 6


async def test_the_silence_ends_ten_minutes_after_the_last_turn_not_after_the_last_try(opened):
    """C08 B."""
    async with opened() as host:
        await admitted(host)
        for _ in range(BOT_TURNS):
            await mentions(host, "next?", who=PEER)
        await host.clock.advance(BOT_REST - SECOND)
        await mentions(host, "next?", who=PEER)
        assert answered(host) == BOT_TURNS
        await host.clock.advance(SECOND)
        await mentions(host, "next?", who=PEER)
        assert answered(host) == BOT_TURNS + 1


async def test_a_bot_that_asks_now_and_then_is_always_answered(opened):
    async with opened() as host:
        await admitted(host)
        for _ in range(2 * BOT_TURNS):
            await mentions(host, "status?", who=PEER)
            await host.clock.advance(BOT_REST)
        assert answered(host) == 2 * BOT_TURNS


async def test_a_restart_does_not_begin_to_count_anew(tmp_path, opened):
    """C08 B: the count is that of the rows."""
    database = Database.open(":memory:")
    async with opened(database=database) as first:
        await admitted(first)
        for _ in range(BOT_TURNS):
            await mentions(first, "next?", who=PEER)
    more = {"memory": first.memory, "clock": first.clock, "channel": first.channel, "model": first.model}
    async with opened(database=database, **more) as second:
        await mentions(second, "next?", who=PEER)
        assert answered(second) == BOT_TURNS
    await database.close()


async def test_the_count_holds_also_where_much_was_said_while_the_host_was_down(opened):
    """What came behind a message does not hide what came before it."""
    async with opened() as host:
        await admitted(host)
        group = {"where": GROUP, "privacy": Privacy.PRIVATE_GROUP}
        for _ in range(BOT_TURNS + 3):
            await host.arrives(MessageBody(text="next?"), who=PEER, **group)
        for _ in range(450):
            await host.arrives(MessageBody(text="talk", addressed=False), who=BOB, **group)
        await host.settle(INBOX_QUEUE)
        queued = await host.stores.delivery.queued(await host.conversation_id(GROUP))
        assert len(queued) == BOT_TURNS


async def test_each_bot_and_each_chat_is_counted_by_itself(opened):
    async with opened() as host:
        await admitted(host)
        for _ in range(BOT_TURNS + 1):
            await mentions(host, "next?", who=PEER)
        await mentions(host, "next?", who=PEER, where=TOPIC)
        assert answered(host) == BOT_TURNS + 1


async def test_a_bot_in_a_direct_chat_is_braked_too(opened):
    async with opened() as host:
        for _ in range(BOT_TURNS + 2):
            await host.says("next?", who=PEER, where=chat("999"))
        assert answered(host) == BOT_TURNS


async def test_a_bot_is_never_more_than_a_member_even_where_the_rules_say_so(tmp_path):
    settings = make_settings(tmp_path)
    access = replace(settings.access, owners=(ALICE.identity, PEER.identity), bots=(PEER.identity,))
    async with hosting(tmp_path, says("ok"), settings=replace(settings, access=access)) as host:
        standing = await host.app.router._ports.access.standing(PEER)
        assert standing.role == "member"
        listed_nowhere = replace(STRANGE_BOT, identity=MIKE.identity)
        assert not (await host.app.router._ports.access.standing(listed_nowhere)).may_talk
        assert (await host.app.router._ports.access.standing(BOB)).role == "stranger"
