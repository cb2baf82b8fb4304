import asyncio
from datetime import timedelta

import pytest

from channels.supervision import Backoff, guarded, until_answered
from core.contracts.clock import FakeClock
from core.contracts.errors import ChannelDown, SendUnknown, StoreUnavailable


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
