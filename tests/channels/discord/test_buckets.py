from datetime import timedelta

import pytest

from channels.discord.buckets import Buckets, Route
from channels.discord.errors import Limit
from core.contracts.clock import FakeClock
from core.contracts.errors import SendLimited

SECOND = timedelta(seconds=1)


def create(channel="1"):
    return Route(method="POST", path="/channels/{channel}/messages", ids={"channel": channel})


def edit(channel="1", message="2"):
    ids = {"channel": channel, "message": message}
    return Route(method="PATCH", path="/channels/{channel}/messages/{message}", ids=ids)


def told(left, reset_after=5.0, bucket="abc"):
    headers = {"x-ratelimit-remaining": str(left), "x-ratelimit-reset-after": str(reset_after)}
    return headers | ({} if bucket is None else {"x-ratelimit-bucket": bucket})


def limit(seconds, *, everywhere=False):
    return Limit(retry_after=timedelta(seconds=seconds), everywhere=everywhere)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def buckets(clock):
    return Buckets(clock)


def wait_for(buckets, route):
    """Return how long a call has to wait, in seconds; 0 counts it."""
    try:
        buckets.spend(route)
    except SendLimited as error:
        return error.retry_after.total_seconds()
    return 0


async def test_an_unknown_budget_limits_nothing(buckets):
    assert [wait_for(buckets, create()) for _ in range(100)] == [0] * 100


async def test_a_budget_is_spent_and_filled_again_when_it_resets_c15(buckets, clock):
    buckets.spend(create())
    buckets.learn(create(), told(2))

    assert [wait_for(buckets, create()) for _ in range(3)] == [0, 0, 5]
    await clock.advance(4 * SECOND)
    assert wait_for(buckets, create()) == 1
    await clock.advance(SECOND)
    assert wait_for(buckets, create()) == 0


async def test_each_channel_has_its_own_budget_and_messages_share_that_of_theirs(buckets):
    buckets.learn(edit("1", "2"), told(0))

    assert wait_for(buckets, edit("1", "3")) == 5
    assert wait_for(buckets, edit("7", "2")) == 0
    assert wait_for(buckets, create("1")) == 0


async def test_routes_with_the_same_bucket_share_a_budget(buckets):
    buckets.learn(create(), told(5))
    buckets.learn(edit(), told(0))

    assert wait_for(buckets, create()) == 5


async def test_answers_in_another_order_give_nothing_back(buckets):
    for _ in range(3):
        buckets.spend(create())
    buckets.learn(create(), told(1))
    buckets.learn(create(), told(3))

    assert [wait_for(buckets, create()) for _ in range(2)] == [0, 5]


async def test_a_limit_holds_its_route_in_its_channel_for_as_long_as_asked_c15(buckets, clock):
    buckets.learn(edit(), told(4))
    buckets.hold(edit(), limit(149))

    assert wait_for(buckets, edit()) == 149
    assert wait_for(buckets, edit("7")) == 0
    await clock.advance(149 * SECOND)
    assert wait_for(buckets, edit()) == 0


async def test_a_limit_on_everything_holds_all_but_the_answers_to_interactions_c15(buckets, clock):
    buckets.hold(edit(), limit(3, everywhere=True))
    buckets.hold(edit(), limit(1, everywhere=True))
    answer = Route(method="POST", path="/interactions/{id}/x", ids={"id": "1"}, is_limited_everywhere=False)

    assert wait_for(buckets, create("7")) == 3
    assert wait_for(buckets, answer) == 0
    await clock.advance(3 * SECOND)
    assert wait_for(buckets, create("7")) == 0


@pytest.mark.parametrize("headers", [{}, told("x"), told(1, "x"), told(1, -1), told("nan"), told(1, "inf")])
async def test_an_answer_that_tells_nothing_of_use_changes_nothing(buckets, headers):
    buckets.learn(create(), headers)

    assert [wait_for(buckets, create()) for _ in range(9)] == [0] * 9


async def test_budgets_that_reset_are_forgotten(buckets, clock):
    for number in range(3_000):
        buckets.learn(create(str(number)), told(0, 1))
        if number % 500 == 0:
            await clock.advance(2 * SECOND)

    assert len(buckets._buckets) <= 1_501


def test_ids_are_quoted_in_addresses():
    route = Route(method="PUT", path="/x/{emoji}/@me", ids={"emoji": "\N{THUMBS UP SIGN}/.."})

    assert route.url == "/x/%F0%9F%91%8D%2F../@me"
    assert route.name == "PUT /x/{emoji}/@me"
