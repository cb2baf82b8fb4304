from datetime import timedelta

import pytest

from channels.discord.budget import pause_before_start
from channels.discord.transport import GatewayState

DAY = timedelta(hours=24)


def state(left, *, total=1000, resets_after=DAY):
    return GatewayState(
        url="wss://gateway.example", shards=1, starts_left=left, starts_total=total, resets_after=resets_after
    )


@pytest.mark.parametrize("left", [1000, 999, 501])
def test_the_first_half_of_the_starts_is_free(left):
    assert pause_before_start(state(left)) == timedelta(0)


@pytest.mark.parametrize(("left", "pause"), [(500, DAY / 500), (100, DAY / 100), (1, DAY), (0, DAY)])
def test_what_is_left_of_the_other_half_lasts_until_there_is_more(left, pause):
    assert pause_before_start(state(left)) == pause


def test_starts_one_after_another_never_run_out():
    left, until_more, starts = 1000, DAY, 0
    while until_more > timedelta(0):
        until_more -= pause_before_start(state(left, resets_after=until_more)) + timedelta(seconds=5)
        left, starts = left - 1, starts + 1

    assert left >= 0
    assert starts > 900


def test_where_discord_names_no_limit_nothing_waits():
    assert pause_before_start(state(0, total=0)) == timedelta(0)


def test_a_limit_that_ends_soon_makes_nobody_wait_for_long():
    assert pause_before_start(state(0, resets_after=timedelta(seconds=30))) == timedelta(seconds=30)
