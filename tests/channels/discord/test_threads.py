"""Threads are made when they are first needed, and found again, archived or gone."""

import asyncio
import logging

import pytest

from channels.discord.threads import pace_key, thread_name
from core.contracts.errors import SendLimited, SendRejected
from tests.channels.discord.sending import HERE, card, file, opened, reaction, removal, text, thread_of
from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_guilds import ALICE, BOB, BOT, BOT_ROLE, FORUM, GENERAL, GUILD
from tests.platforms.discord_permissions import Overwrite
from tests.platforms.telegram_faults import Fault


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


@pytest.fixture
def asked(world):
    """A message that mentions the bot, which no thread begins with yet."""
    return world.server.user_says(GENERAL, ALICE, f"<@{BOT}> what is this?")


def name_of(world, thread):
    return world.server.directory.channel(thread).name


def deny(world, permission):
    world.server.directory.channel(GENERAL).overwrites = [Overwrite(BOT_ROLE, deny=permission)]


async def test_a_thread_is_made_by_the_first_message_for_it(world, asked):
    for _ in range(2):
        await world.deliver(text("answer", thread_of(asked)))

    assert world.texts(asked) == ["answer", "answer"]
    assert world.texts(GENERAL) == []
    assert name_of(world, asked) == "what is this?"
    assert len(world.server.calls_of("start_thread")) == 1


async def test_a_card_and_a_file_make_it_too(world, asked, tmp_path):
    other = world.server.user_says(GENERAL, BOB, f"<@{BOT}> and that?")
    path = tmp_path / "a.txt"
    path.write_text("a")
    await world.deliver(card(thread_of(asked)))
    await world.deliver(file(path, thread_of(other)))

    assert world.texts(asked) == ["Run it?"]
    assert len(world.server.visible(other)[0].attachments) == 1


async def test_a_thread_that_somebody_made_meanwhile_is_used(world, asked):
    opening = world.server.gate_next("start_thread")
    sending = asyncio.create_task(world.deliver(text("answer", thread_of(asked))))
    await opening.entered.wait()
    world.server.says_in_new_thread(GENERAL, ALICE, "mine", at=asked)
    opening.opened.set()
    await sending

    assert world.texts(asked) == ["answer"]
    assert [call.status for call in world.server.calls_of("start_thread")] == [400]


async def test_a_message_that_is_gone_is_answered_in_its_channel(world, asked, caplog):
    caplog.set_level(logging.WARNING)
    world.server.user_deletes(GENERAL, asked)
    for _ in range(2):
        await world.deliver(text("answer", thread_of(asked)))

    assert world.texts(GENERAL) == ["answer", "answer"]
    assert len(world.server.calls_of("get_message")) == 1
    assert "discord_thread_not_opened" in caplog.text


async def test_without_the_permission_the_message_is_answered_in_its_channel_by_a_reply(world, asked):
    deny(world, allowed.CREATE_PUBLIC_THREADS)
    shown = await world.deliver(text("answer", thread_of(asked)))
    await world.deliver(text("better", thread_of(asked), external_id=shown))
    await world.deliver(reaction("\N{THUMBS UP SIGN}", shown, thread_of(asked)))

    (message,) = world.server.visible(GENERAL)
    assert (message.text, message.reply_to) == ("better", (GENERAL, asked))
    assert message.reactions == {"\N{THUMBS UP SIGN}": [BOT]}


async def test_a_thread_that_was_deleted_is_answered_in_its_channel(world, asked):
    await world.deliver(text("one", thread_of(asked)))
    shown = await world.deliver(text("two", thread_of(asked)))
    world.server.people.deletes_thread(asked)
    again = await world.deliver(text("two, better", thread_of(asked), external_id=shown))

    assert again != shown
    assert [(message.text, message.reply_to) for message in world.server.visible(GENERAL)] == [
        ("two, better", (GENERAL, asked))
    ]


async def test_a_thread_that_is_neither_there_nor_can_be_made_is_done_without(world, asked):
    world.server.fail_next("start_thread", 400, {"message": "A thread has already been created", "code": 160004})
    for _ in range(2):
        await world.deliver(text("answer", thread_of(asked)))

    assert world.texts(GENERAL) == ["answer", "answer"]
    assert len(world.server.calls_of("start_thread")) == 1


async def test_an_archived_thread_opens_for_a_message_an_edit_a_reaction_and_a_removal(world, asked):
    address = thread_of(asked)
    shown = await world.deliver(text("one", address))
    for item in (
        text("two", address),
        text("one, better", address, external_id=shown),
        reaction("\N{EYES}", shown, address),
        removal(shown, address),
    ):
        world.server.archives_thread(asked)
        await world.deliver(item)

    assert world.texts(asked) == ["two"]
    assert not world.server.directory.channel(asked).thread.archived


async def test_an_edit_in_an_archived_thread_that_may_not_be_opened_is_a_new_message(world, asked):
    thread = world.server.says_in_new_thread(GENERAL, ALICE, "mine", at=asked)
    shown = await world.deliver(text("one", thread_of(thread)))
    world.server.directory.guilds[GUILD].roles[BOT_ROLE].permissions &= ~allowed.MANAGE_THREADS
    world.server.archives_thread(asked)
    again = await world.deliver(text("one, better", thread_of(thread), external_id=shown))

    assert again != shown
    assert world.texts(asked) == ["one", "one, better"]


async def test_a_locked_thread_refuses_in_words(world, asked):
    await world.deliver(text("one", thread_of(asked)))
    world.server.directory.guilds[GUILD].roles[BOT_ROLE].permissions &= ~allowed.MANAGE_THREADS
    world.server.archives_thread(asked, locked=True)
    with pytest.raises(SendRejected, match="locked"):
        await world.deliver(text("two", thread_of(asked)))


async def test_the_first_message_of_a_thread_is_reacted_to_where_it_stands(world, asked):
    await world.deliver(text("answer", thread_of(asked)))
    await world.deliver(reaction("\N{EYES}", str(asked), thread_of(asked)))
    post = world.server.posts_in_forum(FORUM, ALICE, "How?", "Tell me.")
    await world.deliver(reaction("\N{EYES}", str(post), thread_of(post, FORUM)))

    assert world.server.messages.by_channel[GENERAL][asked].reactions == {"\N{EYES}": [BOT]}
    assert world.server.messages.by_channel[post][post].reactions == {"\N{EYES}": [BOT]}


async def test_a_post_of_a_forum_is_answered_in_it(world):
    post = world.server.posts_in_forum(FORUM, ALICE, "How?", "Tell me.")
    await world.deliver(text("So.", thread_of(post, FORUM)))

    assert world.texts(post) == ["So."]


async def test_a_reaction_to_what_is_gone_from_everywhere_is_refused(world, asked):
    await world.deliver(text("answer", thread_of(asked)))
    with pytest.raises(SendRejected, match="not there any more"):
        await world.deliver(reaction("\N{EYES}", "123", thread_of(asked)))


async def test_typing_shows_in_the_channel_until_there_is_a_thread(world, asked):
    threads = world.threads
    await threads.type_in(thread_of(asked))
    await world.deliver(text("answer", thread_of(asked)))
    await threads.type_in(thread_of(asked))
    await threads.type_in(HERE)

    assert [call.channel_id for call in world.server.calls_of("typing") if call.status == 204] == [
        GENERAL,
        asked,
        GENERAL,
    ]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_a_thread_of_unknown_outcome_is_made_once(world, asked, fault):
    world.server.fault("start_thread", fault)
    item = text("answer", thread_of(asked))
    with pytest.raises(SendLimited):
        await world.deliver(item)
    await world.deliver(item)

    assert world.texts(asked) == ["answer"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("<@8000> hello there", "hello there"),
        (
            "<@!8000>  say\nhello to <@7001> and <@1> in <#9100> <@&9300> <:wave:55>",
            "say hello to @Alice and in :wave:",
        ),
        ("<@8000>", "Conversation"),
        ("word " * 40, "word " * 15 + "word…"),
        ("\N{GRINNING FACE}" * 60, "\N{GRINNING FACE}" * 39 + "…"),
    ],
)
def test_a_thread_is_called_by_how_its_message_begins(content, name):
    mentions = [{"id": "8000", "username": "lodger"}, {"id": "7001", "username": "alice", "global_name": "Alice"}]

    assert thread_name({"content": content, "mentions": mentions}, "8000") == name


def test_a_thread_has_a_pace_of_its_own():
    assert pace_key(HERE) == str(GENERAL)
    assert pace_key(thread_of(5)) == "5"
