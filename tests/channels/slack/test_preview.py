import asyncio
import gc
import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.errors import StoreUnavailable
from tests.channels.slack.sending import CHANNEL, DIRECT, OTHER, opened, text
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE_DM, ROOM


@pytest.fixture
async def scene():
    async with opened() as opened_scene:
        yield opened_scene


def only(scene, chat=ALICE_DM):
    (message,) = scene.server.visible(chat)
    return message


def shown(scene, chat=ALICE_DM):
    """Return every call that changed what people read in a channel."""
    kinds = {"chat.postMessage", "chat.update", "chat.startStream", "chat.appendStream"}
    return [call for call in scene.server.calls if call.method in kinds and call.params.get("channel") == chat]


def statuses(scene):
    return [call.params["status"] for call in scene.server.calls_of("assistant.threads.setStatus")]


@pytest.mark.parametrize("address", [CHANNEL, DIRECT])
async def test_previews_are_paced_and_the_latest_text_wins(scene, address):
    thread = address if address is CHANNEL else scene.asked(address)
    async with scene.reply(thread) as reply:
        for count in range(1, 101):
            await reply.show("x" * count)
            await scene.pass_time(0.05, step=0.05)
    times = [call.at for call in shown(scene, address.chat)]

    assert 4 <= len(times) <= 6
    assert all(later - earlier >= 1.2 - 0.01 for earlier, later in itertools.pairwise(times))
    assert len(only(scene, address.chat).text) > 60
    assert len(scene.sent) == 1


async def test_an_answer_that_is_complete_at_once_gets_no_preview_and_no_status(scene):
    async with scene.reply(scene.asked()) as reply:
        await reply.show("all of it")
    await scene.pass_time(5)

    assert scene.server.calls == []


async def test_the_same_text_is_not_shown_again(scene):
    async with scene.reply(scene.asked()) as reply:
        for same in ("same", "same", "same \n", " ", ""):
            await reply.show(same)
            await scene.pass_time(2)

    assert len(shown(scene)) == 1


async def test_a_stream_is_over_when_the_block_is_left_and_the_final_takes_its_place_c19(scene):
    thread = scene.asked()
    async with scene.reply(thread) as reply:
        await reply.show("first half")
        await scene.pass_time(2)
        assert only(scene).stream == "streaming"
        await reply.show("first half, second")
        await scene.pass_time(2)
    assert only(scene).stream == "streamed"
    external_id = await scene.deliver(text("first half, **second half**", thread, scene.sent[0]))

    assert external_id == scene.sent[0]
    assert only(scene).text == "first half, *second half*"


async def test_an_answer_over_a_tool_that_runs_for_six_minutes_is_whole_c19(scene):
    thread, unsent = scene.asked(), "b" * 200
    async with scene.reply(thread) as reply:
        await reply.show("first half")
        await scene.pass_time(2)
        await reply.show(f"first half {unsent}")
        await scene.pass_time(360, step=10)
        await reply.show(f"first half {unsent} second half")
        await scene.pass_time(3)
        preview = only(scene).text
    await scene.deliver(text(f"first half {unsent} second half", thread, scene.sent[0]))

    assert preview == only(scene).text == f"first half {unsent} second half"
    assert only(scene).stream != "streaming"


async def test_a_stream_that_ended_over_the_tool_is_no_trouble_either_c19(scene):
    scene.server.streams.lifetime = timedelta(minutes=1)
    thread = scene.asked()
    async with scene.reply(thread) as reply:
        await reply.show("first half ")
        await scene.pass_time(90, step=10)
    await scene.deliver(text("first half and second half", thread, scene.sent[0]))

    assert [call.error for call in scene.server.calls_of("chat.stopStream")] == ["message_not_in_streaming_state"]
    assert only(scene).text == "first half and second half"


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.ANSWERED, Fault.FLOODED])
async def test_a_stream_that_could_not_be_ended_is_ended_by_the_final_c19(scene, fault):
    thread = scene.asked()
    async with scene.reply(thread) as reply:
        await reply.show("first half")
        await scene.pass_time(2)
        scene.server.fault("chat.stopStream", fault, seconds=1)
    assert only(scene).stream == "streaming"
    await scene.deliver(text("first half, second half", thread, scene.sent[0]))

    assert (only(scene).text, only(scene).stream) == ("first half, second half", "streamed")


async def test_a_limited_preview_waits_as_asked_and_the_final_is_whole_c15(scene):
    thread = scene.asked(CHANNEL)
    scene.server.refuse_next("chat.startStream", "channel_type_not_supported")
    async with scene.reply(thread) as reply:
        await reply.show("x")
        await scene.pass_time(2)
        scene.server.flood("chat.update", 10, ROOM)
        for count in range(2, 30):
            await reply.show("x" * count)
            await scene.pass_time(1)
            if count == 3:
                await scene.deliver(text("another chat", OTHER))
    calls = shown(scene, ROOM)[2:]
    limited = next(call for call in calls if call.status == 429)
    after = calls[calls.index(limited) + 1 :]
    await scene.deliver(text("x" * 900, thread, scene.sent[0]))

    assert after[0].at - limited.at >= 9
    assert [call.status for call in after] == [200] * len(after)
    assert len(after[0].params["text"]) > 8
    assert only(scene, ROOM).text == "x" * 900
    assert scene.server.visible(OTHER.chat)[0].text == "another chat"


async def test_a_held_channel_is_left_alone_by_the_end_of_a_block_c15(scene):
    async with scene.reply(scene.asked()) as reply:
        await reply.show("x")
        await scene.pass_time(2)
        scene.pacer.hold(ALICE_DM, timedelta(seconds=20))

    assert scene.server.calls_of("chat.stopStream") == []


async def test_a_first_post_whose_answer_was_lost_is_found_and_goes_on(scene):
    scene.server.fault("chat.startStream", Fault.LOST_RESPONSE)
    async with scene.reply(scene.asked()) as reply:
        await reply.show("a")
        await scene.pass_time(2)
        await reply.show("a b")
        await scene.pass_time(5)

    assert only(scene).text == "a b"
    assert len(scene.sent) == 1


async def test_an_unknown_first_post_that_cannot_be_looked_for_is_not_repeated_nor_reported(scene):
    scene.server.fault("chat.startStream", Fault.LOST_RESPONSE)
    scene.server.fail_next("conversations.replies", 503, times=9)
    async with scene.reply(scene.asked()) as reply:
        await reply.show("a")
        await scene.pass_time(2)
        await reply.show("a b")
        await scene.pass_time(5)

    assert len(shown(scene)) == 1
    assert scene.sent == []


async def test_an_edit_with_a_lost_answer_is_followed_by_the_next_one(scene):
    async with scene.reply(scene.asked()) as reply:
        await reply.show("a")
        await scene.pass_time(2)
        scene.server.fault("chat.appendStream", Fault.LOST_RESPONSE)
        for longer in ("a b", "a b c"):
            await reply.show(longer)
            await scene.pass_time(2)

    assert only(scene).text == "a b c"


@pytest.mark.parametrize("word", ["not_in_channel", "token_revoked"])
async def test_a_refused_preview_ends_previews_silently(scene, word):
    scene.server.refuse_next("chat.postMessage", word)
    scene.server.refuse_next("chat.startStream", word)
    async with scene.reply(scene.asked()) as reply:
        for longer in ("a", "a b", "a b c"):
            await reply.show(longer)
            await scene.pass_time(2)

    assert len(shown(scene)) <= 2
    assert scene.sent == []


async def test_a_preview_whose_id_could_not_be_recorded_is_not_edited(scene):
    async def fail(_external_id):
        raise StoreUnavailable("locked")

    async with scene.reply(scene.asked(), on_sent=fail) as reply:
        for longer in ("a", "a b"):
            await reply.show(longer)
            await scene.pass_time(2)

    assert len(shown(scene)) == 1
    assert only(scene).stream == "streamed"


async def test_leaving_waits_for_the_call_under_way_and_starts_no_other(scene):
    gate = scene.server.gate_next("chat.startStream")
    left = asyncio.Event()
    thread = scene.asked()

    async def answer():
        async with scene.reply(thread) as reply:
            await reply.show("a")
            await gate.entered.wait()
            await reply.show("a b")
        left.set()

    task = asyncio.create_task(answer())
    await scene.pass_time(3)
    assert not left.is_set()
    gate.opened.set()
    await scene.in_pace(task)
    await scene.pass_time(10)

    assert len(shown(scene)) == len(scene.sent) == 1
    assert only(scene).stream == "streamed"


async def test_a_cancelled_turn_still_waits_for_the_call_under_way_and_ends_the_stream(scene):
    gate = scene.server.gate_next("chat.startStream")
    thread = scene.asked()

    async def answer():
        async with scene.reply(thread) as reply:
            await reply.show("a")
            await asyncio.Event().wait()

    task = asyncio.create_task(answer())
    await scene.pass_time(1)
    await gate.entered.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gate.opened.set()
    await asyncio.wait({task}, timeout=30)

    assert task.cancelled()
    assert len(scene.sent) == 1
    assert only(scene).stream == "streamed"


async def test_the_status_is_shown_until_the_text_kept_fresh_and_cleared(scene):
    thread = scene.asked()
    async with scene.reply(thread) as reply:
        await scene.pass_time(2)
        first = scene.server.agents.status(ALICE_DM, thread.thread)
        await reply.set_status("running shell")
        await scene.pass_time(100)
        second = scene.server.agents.status(ALICE_DM, thread.thread)
        await scene.pass_time(60)
        third = scene.server.agents.status(ALICE_DM, thread.thread)
    after = scene.server.agents.status(ALICE_DM, thread.thread)

    assert (first, second, third, after) == ("is thinking…", "is running shell…", "is running shell…", "")
    assert statuses(scene) == ["is thinking…", "is running shell…", "is running shell…", ""]


async def test_a_text_ends_the_status_until_there_is_another(scene):
    thread = scene.asked()
    async with scene.reply(thread) as reply:
        await scene.pass_time(2)
        await reply.show("a")
        await scene.pass_time(200, step=5)
        quiet = list(statuses(scene))
        await reply.set_status("thinking")
        await scene.pass_time(3)
        await reply.set_status("")
        await scene.pass_time(3)

    assert quiet == ["is thinking…"]
    assert statuses(scene) == ["is thinking…", "is thinking…", ""]


async def test_the_session_is_at_work_while_the_block_is_open(scene):
    thread = scene.asked()
    async with scene.reply(thread):
        await scene.pass_time(2)
        during = scene.server.agents.sessions[ALICE_DM, thread.thread].status

    assert (during, scene.server.agents.sessions[ALICE_DM, thread.thread].status) == ("processing", "active")


async def test_without_a_thread_there_is_neither(scene):
    async with scene.reply(DIRECT) as reply:
        await reply.set_status("thinking")
        await scene.pass_time(3)

    assert scene.server.calls == []


async def test_leaving_ends_a_wait_for_the_pace_at_once(scene):
    scene.pacer.hold(ALICE_DM, timedelta(hours=1))
    async with scene.reply(scene.asked()) as reply:
        await reply.show("a")
        await scene.pass_time(1)

    assert shown(scene) == []
    assert not scene.clock.sleeping


async def test_replies_in_threads_of_one_channel_share_its_pace(scene):
    threads = [scene.asked(CHANNEL) for _ in range(2)]
    async with scene.reply(threads[0]) as first, scene.reply(threads[1]) as second:
        for count in range(1, 20):
            await first.show("x" * count)
            await second.show("y" * count)
            await scene.pass_time(0.5)
    times = sorted(call.at for call in shown(scene, ROOM))

    assert all(later - earlier >= 1.2 - 0.01 for earlier, later in itertools.pairwise(times))
    assert len(scene.server.visible(ROOM)) == 2


async def test_no_task_is_left_behind(scene):
    thread = scene.asked()
    await scene.api.identity()
    before = asyncio.all_tasks()
    for number in range(5):
        async with scene.reply(replace(thread)) as reply:
            await reply.show(f"text {number}")
            await scene.pass_time(2)
    gc.collect()
    ours = {task for task in asyncio.all_tasks() - before if "channels" in str(task.get_coro())}

    assert ours == set()
