"""Previews over the wire, and the finals behind them."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.errors import SendLimited
from tests.channels.discord.sending import ELSEWHERE, HERE, opened, text, thread_of
from tests.platforms.discord_guilds import ALICE, BOT, GENERAL, RANDOM
from tests.platforms.telegram_faults import Fault


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


async def stream(world, *texts, address=HERE, seconds=2):
    """Show texts one after another in one preview."""
    async with world.replies.open(address, world.on_sent) as reply:
        for shown in texts:
            await reply.show(shown)
            await world.pass_time(seconds)


async def test_a_preview_is_one_message_that_becomes_the_final(world):
    await stream(world, "one", "one **two", "one **two** three")
    final = text("one **two** three.", external_id=world.sent[0])
    await world.deliver(final)

    (message,) = world.server.visible(GENERAL)
    assert message.versions == ["one", "one \\*\\*two", "one **two** three", "one **two** three."]
    assert world.sent == [str(message.id)]


async def test_the_first_preview_makes_the_thread_and_typing_shows_before_it_in_the_channel(world):
    asked = world.server.user_says(GENERAL, ALICE, f"<@{BOT}> what is this?")
    async with world.replies.open(thread_of(asked), world.on_sent) as reply:
        await world.pass_time(1)
        await reply.show("It is")
        await world.pass_time(2)
        await reply.show("It is this")
        await world.pass_time(2)

    assert world.texts(asked) == ["It is this"]
    assert [call.channel_id for call in world.server.calls_of("typing") if call.status == 204] == [GENERAL]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.ANSWERED])
async def test_a_first_preview_of_unknown_outcome_is_shown_once(world, fault):
    world.server.fault("create_message", fault)
    await stream(world, "one", "one two", "one two three")

    assert world.texts() == ["one two three"]
    assert world.sent == [str(world.server.visible(GENERAL)[0].id)]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_the_final_takes_the_place_of_a_preview_whose_answer_was_lost(world, fault):
    world.server.fault("create_message", fault)
    await stream(world, "half of", seconds=0.5)
    await world.deliver(text("half of it, and all", external_id=world.sent[0]))

    assert world.texts() == ["half of it, and all"]


async def test_a_limit_while_streaming_is_kept_and_the_final_is_whole_c15(world):
    async def answer():
        await stream(world, "1", "12", "123")
        world.server.fault("edit_message", Fault.FLOODED, seconds=25)
        await stream_on()
        item = text("1234" + "5" * 900, external_id=world.sent[0])
        while True:
            try:
                return await world.deliveries.deliver(item)
            except SendLimited as error:
                await world.clock.sleep(error.retry_after)

    async def stream_on():
        async with world.replies.open(HERE, world.on_sent) as reply:
            await reply.show("another answer")
            await world.pass_time(2)
            await reply.show("another answer, longer")
            await world.pass_time(2)

    delivery = asyncio.create_task(answer())
    await world.until(lambda: any(call.status == 429 for call in world.server.calls))
    await world.deliveries.deliver(text("free", ELSEWHERE))
    assert world.texts(RANDOM) == ["free"]
    while not delivery.done():
        await world.pass_time(1)
    await delivery

    limited = next(call for call in world.server.calls if call.status == 429)
    later = [call.at for call in world.server.calls_of("edit_message", GENERAL) if call.at > limited.at]
    assert later
    assert min(later) - limited.at >= 25
    assert world.texts()[0] == "1234" + "5" * 900


async def test_nothing_of_a_preview_is_under_way_after_its_block(world):
    async with world.replies.open(HERE, world.on_sent) as reply:
        await reply.show("one")
        held = world.server.gate_next("create_message")
        await world.settle()
        await world.clock.advance(timedelta(seconds=1))
        await asyncio.wait_for(held.entered.wait(), 30)
        asyncio.get_running_loop().call_soon(held.opened.set)
    calls = len(world.server.calls)
    await world.pass_time(5)

    assert len(world.server.calls) == calls
    assert world.texts() == ["one"]


async def test_a_preview_that_grows_too_long_shows_what_fits(world):
    await stream(world, "word " * 300, "word " * 3000)

    (message,) = world.server.visible(GENERAL)
    assert message.text.endswith("…")
    assert len(message.text) <= 2000


async def test_previews_finals_and_typing_of_a_chat_keep_within_its_budget_c15(world):
    world.server.pace.enforced = True
    async with world.replies.open(HERE, world.on_sent) as reply:
        for count in range(1, 60):
            await reply.show("word " * count)
            await world.pass_time(0.5)
    await world.deliver(text("word " * 60, external_id=world.sent[0]))

    assert {call.status for call in world.server.calls} <= {200, 204}


async def test_a_preview_in_a_channel_that_is_gone_fails_silently_and_the_final_tells(world):
    gone = replace(HERE, chat="4711")
    await stream(world, "one", "one two", address=gone)

    assert world.sent == []
