import asyncio
import gc
import itertools
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from channels.pacing import ChatPacer
from channels.telegram.limits import Timing
from channels.telegram.preview import Preview
from core.contracts.clock import FakeClock
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, StoreUnavailable

SECOND = timedelta(seconds=1)


class Port:
    """A chat that records what a preview does to it; `failures` come first, None is a success."""

    def __init__(self, clock):
        self.clock = clock
        self.failures = []
        self.shown = []
        self.typed_at = []
        self.hang = None

    async def show(self, text, external_id):
        if self.hang is not None:
            await self.hang.wait()
        error = self.failures.pop(0) if self.failures else None
        self.shown.append((text, external_id, round(self.clock.monotonic(), 2)))
        if error is not None:
            raise error
        return external_id or "7"

    async def typing(self):
        self.typed_at.append(round(self.clock.monotonic(), 2))

    @property
    def texts(self):
        return [text for text, _, _ in self.shown]


class Scene:
    def __init__(self):
        self.clock = FakeClock()
        self.port = Port(self.clock)
        self.pacer = ChatPacer(self.clock, lambda _chat: timedelta(seconds=1.1))
        self.sent = []

    async def on_sent(self, external_id):
        self.sent.append(external_id)

    @asynccontextmanager
    async def reply(self, on_sent=None):
        preview = Preview(
            self.port,
            chat="111",
            pacer=self.pacer,
            clock=self.clock,
            timing=Timing(),
            on_sent=on_sent or self.on_sent,
        )
        async with preview:
            await self.turns()
            yield preview

    async def turns(self):
        for _ in range(10):
            await asyncio.sleep(0)

    async def pass_time(self, seconds):
        for _ in range(round(seconds * 20)):
            await self.turns()
            await self.clock.advance(SECOND / 20)
        await self.turns()


@pytest.fixture
def scene():
    return Scene()


async def test_previews_are_paced_and_the_latest_text_wins(scene):
    async with scene.reply() as reply:
        for count in range(1, 101):
            await reply.show("x" * count)
            await scene.pass_time(0.05)

    times = [at for _, _, at in scene.port.shown]
    assert 4 <= len(times) <= 6
    assert all(later - earlier >= 1.1 - 0.01 for earlier, later in itertools.pairwise(times))
    assert scene.port.shown[0][1] is None
    assert {external_id for _, external_id, _ in scene.port.shown[1:]} == {"7"}
    assert scene.sent == ["7"]


async def test_an_answer_that_is_complete_at_once_gets_no_preview(scene):
    async with scene.reply() as reply:
        await reply.show("all of it")
    await scene.pass_time(5)

    assert (scene.port.shown, scene.port.typed_at) == ([], [])


async def test_the_same_text_is_not_shown_again(scene):
    async with scene.reply() as reply:
        for text in ("same", "same", "same \n", " ", ""):
            await reply.show(text)
            await scene.pass_time(2)

    assert scene.port.texts == ["same"]


async def test_typing_shows_until_the_first_text_and_again_on_a_status(scene):
    async with scene.reply() as reply:
        await scene.pass_time(10)
        before_text = list(scene.port.typed_at)
        await reply.show("text")
        await scene.pass_time(10)
        after_text = len(scene.port.typed_at)
        await reply.set_status("runs a command")
        await scene.pass_time(5)
        with_status = len(scene.port.typed_at)
        await reply.set_status("")
        await scene.pass_time(10)

    assert before_text == [0.25, 4.75, 9.25]
    assert after_text == 3
    assert with_status == len(scene.port.typed_at) == 4


async def test_a_limited_preview_waits_as_asked_then_shows_the_newest_text_c15(scene):
    scene.port.failures = [None, SendLimited("slow", retry_after=25 * SECOND)]
    async with scene.reply() as reply:
        for count in range(1, 33):
            await reply.show("x" * count)
            await scene.pass_time(1)

    limited_at = scene.port.shown[1][2]
    resumed_at = scene.port.shown[2][2]
    assert resumed_at - limited_at >= 25
    assert len(scene.port.texts[2]) > 25


async def test_a_held_chat_gets_no_typing_c15(scene):
    scene.pacer.hold("111", 20 * SECOND)
    async with scene.reply():
        await scene.pass_time(15)

    assert scene.port.typed_at == []


async def test_an_unknown_first_post_is_not_repeated_nor_reported(scene):
    scene.port.failures = [SendUnknown("lost")]
    async with scene.reply() as reply:
        await reply.show("a")
        await scene.pass_time(2)
        await reply.show("a b")
        await scene.pass_time(5)

    assert scene.port.texts == ["a"]
    assert scene.sent == []


async def test_an_edit_with_a_lost_answer_is_followed_by_the_next_one(scene):
    scene.port.failures = [None, SendUnknown("lost")]
    async with scene.reply() as reply:
        for text in ("a", "a b", "a b c"):
            await reply.show(text)
            await scene.pass_time(2)

    assert scene.port.texts == ["a", "a b", "a b c"]


@pytest.mark.parametrize("error", [SendRejected("blocked"), ChannelDown("revoked")])
async def test_a_refused_preview_ends_previews_silently(scene, error):
    scene.port.failures = [error]
    async with scene.reply() as reply:
        await reply.show("a")
        await scene.pass_time(2)
        await reply.show("a b")
        await scene.pass_time(5)

    assert scene.port.texts == ["a"]


async def test_a_preview_whose_id_could_not_be_recorded_is_not_edited(scene):
    async def fail(_external_id):
        raise StoreUnavailable("locked")

    async with scene.reply(on_sent=fail) as reply:
        await reply.show("a")
        await scene.pass_time(2)
        await reply.show("a b")
        await scene.pass_time(5)

    assert scene.port.texts == ["a"]


async def test_leaving_waits_for_the_call_under_way_and_starts_no_other(scene):
    scene.port.hang = asyncio.Event()
    left = asyncio.Event()

    async def answer():
        async with scene.reply() as reply:
            await reply.show("a")
            await scene.pass_time(1)
            await reply.show("a b")
        left.set()

    task = asyncio.create_task(answer())
    await scene.pass_time(3)
    assert not left.is_set()
    scene.port.hang.set()
    await task
    await scene.pass_time(10)

    assert scene.port.texts == ["a"]
    assert scene.sent == ["7"]


async def test_a_cancelled_turn_still_waits_for_the_call_under_way(scene):
    scene.port.hang = asyncio.Event()

    async def answer():
        async with scene.reply() as reply:
            await reply.show("a")
            await asyncio.Event().wait()

    task = asyncio.create_task(answer())
    await scene.pass_time(1)
    task.cancel()
    await scene.turns()
    task.cancel()
    await scene.turns()
    assert not task.done()
    scene.port.hang.set()
    await asyncio.wait({task}, timeout=30)

    assert task.cancelled()
    assert scene.sent == ["7"]


async def test_leaving_ends_a_wait_for_the_pace_at_once(scene):
    scene.pacer.hold("111", timedelta(hours=1))
    async with scene.reply() as reply:
        await reply.show("a")
        await scene.pass_time(1)

    assert scene.port.shown == []
    assert not scene.clock.sleeping


async def test_no_task_is_left_behind(scene):
    before = asyncio.all_tasks()
    for number in range(20):
        async with scene.reply() as reply:
            await reply.show(f"text {number}")
            await scene.pass_time(0.5)
    gc.collect()

    assert asyncio.all_tasks() == before
