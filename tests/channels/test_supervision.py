import asyncio
from datetime import timedelta

import pytest

from channels.supervision import Backoff, answered, guarded, pause_after, until_answered, until_stored
from core.contracts.clock import FakeClock
from core.contracts.errors import ChannelDown, SendLimited, SendUnknown, StoreUnavailable


async def failing(error):
    raise error


def test_backoff_doubles_to_its_cap_with_a_jitter_and_can_be_reset():
    backoff = Backoff(timedelta(seconds=1), timedelta(seconds=30))
    waits = [backoff.next().total_seconds() for _ in range(20)]

    assert all(0.75 * full <= wait <= full for wait, full in zip(waits, [1, 2, 4, 8, 16, *[30] * 15], strict=True))
    assert len(set(waits[-10:])) > 1
    backoff.reset()
    assert backoff.next() <= timedelta(seconds=1)


async def test_a_call_is_repeated_after_the_pause_that_each_failure_asks_for():
    clock, failures = FakeClock(), [SendUnknown("lost"), SendUnknown("again")]
    seen = []

    async def call():
        if failures:
            raise failures.pop(0)
        return "answer"

    async def pause_after(error):
        seen.append(error.detail)
        return timedelta(seconds=10)

    answering = asyncio.ensure_future(until_answered(call, clock=clock, pause_after=pause_after))
    await asyncio.sleep(0)
    await clock.advance(timedelta(seconds=9))
    assert seen == ["lost"]
    await clock.advance(timedelta(seconds=1))
    assert not answering.done()
    await clock.advance(timedelta(seconds=10))

    assert answering.result() == "answer"
    assert seen == ["lost", "again"]


async def test_a_refused_token_is_not_tried_again():
    async def never(error):
        raise AssertionError(error)

    with pytest.raises(ChannelDown):
        await until_answered(lambda: failing(ChannelDown("refused")), clock=FakeClock(), pause_after=never)


async def test_an_error_that_nobody_foresaw_ends_in_the_log(caplog):
    broken = await guarded(failing(KeyError("a bug")), unless=StoreUnavailable, told="it_broke", channel="telegram")

    assert broken is None
    assert [(record.message, record.channel) for record in caplog.records] == [("it_broke", "telegram")]


async def test_what_was_foreseen_and_a_cancellation_go_through_the_guard(caplog):
    for error in (StoreUnavailable("locked"), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            await guarded(failing(error), unless=StoreUnavailable, told="it_broke")

    assert caplog.records == []


def test_a_pause_is_as_long_as_the_platform_wants_and_no_shorter_than_the_backoff():
    backoff = Backoff(timedelta(seconds=4), timedelta(seconds=4))
    long, short = SendLimited("slow", retry_after=timedelta(minutes=2)), SendLimited("slow", retry_after=timedelta(0))

    assert pause_after(long, backoff) == timedelta(minutes=2)
    assert timedelta(seconds=3) <= pause_after(short, backoff) <= timedelta(seconds=4)
    assert timedelta(seconds=3) <= pause_after(SendUnknown("lost"), backoff) <= timedelta(seconds=4)


async def test_who_waits_for_an_answer_hears_of_each_failure_and_of_the_wait():
    clock, heard = FakeClock(), []
    failures = [SendLimited("slow", retry_after=timedelta(seconds=30))]

    async def call():
        if failures:
            raise failures.pop(0)
        return "answer"

    def failed(error, wait):
        heard.append((error.detail, wait))

    backoff = Backoff(timedelta(seconds=1), timedelta(seconds=1))
    waiting = asyncio.ensure_future(answered(call, clock=clock, backoff=backoff, failed=failed))
    await asyncio.sleep(0)
    await clock.advance(timedelta(seconds=30))

    assert await waiting == "answer"
    assert heard == [("slow", timedelta(seconds=30))]


async def test_what_the_store_refuses_is_offered_again_until_it_takes_it():
    clock, heard = FakeClock(), []
    failures = [StoreUnavailable("full"), StoreUnavailable("still full")]

    async def operation():
        if failures:
            raise failures.pop(0)
        return "stored"

    backoff = Backoff(timedelta(seconds=1), timedelta(seconds=1))
    storing = asyncio.ensure_future(until_stored(operation, clock=clock, backoff=backoff, failed=heard.append))
    for _ in range(2):
        await asyncio.sleep(0)
        await clock.advance(timedelta(seconds=1))

    assert await storing == "stored"
    assert [str(error) for error in heard] == ["full", "still full"]
