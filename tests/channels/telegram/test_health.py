from dataclasses import replace
from datetime import timedelta

import pytest

from channels.telegram.health import PollHealth, Quiet, WebhookHealth
from channels.telegram.transport import WebhookState
from core.contracts.clock import FakeClock

SET = WebhookState(url="https://bot.example/secret-path", waiting=0, failed_at=None, failure="")


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
    assert "check this machine's network" in health.probe().detail


async def test_days_of_silence_are_counted_as_such():
    clock = FakeClock()
    health = PollHealth(clock)
    health.polled()
    await clock.advance(timedelta(days=2, seconds=3))

    assert not health.probe().healthy
    assert "172803 s ago" in health.probe().detail


async def test_a_trouble_is_told_once_and_ends_with_a_poll():
    health = PollHealth(FakeClock())

    told = [health.failed("timed out"), health.failed("timed out"), health.polled(), health.polled()]
    assert told == [True, False, True, False]
    assert health.probe().healthy


async def test_conflicts_are_warned_about_again_only_after_a_quiet_time_c74():
    clock = FakeClock()
    health = PollHealth(clock)
    told = []
    for _ in range(30):
        told.append(health.conflicted(webhook_at=None))
        await clock.advance(timedelta(seconds=30))
        health.polled()
    await clock.advance(timedelta(minutes=10))
    told.append(health.conflicted(webhook_at=None))

    assert told == [True, *[False] * 29, True]


def test_a_webhook_is_named_by_its_host_where_that_is_known_c74():
    health = PollHealth(FakeClock())

    health.conflicted(webhook_at="other.example")
    assert "set for this bot (at other.example), so" in health.probe().detail
    health.conflicted(webhook_at="")
    assert "set for this bot, so" in health.probe().detail


@pytest.mark.parametrize("health", [PollHealth(FakeClock()), WebhookHealth(FakeClock())])
def test_a_refused_token_says_where_a_new_one_is_to_be_had_c69(health):
    health.refused("the bot token is refused: Unauthorized")

    assert not health.probe().healthy
    assert "@BotFather" in health.probe().detail


async def test_a_store_that_fails_is_told_until_something_is_stored():
    health = PollHealth(FakeClock())
    health.polled()

    assert health.stored(succeeded=False)
    assert not health.stored(succeeded=False)
    health.polled()
    assert "cannot be stored" in health.probe().detail
    assert health.stored(succeeded=True)
    assert health.probe().healthy


async def test_after_more_than_a_day_away_it_is_said_that_messages_may_be_lost():
    clock = FakeClock()
    health = PollHealth(clock)
    health.polled()
    await clock.advance(timedelta(hours=23))
    health.polled()
    assert "may be lost" not in health.probe().detail
    await clock.advance(timedelta(hours=30))
    health.polled()

    assert health.probe().healthy
    assert "nothing was fetched for 30 hours" in health.probe().detail
    assert "24 hours only" in health.probe().detail
    for _ in range(25):
        await clock.advance(timedelta(hours=1))
        health.polled()
    assert "may be lost" not in health.probe().detail


async def test_a_machine_that_was_suspended_was_away_though_its_own_clock_stood_still():
    clock = FakeClock()
    health = PollHealth(clock)
    health.polled()
    clock.step_wall(timedelta(hours=40))
    health.polled()

    assert "for 40 hours" in health.probe().detail


async def test_a_wall_clock_that_steps_back_harms_nothing():
    clock = FakeClock()
    health = PollHealth(clock)
    health.polled()
    clock.step_wall(timedelta(days=-400))
    assert health.probe().healthy
    health.polled()

    assert health.probe().detail == "Telegram: the last poll succeeded 0 s ago."


async def test_what_comes_again_and_again_is_told_once():
    clock = FakeClock()
    quiet = Quiet(clock)

    assert [quiet.is_over(), quiet.is_over()] == [True, False]
    await clock.advance(timedelta(minutes=10))
    assert quiet.is_over()


async def test_a_webhook_is_healthy_while_telegram_says_so():
    clock = FakeClock()
    health = WebhookHealth(clock)
    assert "not set yet" in health.probe().detail
    health.told(SET)
    await clock.advance(timedelta(minutes=4))

    assert health.probe().healthy
    assert "bot.example" in health.probe().detail
    assert "secret-path" not in health.probe().detail
    await clock.advance(timedelta(minutes=1))
    assert not health.probe().healthy


def test_a_webhook_that_cannot_be_called_is_told_with_telegrams_reason_and_a_fix():
    health = WebhookHealth(FakeClock())
    failing = replace(SET, waiting=3, failure="Connection refused")
    health.told(failing)

    probe = health.probe()
    assert not probe.healthy
    assert "Updates that wait: 3" in probe.detail
    assert "Connection refused" in probe.detail
    assert "webhook_listen" in probe.detail
    health.told(replace(failing, waiting=0))
    assert health.probe().healthy


def test_a_trouble_with_the_webhook_ends_when_telegram_is_heard_again():
    health = WebhookHealth(FakeClock())

    told = [health.failed("timed out"), health.not_set("bad webhook"), health.told(SET), health.told(SET)]
    assert told == [True, False, True, False]
    assert health.probe().healthy


def test_calls_with_a_wrong_secret_are_warned_about_once():
    health = WebhookHealth(FakeClock())

    assert [health.intruded(), health.intruded()] == [True, False]
