from datetime import timedelta

from channels.telegram.health import PollHealth
from core.contracts.clock import FakeClock


async def test_a_channel_that_hears_nothing_for_a_minute_is_not_healthy():
    clock = FakeClock()
    health = PollHealth(clock)
    assert not health.probe().healthy
    health.polled()
    await clock.advance(timedelta(seconds=59))
    assert health.probe().healthy
    await clock.advance(timedelta(seconds=2))

    assert not health.probe().healthy
    assert "61 s ago" in health.probe().detail


async def test_a_trouble_is_told_once_and_ends_with_a_poll():
    health = PollHealth(FakeClock())

    assert [health.failed("timed out"), health.failed("timed out"), health.polled(), health.polled()] == [
        True,
        False,
        True,
        False,
    ]
    assert health.probe().healthy


async def test_conflicts_are_warned_about_again_only_after_a_quiet_time_c74():
    clock = FakeClock()
    health = PollHealth(clock)
    told = []
    for _ in range(30):
        told.append(health.conflicted(webhook=False))
        await clock.advance(timedelta(seconds=30))
        health.polled()
    await clock.advance(timedelta(minutes=10))
    told.append(health.conflicted(webhook=False))

    assert told == [True, *[False] * 29, True]


async def test_a_store_that_fails_is_told_until_something_is_stored():
    health = PollHealth(FakeClock())
    health.polled()

    assert health.stored(succeeded=False)
    assert not health.stored(succeeded=False)
    health.polled()
    assert "cannot be stored" in health.probe().detail
    assert health.stored(succeeded=True)
    assert health.probe().healthy
