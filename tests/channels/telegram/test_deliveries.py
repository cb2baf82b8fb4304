"""What an outbox may ask for beside texts and cards, and what becomes of chats that changed."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.telegram.limits import Timing
from core.contracts.addresses import Address, Button, CardContent, OutboundItem, ReactionContent, Removal
from core.contracts.errors import ChatMoved, SendLimited, SendRejected, SendUnknown
from tests.channels.telegram.conftest import ALICE
from tests.platforms.telegram_faults import Fault

GROUP = Address(channel="telegram", account="123456789", chat="-4001")
FORUM = Address(channel="telegram", account="123456789", chat="-1001000000001")


def reaction(emoji, message, address=ALICE):
    return OutboundItem(id="t/r", address=address, content=ReactionContent(emoji=emoji), reply_to=message)


def removal(message, address=ALICE):
    return OutboundItem(id="t/x", address=address, content=Removal(), external_id=message)


async def in_pace(world, awaitable):
    """Run `awaitable` while time passes as it needs."""
    task = asyncio.create_task(awaitable)
    await world.pass_time(10)
    assert task.done()
    return task.result()


async def test_a_reaction_is_set_replaced_and_taken_back(world):
    asked = world.server.user_says(111, "done?")
    message = world.server.chats.by_id[111].messages[asked]
    seen = []
    for emoji in ("\N{THUMBS UP SIGN}", "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}", ""):
        external_id = await in_pace(world, world.channel.deliver(reaction(emoji, str(asked))))
        seen.append(list(message.reactions))

    assert seen == [["\N{THUMBS UP SIGN}"], ["\N{HEAVY BLACK HEART}"], []]
    assert external_id == f"reaction/{asked}"


async def test_a_reaction_that_telegram_does_not_offer_is_refused_in_words(world):
    asked = world.server.user_says(111, "done?")
    with pytest.raises(SendRejected, match="emoji"):
        await world.channel.deliver(reaction("\N{GREEN APPLE}", str(asked)))


@pytest.mark.parametrize("message", ["999", None])
async def test_a_reaction_needs_a_message_that_is_there(world, message):
    with pytest.raises(SendRejected):
        await world.channel.deliver(reaction("\N{THUMBS UP SIGN}", message))


async def test_a_removal_takes_a_message_away_once_and_for_all(world):
    shown = await world.channel.deliver(world.text("progress"))
    for _ in range(2):
        assert await in_pace(world, world.channel.deliver(removal(shown))) == shown

    assert world.server.visible(111) == []


async def test_a_message_that_is_too_old_to_delete_stays_and_is_no_failure(world, caplog):
    caplog.set_level("INFO")
    shown = await world.channel.deliver(world.text("old"))
    await world.clock.advance(timedelta(hours=49))

    assert await world.channel.deliver(removal(shown)) == shown
    assert [message.text for message in world.server.visible(111)] == ["old"]
    assert "telegram_message_stays" in caplog.text


async def test_a_removal_of_nothing_is_refused(world):
    with pytest.raises(SendRejected):
        await world.channel.deliver(removal(None))


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_what_has_one_effect_however_often_it_is_made_is_tried_again(world, fault):
    asked = world.server.user_says(111, "done?")
    shown = await world.channel.deliver(world.text("progress"))
    world.server.fault("setMessageReaction", fault)
    world.server.fault("deleteMessage", fault)
    for again in (reaction("\N{THUMBS UP SIGN}", str(asked)), removal(shown)):
        with pytest.raises(SendLimited):
            await in_pace(world, world.channel.deliver(again))
        await in_pace(world, world.channel.deliver(again))

    assert world.server.visible(111) == []
    assert world.server.chats.by_id[111].messages[asked].reactions == ["\N{THUMBS UP SIGN}"]


async def test_reactions_and_removals_keep_the_pace_of_their_chat_c15(world):
    asked = str(world.server.user_says(111, "done?"))
    shown = await world.channel.deliver(world.text("progress"))
    items = [reaction("\N{THUMBS UP SIGN}", asked), removal(shown), reaction("", asked), world.text("done")]
    deliveries = [asyncio.create_task(world.channel.deliver(item)) for item in items]
    await world.pass_time(10, step=0.1)
    await asyncio.gather(*deliveries)

    times = [call.at for call in world.server.calls if call.method != "sendChatAction"]
    assert times[-1] - times[0] >= 1.1 * 3 - 0.01


async def test_an_emoji_heavy_limit_of_one_chat_holds_no_other_c15(world):
    asked = str(world.server.user_says(111, "done?"))
    world.server.fault("setMessageReaction", Fault.FLOODED, seconds=0.35)
    with pytest.raises(SendLimited) as raised:
        await world.channel.deliver(reaction("\N{THUMBS UP SIGN}", asked))
    await world.channel.deliver(world.text("another chat", chat="222"))

    assert raised.value.retry_after == timedelta(seconds=0.35)
    assert len(world.server.visible(222)) == 1


@pytest.mark.parametrize("content", ["text", "card", "edit", "reaction", "removal"])
async def test_a_chat_that_moved_tells_where_to_and_nothing_is_sent_c20(world, content):
    world.server.open_chat(-4001)
    shown = await world.channel.deliver(replace(world.text("before"), address=GROUP))
    world.server.migrate(-4001, -1001000000002, told=False)
    text = replace(world.text("after"), address=GROUP)
    item = {
        "text": text,
        "card": replace(text, content=CardContent(text="Run?", rows=((Button(token="t", label="Yes"),),))),
        "edit": replace(text, external_id=shown),
        "reaction": reaction("\N{THUMBS UP SIGN}", shown, GROUP),
        "removal": removal(shown, GROUP),
    }[content]
    with pytest.raises(ChatMoved) as raised:
        await in_pace(world, world.channel.deliver(item))

    assert raised.value.chat == "-1001000000002"
    assert world.server.visible(-1001000000002) == []
    await in_pace(world, world.channel.deliver(replace(text, address=replace(GROUP, chat=raised.value.chat))))
    assert [message.text for message in world.server.visible(-1001000000002)] == ["after"]


async def test_general_is_written_to_without_a_topic_and_a_topic_with_its_own_c20(world):
    world.server.open_chat(-1001000000001, topics=(7,))
    world.run()
    for thread, extra in (
        (1, {}),
        (None, {"message_thread_id": 4711, "reply_to_message": {"message_id": 4711}}),
        (7, {}),
    ):
        world.server.user_says(-1001000000001, "/hi", user=111, thread=thread, **extra)
    await world.until(lambda: len(world.sink.events) == 3)
    for number, event in enumerate(world.sink.events):
        item = replace(world.text(f"answer {number}"), address=event.address)
        await in_pace(world, world.channel.deliver(item))

    assert [message.thread for message in world.server.visible(-1001000000001)] == [None, None, 7]
    assert len({event.address.key for event in world.sink.events}) == 2


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("bot was blocked by the user", "has blocked the bot"),
        ("bot was kicked from the supergroup chat", "was removed from the chat"),
        ("bot is not a member of the supergroup chat", "not in the chat"),
    ],
)
async def test_a_chat_that_is_closed_to_the_bot_says_so_in_words(world, why, words):
    world.server.bar(111, why)
    with pytest.raises(SendRejected, match=words):
        await world.channel.deliver(world.text("hello"))


async def test_leaving_a_group_is_done_once_and_being_out_of_it_is_no_failure(world):
    world.server.open_chat(-4001)
    for _ in range(2):
        await world.channel.leave(GROUP)

    assert len(world.server.calls_of("leaveChat")) == 2
    with pytest.raises(SendRejected, match="not in the chat"):
        await world.channel.deliver(replace(world.text("still here?"), address=GROUP))


async def test_a_group_that_moved_is_left_where_it_went(world):
    world.server.open_chat(-4001)
    world.server.migrate(-4001, -1001000000002, told=False)
    await world.channel.leave(GROUP)

    assert "not a member" in world.server.chats.by_id[-1001000000002].barred


async def test_a_private_chat_cannot_be_left(world):
    with pytest.raises(SendRejected):
        await world.channel.leave(ALICE)


async def test_an_answer_that_equals_the_preview_is_whole_even_if_its_edit_fails_three_times_c16(world):
    shown = await world.channel.deliver(world.text("the whole answer"))
    world.server.fail_next("editMessageText", 503, times=3)
    final = world.text("the whole answer", shown)
    for _ in range(3):
        with pytest.raises(SendLimited):
            await in_pace(world, world.channel.deliver(final))

    assert await in_pace(world, world.channel.deliver(final)) == shown
    assert [message.versions for message in world.server.visible(111)] == [["the whole answer"]]


async def test_an_answer_that_never_comes_leaves_the_outcome_open_and_other_chats_free(world):
    held = world.server.fault("sendMessage", Fault.HALF_OPEN)
    async with world.channel_with(timing=Timing(answer_timeout=timedelta(milliseconds=50))) as channel:
        send = asyncio.create_task(channel.deliver(world.text("hello")))
        await asyncio.wait_for(held.entered.wait(), 30)
        await channel.deliver(world.text("another chat", chat="222"))
        with pytest.raises(SendUnknown):
            await send

    assert world.server.visible(111) == []
