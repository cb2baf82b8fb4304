"""When a failed step is tried again (C37)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.backends.local.retry import MAX_RETRIES, retry_wait
from core.contracts.errors import ModelBusy, ModelOverflow, ModelRejected, ModelUnreachable

ALMOST_ONE = 0.999


def seconds(error, attempt, jitter=0.0):
    wait = retry_wait(error, attempt, jitter)
    return None if wait is None else wait.total_seconds()


def test_a_connection_that_failed_waits_one_second_and_doubles():
    assert [seconds(ModelUnreachable("reset"), attempt) for attempt in range(4)] == [1, 2, 4, None]


def test_a_busy_provider_that_names_no_time_waits_ten_seconds_and_doubles():
    assert [seconds(ModelBusy("overloaded", status=529), attempt) for attempt in range(4)] == [10, 20, 40, None]


@pytest.mark.parametrize("wish", [timedelta(0), timedelta(seconds=7), timedelta(seconds=20), timedelta(minutes=5)])
def test_a_wish_of_the_provider_wins_and_is_never_shortened(wish):
    for attempt in range(MAX_RETRIES):
        for jitter in (0.0, ALMOST_ONE):
            assert retry_wait(ModelBusy("slow down", retry_after=wish), attempt, jitter) >= wish


def test_a_wish_beyond_five_minutes_is_given_up_at_once():
    assert retry_wait(ModelBusy("tomorrow", retry_after=timedelta(seconds=86_400)), 0, 0.0) is None


def test_what_retrying_cannot_help_is_not_retried():
    for error in (ModelRejected("bad key", status=401), ModelRejected("pay", status=402), ModelOverflow("too long")):
        assert retry_wait(error, 0, 0.0) is None


def test_jitter_adds_at_most_a_quarter():
    assert seconds(ModelUnreachable("reset"), 0, 0.0) == 1
    assert 1.24 < seconds(ModelUnreachable("reset"), 0, ALMOST_ONE) < 1.25


def test_nothing_is_retried_for_ever():
    for error in (ModelBusy("busy", retry_after=timedelta(seconds=1)), ModelBusy("busy"), ModelUnreachable("gone")):
        assert retry_wait(error, MAX_RETRIES, 0.0) is None
