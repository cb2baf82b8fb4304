"""Presses, menus and the webhook of one bot, as the Bot API documents them."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import web

from tests.platforms.telegram_account import SECRET_HEADER
from tests.platforms.telegram_faults import Fault

KEYBOARD = {"inline_keyboard": [[{"text": "Approve", "callback_data": "tok"}]]}
HELP = [{"command": "help", "description": "What I can do"}]
HOOK = "https://bot.example.org/hook"


class Endpoint:
    """A program behind a webhook: it answers with `statuses`, then with 200."""

    def __init__(self):
        self.taken = []
        self.secrets = []
        self.statuses = []

    async def __aenter__(self):
        app = web.Application()
        app.router.add_post("/hook", self.take)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_):
        await self.runner.cleanup()

    async def take(self, request):
        self.taken.append((await request.json())["update_id"])
        self.secrets.append(request.headers.get(SECRET_HEADER))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)


@pytest.fixture
async def endpoint(client):
    async with Endpoint() as opened:
        client.server.webhook.proxies["https://bot.example.org"] = opened.base
        yield opened


async def posted(client, count):
    await client.server.wait_for(lambda: len(client.server.webhook.statuses) >= count)


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


async def test_a_menu_belongs_to_its_scope_and_is_read_back(client):
    scope = {"type": "chat", "chat_id": 111}
    await client.result("setMyCommands", commands=HELP, scope=scope)

    assert await client.result("getMyCommands", scope=scope) == HELP
    assert await client.result("getMyCommands") == []
    assert client.server.menus.shown("chat", 111) == {"help": "What I can do"}
    await client.result("deleteMyCommands", scope=scope)
    assert await client.result("getMyCommands", scope=scope) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"commands": [{"command": "Help", "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ({"commands": [{"command": "h" * 33, "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ({"commands": [{"command": "help", "description": "x" * 257}]}, "DESCRIPTION_INVALID"),
        ({"commands": HELP * 101}, "TOO_MUCH"),
        ({"scope": {"type": "chat", "chat_id": 999}}, "chat not found"),
    ],
)
async def test_the_limits_of_menus_are_enforced(client, changes, told):
    assert told in (await client.refused("setMyCommands", **({"commands": HELP} | changes)))[1]


@pytest.mark.parametrize(
    "params",
    [
        {"url": "http://bot.example.org/hook"},
        {"url": "https://bot.example.org:8080/hook"},
        {"url": HOOK, "secret_token": "not allowed!"},
        {"url": HOOK, "secret_token": "x" * 257},
    ],
)
async def test_a_webhook_needs_https_a_port_and_a_plain_secret(client, params):
    assert (await client.refused("setWebhook", **params))[0] == 400
    assert (await client.result("getWebhookInfo"))["url"] == ""


async def test_updates_are_posted_in_order_with_the_secret_and_polls_are_refused(client, endpoint):
    client.server.user_says(111, "before")
    await client.result("setWebhook", url=HOOK, secret_token="s3cret")
    client.server.user_says(111, "after")
    await posted(client, 2)

    assert (endpoint.taken, endpoint.secrets) == ([5001, 5002], ["s3cret", "s3cret"])
    assert (await client.refused("getUpdates"))[0] == 409
    assert (await client.result("getWebhookInfo"))["pending_update_count"] == 0


async def test_an_update_that_is_not_taken_comes_again_and_is_told_of(client, endpoint):
    endpoint.statuses = [503]
    await client.result("setWebhook", url=HOOK)
    client.server.user_says(111, "hello")
    await posted(client, 1)
    info = await client.result("getWebhookInfo")
    await client.server.clock.advance(timedelta(seconds=1))
    await posted(client, 2)

    assert "503" in info["last_error_message"]
    assert (info["pending_update_count"], endpoint.taken) == (1, [5001, 5001])


async def test_a_webhook_that_cannot_be_reached_keeps_its_updates(client):
    await client.result("setWebhook", url=HOOK)
    client.server.user_says(111, "hello")
    await client.server.wait_for(lambda: "last_error_message" in client.server.webhook.describe())
    await client.result("deleteWebhook")

    assert [update["update_id"] for update in await client.result("getUpdates")] == [5001]


@pytest.mark.parametrize(
    ("fault", "taken"),
    [
        (Fault.DUPLICATED, [5001, 5001, 5002]),
        (Fault.REORDERED, [5002, 5001]),
        (Fault.LOST_RESPONSE, [5001, 5001, 5002]),
    ],
)
async def test_posts_go_wrong_as_scripted(client, endpoint, fault, taken):
    client.server.fault("webhook", fault)
    for text in ("one", "two"):
        client.server.user_says(111, text)
    await client.result("setWebhook", url=HOOK)
    await posted(client, 1)
    await client.server.clock.advance(timedelta(seconds=1))
    await posted(client, len(taken))

    assert endpoint.taken == taken


async def test_setting_a_webhook_ends_a_poll(client):
    poll = asyncio.create_task(client.refused("getUpdates", timeout=20))
    await client.server.wait_for(lambda: client.server.updates.is_polled)
    await client.result("setWebhook", url=HOOK)

    assert (await asyncio.wait_for(poll, 30))[0] == 409
