"""The fake is held to what the Web API documents: tokens, scopes, pace, faults, outages."""

import asyncio

import httpx
import pytest

from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE_DM, BOB_DM, PRIVATE, ROOM

pytest_plugins = ["tests.platforms.slack_client"]


async def test_the_bot_learns_who_it_is_and_which_scopes_it_has(slack):
    answer = await slack.send("auth.test")

    assert answer.json() == {
        "ok": True,
        "url": "https://lodgers.slack.com/",
        "team": "Lodgers",
        "user": "lodger",
        "team_id": "T0TEAM",
        "user_id": "U0BOT",
        "bot_id": "B0BOT",
        "is_enterprise_install": False,
    }
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


@pytest.mark.parametrize(
    ("method", "token", "error"),
    [
        ("auth.test", "", "not_authed"),
        ("auth.test", "xoxb-other", "invalid_auth"),
        ("auth.test", "app", "not_allowed_token_type"),
        ("apps.connections.open", "bot", "not_allowed_token_type"),
        ("apps.connections.open", "xapp-other", "invalid_auth"),
        ("sell.everything", "bot", "unknown_method"),
    ],
)
async def test_calls_with_a_wrong_token_or_method_are_refused(slack, method, token, error):
    tokens = {"app": slack.server.app_token, "bot": slack.server.token}

    assert await slack.refused(method, token=tokens.get(token, token)) == error


async def test_json_and_forms_are_read_and_a_form_may_carry_the_token(slack):
    await slack.call("chat.postMessage", form=True, channel=ROOM, text="by form", blocks='[{"type": "divider"}]')
    url = f"{slack.server.api_base}chat.postMessage"
    await slack.http.post(url, data={"token": slack.server.token, "channel": ROOM, "text": "token inside"})
    await slack.http.get(url, params={"token": slack.server.token, "channel": ROOM, "text": "by query"})

    assert [message.text for message in slack.server.visible(ROOM)] == ["by form", "token inside", "by query"]
    assert slack.server.visible(ROOM)[0].blocks == [{"type": "divider", "block_id": "b0"}]


@pytest.mark.parametrize("error", ["token_revoked", "account_inactive", "invalid_auth"])
async def test_a_token_can_be_taken_away_and_given_back(slack, error):
    slack.server.revoke(error)
    assert await slack.refused("auth.test") == error
    slack.server.revoke("")

    assert (await slack.call("auth.test"))["ok"]


async def test_a_missing_scope_is_named_and_that_of_a_channel_depends_on_its_kind(slack):
    slack.server.take_scope("reactions:write", "im:history")
    refused = await slack.call("reactions.add", channel=ROOM, timestamp="1.1", name="eyes")
    of_channel = await slack.call("conversations.history", channel=ALICE_DM)

    assert (refused["error"], refused["needed"]) == ("missing_scope", "reactions:write")
    assert "reactions:write" not in refused["provided"].split(",")
    assert of_channel["needed"] == "im:history"
    assert (await slack.call("conversations.history", channel=ROOM))["ok"]


async def test_a_flood_hits_one_method_in_one_channel_until_its_time_is_over(slack):
    slack.server.flood("chat.postMessage", 25, ROOM)
    answer = await slack.send("chat.postMessage", channel=ROOM, text="a")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "25")
    assert answer.json() == {"ok": False, "error": "ratelimited"}
    await slack.post("a", PRIVATE)
    await slack.pass_time(24.5)
    assert (await slack.send("chat.postMessage", channel=ROOM, text="a")).headers["retry-after"] == "1"
    await slack.pass_time(0.5)

    assert await slack.post("a")


async def test_posts_faster_than_the_pace_of_a_channel_are_refused(slack):
    slack.server.pace.min_interval = 1.0
    await slack.post("a")
    assert await slack.refused("chat.postMessage", channel=ROOM, text="b") == "ratelimited"
    await slack.post("a", ALICE_DM)
    await slack.pass_time(1)

    assert await slack.post("b")


async def test_a_tier_allows_so_many_calls_a_minute(slack):
    slack.server.pace.tiers = True
    for _ in range(20):
        await slack.result("conversations.list")
    assert (await slack.send("conversations.list")).headers["retry-after"] == "60"
    await slack.pass_time(60)

    assert (await slack.call("conversations.list"))["ok"]


@pytest.mark.parametrize(("fault", "carried_out"), [(Fault.LOST_REQUEST, False), (Fault.LOST_RESPONSE, True)])
async def test_a_lost_request_has_no_effect_and_a_lost_response_has_one(slack, fault, carried_out):
    slack.server.fault("chat.postMessage", fault)
    with pytest.raises(httpx.TransportError):
        await slack.post("a")

    assert bool(slack.server.visible(ROOM)) is carried_out
    assert slack.server.calls[-1].status == 0


async def test_a_scripted_fault_hits_its_method_and_channel_as_often_as_it_is_told(slack):
    slack.server.fault("chat.postMessage", Fault.FLOODED, times=2, channel=ROOM, seconds=90)
    assert await slack.post("a", BOB_DM)
    answers = [await slack.send("chat.postMessage", channel=ROOM, text="a") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "90"


async def test_an_error_page_a_server_error_and_a_plain_refusal_can_be_told(slack):
    slack.server.fail_next("chat.postMessage", 503, "<html>busy</html>", headers={"Retry-After": "3"})
    slack.server.fail_next("chat.postMessage", 500)
    slack.server.refuse_next("chat.postMessage", "restricted_action")
    page = await slack.send("chat.postMessage", channel=ROOM, text="a")

    assert (page.status_code, page.text, page.headers["retry-after"]) == (503, "<html>busy</html>", "3")
    assert page.headers["content-type"].startswith("text/html")
    assert await slack.refused("chat.postMessage", channel=ROOM, text="a") == "internal_error"
    assert await slack.refused("chat.postMessage", channel=ROOM, text="a") == "restricted_action"
    assert [(call.status, call.error) for call in slack.server.calls[-2:]] == [
        (500, "internal_error"),
        (200, "restricted_action"),
    ]


async def test_a_slow_call_is_carried_out_when_its_time_has_come(slack):
    slow = slack.server.fault("chat.postMessage", Fault.SLOW, seconds=30)
    call = asyncio.create_task(slack.post("a"))
    await asyncio.wait_for(slow.entered.wait(), 30)
    assert slack.server.visible(ROOM) == []
    await slack.pass_time(30)

    assert await asyncio.wait_for(call, 30)


async def test_a_half_open_call_is_never_answered(slack):
    held = slack.server.fault("chat.postMessage", Fault.HALF_OPEN)
    call = asyncio.create_task(slack.post("a"))
    await asyncio.wait_for(held.entered.wait(), 30)
    await slack.server.stop()
    with pytest.raises(httpx.TransportError):
        await call

    assert slack.server.visible(ROOM) == []


async def test_a_gate_holds_a_call_before_it_is_carried_out_or_before_it_is_answered(slack):
    before, behind = slack.server.gate_next("chat.postMessage"), slack.server.gate_answer("chat.postMessage")
    call = asyncio.create_task(slack.post("a"))
    await asyncio.wait_for(before.entered.wait(), 30)
    assert slack.server.visible(ROOM) == []
    before.opened.set()
    await asyncio.wait_for(behind.entered.wait(), 30)
    assert [message.text for message in slack.server.visible(ROOM)] == ["a"]
    behind.opened.set()

    assert await asyncio.wait_for(call, 30)


async def test_an_outage_forgets_nothing_and_the_address_stays(slack):
    base = slack.server.api_base
    ts = await slack.post("a")
    await slack.server.stop()
    with pytest.raises(httpx.TransportError):
        await slack.call("auth.test")
    await slack.server.start()

    assert slack.server.api_base == base
    assert (await slack.result("chat.update", channel=ROOM, ts=ts, text="b"))["text"] == "b"


async def test_a_wait_ends_with_the_first_true_value_and_with_its_time(slack):
    waiting = asyncio.create_task(slack.server.wait_for(lambda: slack.server.visible(ROOM)))
    await slack.post("a")
    (message,) = await waiting

    assert message.text == "a"
    with pytest.raises(TimeoutError):
        await slack.server.wait_for(lambda: False, timeout=0.01)
