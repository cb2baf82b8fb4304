"""The fake is held to what the Bot API documents, by plain HTTP."""

import asyncio
import json
from datetime import timedelta

import httpx
import pytest

from core.contracts.clock import FakeClock
from tests.platforms.telegram_server import TOKEN, TelegramServer

KEYBOARD = {"inline_keyboard": [[{"text": "Approve", "callback_data": "tok"}]]}


class Client:
    def __init__(self, http, server):
        self.http = http
        self.server = server

    async def call(self, method, token=TOKEN, **params):
        form = {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in params.items()}
        answer = await self.http.post(f"{self.server.api_base}/bot{token}/{method}", data=form)
        return answer.json()

    async def refused(self, method, **params):
        answer = await self.call(method, **params)
        assert not answer["ok"]
        return answer["error_code"], answer["description"]


@pytest.fixture
async def client():
    async with (
        TelegramServer(TOKEN, clock=FakeClock()) as server,
        httpx.AsyncClient(trust_env=False, timeout=5) as http,
    ):
        server.open_chat(111)
        yield Client(http, server)


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


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "\U0001f600" * 2049}, "message is too long"),
        ({"text": "  \n"}, "message text is empty"),
        ({"text": "x", "chat_id": 999}, "chat not found"),
        ({"text": "x", "message_thread_id": 5}, "message thread not found"),
        ({"text": "x", "entities": [{"type": "pre", "offset": 0, "length": 2}]}, "ends after the end"),
        ({"text": "\U0001f600", "entities": [{"type": "pre", "offset": 1, "length": 1}]}, "inside a character"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "я" * 33}]]}}, "BUTTON"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": ""}]]}}, "BUTTON"),
    ],
)
async def test_limits_are_enforced(client, params, description):
    code, told = await client.refused("sendMessage", **({"chat_id": 111} | params))

    assert code == 400
    assert description in told
    assert client.server.visible(111) == []


async def test_what_fits_exactly_is_taken(client):
    markup = {"inline_keyboard": [[{"text": "a", "callback_data": "я" * 32}]]}
    answer = await client.call("sendMessage", chat_id=111, text="\U0001f600" * 2048, reply_markup=markup)

    assert answer["ok"]


async def test_an_edit_must_change_something_after_trimming(client):
    sent = (await client.call("sendMessage", chat_id=111, text="same", reply_markup=KEYBOARD))["result"]
    where = {"chat_id": 111, "message_id": sent["message_id"]}

    _, told = await client.refused("editMessageText", text="same \n", reply_markup=KEYBOARD, **where)
    assert "message is not modified" in told
    assert (await client.call("editMessageText", text="same", **where))["ok"]
    assert client.server.visible(111)[0].buttons == {}
    client.server.delete(111, sent["message_id"])
    _, told = await client.refused("editMessageText", text="other", **where)
    assert "message to edit not found" in told


async def test_a_press_is_answered_once_and_in_time(client):
    sent = (await client.call("sendMessage", chat_id=111, text="?", reply_markup=KEYBOARD))["result"]
    first = client.server.press(111, sent["message_id"], "tok")
    second = client.server.press(111, sent["message_id"], "tok", user=222)

    assert (await client.call("answerCallbackQuery", callback_query_id=first, text="ok"))["ok"]
    assert "too old" in (await client.refused("answerCallbackQuery", callback_query_id=first))[1]
    await client.server.clock.advance(timedelta(seconds=16))
    assert "too old" in (await client.refused("answerCallbackQuery", callback_query_id=second))[1]
    assert client.server.answers == {first: "ok"}
    with pytest.raises(AssertionError):
        client.server.press(111, sent["message_id"], "never shown")


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
