"""Delivery over restarts: what a dead process began is neither lost nor shown more than twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from bot.conversations.outbox import ANSWER_IN_DOUBT, MAX_UNKNOWN, notice, text_items
from channels.fake import FakeChannel
from core.contracts.addresses import TextContent
from core.contracts.delivery import OUTBOX_QUEUE, OutboxState, chat_key
from core.contracts.engine import Again, WorkItem
from core.contracts.errors import ChannelDown, SendLimited, SendUnknown
from core.contracts.ids import TurnId
from core.engines.embedded import EmbeddedEngine
from core.engines.inmemory import InMemoryWorkItems
from tests.bot.conversations.posting import ONE, posting


@pytest.fixture
async def post():
    async with posting() as opened:
        yield opened


class Killed(BaseException):
    """The process ends here."""


class Deadly(FakeChannel):
    """A platform without a lookup, whose every send takes effect and kills the host before it hears of it."""

    def __init__(self, post, *, deaths: int) -> None:
        super().__init__("fake", capabilities=post.channel.capabilities, clock=post.clock)
        self.deaths = deaths

    async def find(self, item):
        return None

    async def deliver(self, item):
        external_id = await super().deliver(item)
        if self.deaths:
            self.deaths -= 1
            raise Killed
        return external_id


async def delivers(post) -> None:
    """Let the process deliver what waits, to the end or to its own."""
    with suppress(Killed):
        await post.deliverer.deliver_chat(chat_key(ONE))


async def restarts(post, channel, times: int) -> None:
    """Let further processes deliver, one after the other, some time apart."""
    for _ in range(times):
        await post.clock.advance(timedelta(seconds=1))
        post.start(channels={"fake": channel})
        await delivers(post)


@pytest.mark.parametrize("deaths", [1, 2, 3, 4, 5])
async def test_a_text_is_visible_twice_at_most_however_often_the_host_dies_while_it_is_sent(post, deaths):
    channel = Deadly(post, deaths=deaths)
    post.start(channels={"fake": channel})
    await post.store.post([notice("t/1", ONE, "one")])
    await delivers(post)
    await restarts(post, channel, deaths + 2)
    assert len(channel.messages) == 2
    assert await post.state("t/1") is (OutboxState.SENT if deaths == 1 else OutboxState.UNKNOWN)


async def test_a_text_that_was_not_sent_yet_when_the_host_died_is_sent_by_the_next_one(post):
    await post.store.post([notice("t/1", ONE, "one")])
    await restarts(post, post.channel, 1)
    assert post.texts() == ["one"]
    assert await post.state("t/1") is OutboxState.SENT


async def test_of_a_turns_answer_that_may_be_lost_people_are_told_once(post):
    """Never silence: the texts of one turn are in doubt together; a notice of the host is not told about again."""
    post.channel.fail_next(*[SendUnknown("lost")] * 2 * MAX_UNKNOWN)
    answer = text_items(notice("t/1", ONE, ""), "x" * 3_000, post.channel.capabilities)
    await post.store.post(answer, turn_id=TurnId("turn-1"))
    for _ in range(3 * MAX_UNKNOWN):
        await post.deliver()
        await post.later(timedelta(seconds=5))
    assert [await post.state(item.id) for item in answer] == [OutboxState.UNKNOWN] * 2
    assert post.texts() == [ANSWER_IN_DOUBT]
    post.channel.fail_next(*[SendUnknown("lost")] * MAX_UNKNOWN)
    await post.store.post([notice("t/9", ONE, "one")])
    for _ in range(2 * MAX_UNKNOWN):
        await post.later(timedelta(seconds=5))
    assert post.texts() == [ANSWER_IN_DOUBT]


async def test_lost_answers_count_over_restarts(post):
    post.channel.fail_next(*[SendUnknown("lost")] * 9)
    await post.send("one")
    post.start()
    await post.later(timedelta(seconds=5))
    assert await post.state("t/1") is OutboxState.UNKNOWN
    assert len(post.channel._failures) == 7


@pytest.mark.parametrize("starts", [2, 5, 9])
async def test_restarts_while_the_platform_is_away_use_up_no_try(post, starts):
    """Nothing was sent, and that is on record."""
    post.channel.fail_next(*[ChannelDown("gone")] * starts)
    await post.store.post([notice("t/1", ONE, "one")])
    for _ in range(starts + 1):
        await post.clock.advance(timedelta(minutes=5))
        post.start()
        await post.deliver()
    assert post.texts() == ["one"]
    assert await post.state("t/1") is OutboxState.SENT


@pytest.mark.parametrize("wait", [timedelta(seconds=149), timedelta(seconds=0.35), timedelta(milliseconds=1)])
async def test_a_wait_that_a_platform_asked_for_holds_over_a_restart(post, wait):
    """C15."""
    post.channel.fail_next(SendLimited("slow down", retry_after=wait))
    await post.send("one", "two")
    post.start()
    await post.deliverer.deliver_chat(chat_key(ONE))
    await post.later(wait - timedelta(microseconds=500))
    assert post.texts() == []
    await post.later(timedelta(microseconds=500))
    assert post.texts() == ["one", "two"]


async def test_a_platform_that_can_tell_is_believed_after_any_number_of_deaths(post):
    """It says that nothing was sent, each time: the text is not given up."""
    post.can(lookup=True)
    await post.store.post([notice("t/1", ONE, "one")])
    for _ in range(5):
        await post.store.mark_attempted("t/1")
    await restarts(post, post.channel, 1)
    assert post.texts() == ["one"]


@pytest.mark.parametrize("error", [SendUnknown("503"), ChannelDown("503")])
async def test_a_final_edit_that_fails_over_and_over_never_becomes_a_second_message(post, error):
    """C16 C and D: the preview may show the very same text already."""
    await post.send("the answer")
    post.channel.fail_next(error, error, error)
    await post.store.amend("t/1", TextContent(markdown="the answer."))
    await post.store.amend("t/1", TextContent(markdown="the answer"))
    await post.deliver()
    for _ in range(4):
        post.start()
        await post.later(timedelta(minutes=5))
        assert [text.rstrip(".") for text in post.texts()] == ["the answer"]
    assert await post.state("t/1") is OutboxState.SENT
    assert post.texts() == ["the answer"]


async def lives(post, items: InMemoryWorkItems, **ports) -> None:
    """Let a process answer its doorbells once, and end."""
    deliverer, answered = post.start(**ports), asyncio.Event()

    async def answer(key: str) -> Again | None:
        try:
            return await deliverer.deliver_chat(key)
        finally:
            answered.set()

    async def give_up(queue: str, key: str, error: Exception) -> None:
        raise AssertionError

    run = asyncio.create_task(EmbeddedEngine(items, post.clock).run({OUTBOX_QUEUE: answer}, give_up))
    async with asyncio.timeout(60):
        await answered.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    run.cancel()
    await asyncio.wait([run])


async def test_what_waits_for_a_platform_is_sent_by_the_next_start_that_has_it(post):
    """A command that takes the directory without platforms must not put them to sleep."""
    items = InMemoryWorkItems()
    await post.store.post([notice("t/1", ONE, "hi")])
    with items.transaction() as tx:
        bell = WorkItem(id="bell", queue=OUTBOX_QUEUE, key=chat_key(ONE), due_at=post.clock.now())
        EmbeddedEngine(items, post.clock).submit(tx, bell)
    await lives(post, items, channels={})
    assert post.texts() == []
    await lives(post, items)
    assert post.texts() == ["hi"]
