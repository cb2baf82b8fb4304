"""The fake is held to what the Bot API documents, by plain HTTP."""

import asyncio
from datetime import timedelta

import httpx
import pytest

from tests.platforms.telegram_faults import Fault
from tests.platforms.telegram_server import TOKEN

KEYBOARD = {"inline_keyboard": [[{"text": "Approve", "callback_data": "tok"}]]}


async def ids(client, **params):
    return [update["update_id"] for update in (await client.call("getUpdates", **params))["result"]]


async def test_unconfirmed_updates_are_sent_again_and_confirmed_ones_are_forgotten(client):
    for text in ("one", "two", "three"):
        client.server.user_says(111, text)

    assert await ids(client) == [5001, 5002, 5003]
    assert await ids(client, offset=5002) == [5002, 5003]
    assert await ids(client) == [5002, 5003]
    assert await ids(client, limit=1) == [5002]


async def test_a_long_poll_returns_with_the_first_update_or_when_its_time_is_over(client):
    poll = asyncio.create_task(ids(client, timeout=20))
    await client.server.wait_for(lambda: client.server.updates.is_polled)
    client.server.user_says(111, "hello")
    assert await poll == [5001]
    poll = asyncio.create_task(ids(client, timeout=20, offset=5002))
    await client.server.wait_for(lambda: client.server.updates.is_polled)
    await client.server.clock.advance(timedelta(seconds=20))

    assert await poll == []


async def test_a_second_poll_ends_the_first_with_409(client):
    first = asyncio.create_task(client.refused("getUpdates", timeout=20))
    await client.server.wait_for(lambda: client.server.updates.is_polled)
    second = asyncio.create_task(ids(client, timeout=20))
    code, description = await first
    client.server.user_says(111, "hello")

    assert code == 409
    assert "terminated by other getUpdates" in description
    assert await second == [5001]


async def test_the_pace_is_enforced_per_chat_and_a_flood_ends(client):
    client.server.open_chat(222)
    client.server.min_interval = 1.0
    assert (await client.call("sendMessage", chat_id=111, text="a"))["ok"]
    refused = await client.call("sendMessage", chat_id=111, text="b")
    assert (refused["error_code"], refused["parameters"]) == (429, {"retry_after": 1})
    assert (await client.call("sendMessage", chat_id=222, text="c"))["ok"]
    client.server.flood(111, 25)
    await client.server.clock.advance(timedelta(seconds=24))
    assert (await client.refused("sendChatAction", chat_id=111, action="typing"))[0] == 429
    await client.server.clock.advance(timedelta(seconds=1))

    assert (await client.call("sendMessage", chat_id=111, text="b"))["ok"]


async def test_faults_hit_the_next_calls_only(client):
    client.server.fail_next("sendMessage", 503)
    assert (await client.refused("sendMessage", chat_id=111, text="a"))[0] == 503
    for fault in ({"drop_before": True}, {"drop_after": True}):
        client.server.fail_next("sendMessage", **fault)
        with pytest.raises(httpx.TransportError):
            await client.call("sendMessage", chat_id=111, text=str(fault))
    await client.call("sendMessage", chat_id=111, text="b")

    assert [message.text for message in client.server.visible(111)] == ["{'drop_after': True}", "b"]


async def test_a_wrong_token_a_blocked_bot_and_an_unknown_method_are_refused(client):
    assert (await client.refused("getMe", token="1:x"))[0] == 401
    client.server.block(111)
    assert (await client.refused("sendMessage", chat_id=111, text="a"))[0] == 403
    assert (await client.refused("sendEverything"))[0] == 404


async def test_json_bodies_and_query_strings_are_read_too(client):
    url = f"{client.server.api_base}/bot{TOKEN}/sendMessage"
    await client.http.post(url, json={"chat_id": 111, "text": "123", "reply_markup": KEYBOARD})
    await client.http.get(url, params={"chat_id": 111, "text": "by query"})

    assert [message.text for message in client.server.visible(111)] == ["123", "by query"]
    assert client.server.visible(111)[0].buttons == {"Approve": "tok"}


async def test_an_outage_forgets_nothing(client):
    client.server.user_says(111, "hello")
    base = client.server.api_base
    await client.server.stop()
    with pytest.raises(httpx.TransportError):
        await client.call("getMe")
    await client.server.start()

    assert client.server.api_base == base
    assert await ids(client) == [5001]


async def test_the_time_is_told_with_every_answer_and_can_be_wrong(client):
    client.server.clock_skew = timedelta(minutes=5)
    answer = await client.http.get(f"{client.server.api_base}/bot{TOKEN}/getMe")

    assert answer.headers["date"] == "Thu, 01 Jan 2026 12:05:00 GMT"


async def test_a_scripted_fault_hits_its_method_and_chat_as_often_as_it_is_told(client):
    client.server.open_chat(222)
    client.server.fault("sendMessage", Fault.FLOODED, times=2, chat_id=111, seconds=0.35)
    assert (await client.call("sendMessage", chat_id=222, text="a"))["ok"]
    limited = [await client.call("sendMessage", chat_id=111, text="a") for _ in range(3)]

    assert [answer["ok"] for answer in limited] == [False, False, True]
    assert limited[0]["parameters"] == {"retry_after": 0.35}


@pytest.mark.parametrize(("fault", "carried_out"), [(Fault.LOST_REQUEST, False), (Fault.LOST_RESPONSE, True)])
async def test_a_lost_request_has_no_effect_and_a_lost_response_has_one(client, fault, carried_out):
    client.server.fault("sendMessage", fault)
    with pytest.raises(httpx.TransportError):
        await client.call("sendMessage", chat_id=111, text="a")

    assert bool(client.server.visible(111)) is carried_out
    assert client.server.calls[-1].status == 0


async def test_a_slow_call_is_carried_out_when_its_time_has_come(client):
    slow = client.server.fault("sendMessage", Fault.SLOW, seconds=30)
    call = asyncio.create_task(client.result("sendMessage", chat_id=111, text="a"))
    await asyncio.wait_for(slow.entered.wait(), 30)
    assert client.server.visible(111) == []
    await client.server.clock.advance(timedelta(seconds=30))

    assert (await asyncio.wait_for(call, 30))["text"] == "a"


async def test_a_half_open_call_is_never_answered(client):
    held = client.server.fault("sendMessage", Fault.HALF_OPEN)
    call = asyncio.create_task(client.call("sendMessage", chat_id=111, text="a"))
    await asyncio.wait_for(held.entered.wait(), 30)
    await client.server.stop()
    with pytest.raises(httpx.TransportError):
        await call

    assert client.server.visible(111) == []


async def test_updates_come_twice_or_the_newest_first_when_that_is_scripted(client):
    for text in ("one", "two"):
        client.server.user_says(111, text)
    client.server.fault("getUpdates", Fault.DUPLICATED)
    client.server.fault("getUpdates", Fault.REORDERED)

    assert [await ids(client) for _ in range(3)] == [[5001, 5002, 5001, 5002], [5002, 5001], [5001, 5002]]
