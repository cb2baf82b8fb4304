import asyncio
import json
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bot.console.server import serve
from channels.telegram.administrators import Administrators
from channels.telegram.health import WebhookHealth
from channels.telegram.limits import Timing
from channels.telegram.presses import PressAnswers
from channels.telegram.transport import BotApi
from channels.telegram.webhook import BODY_LIMIT_BYTES, WebhookIntake
from core.contracts.errors import ChannelDown, StorageFull, StoreUnavailable
from tests.platforms.telegram_faults import Fault
from tests.platforms.telegram_json import message, press
from tests.platforms.telegram_server import TOKEN

URL = "https://bot.example/hooks/tele%20gram"
SECRET = "s3cret-" + "S" * 30


@dataclass
class Hook:
    """A webhook intake that runs, and Telegram's side of calling it."""

    intake: WebhookIntake
    health: WebhookHealth
    running: asyncio.Task
    read: list = field(default_factory=list)

    async def call(self, body=b"", path="/hooks/tele gram", method="POST", chunks=None, **headers):
        """Return the status that a call is answered with.

        A header that is a list comes several times. A chunk that is None hangs up.
        """
        sent = {"x-telegram-bot-api-secret-token": SECRET, "content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        pairs = [
            (name.encode(), one.encode())
            for name, value in sent.items()
            for one in (value if isinstance(value, list) else [value])
        ]
        parts = list(chunks or [body])
        answered = []

        async def receive():
            part = parts.pop(0)
            self.read.append(part)
            if part is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(sent_message):
            answered.append(sent_message)

        await self.intake({"type": "http", "path": path, "method": method, "headers": pairs}, receive, send)
        return answered[0]["status"].value

    async def post(self, update, **options):
        return await self.call(json.dumps(update).encode(), **options)

    def says(self, number, text="hello"):
        return self.post({"update_id": number, "message": message(message_id=number, text=text)})


@asynccontextmanager
async def hooked(world, sink=None, api=BotApi):
    api, health = api(TOKEN, world.server.api_base, lambda text: text), WebhookHealth(world.clock)
    asked = Administrators(api, channel="telegram", clock=world.clock, timing=Timing())
    async with PressAnswers(api, world.clock, Timing()) as presses, asked as administrators:
        intake = WebhookIntake(
            api,
            url=URL,
            secret=SECRET,
            name="telegram",
            clock=world.clock,
            health=health,
            presses=presses,
            administrators=administrators,
        )
        running = asyncio.create_task(intake.run(sink or world.sink))
        try:
            yield Hook(intake, health, running)
        finally:
            await world.stop(running)
    await api.aclose()


@pytest.fixture
async def hook(world):
    async with hooked(world) as opened:
        await world.until(lambda: opened.health.probe().healthy)
        yield opened


class StuckSink:
    """A store that answers when it is told to, in the order it was asked."""

    def __init__(self):
        self.entered = []
        self.may_go = asyncio.Event()

    async def accept(self, event):
        self.entered.append(event.body.text)
        await self.may_go.wait()


async def test_an_update_is_answered_only_after_it_was_stored(world):
    sink = StuckSink()
    async with hooked(world, sink) as hook:
        await world.until(lambda: hook.health.probe().healthy)
        posting = asyncio.create_task(hook.says(1))
        await world.until(lambda: sink.entered)
        assert not posting.done()
        sink.may_go.set()

        assert await posting == 200


async def test_updates_that_are_here_together_are_accepted_in_their_order(world):
    sink = StuckSink()
    async with hooked(world, sink) as hook:
        await world.until(lambda: hook.health.probe().healthy)
        posts = [asyncio.create_task(hook.says(number, str(number))) for number in (5, 9, 7, 8, 6)]
        await world.until(lambda: sink.entered)
        sink.may_go.set()

        assert await asyncio.gather(*posts) == [200] * 5
        assert sink.entered == ["5", "6", "7", "8", "9"]


@pytest.mark.parametrize("error", [StorageFull("full"), StoreUnavailable("locked")])
async def test_what_could_not_be_stored_is_refused_so_that_it_comes_again(world, hook, error):
    world.sink.errors = [error]

    assert await hook.says(1, "one") == 503
    assert "cannot be stored" in hook.health.probe().detail
    assert await hook.says(1, "one") == 200
    assert world.sink.texts == ["one"]
    assert hook.health.probe().healthy


async def test_an_update_that_comes_twice_has_the_same_key(world, hook):
    assert [await hook.says(1), await hook.says(1)] == [200, 200]
    assert len({event.key for event in world.sink.events}) == 1


@pytest.mark.parametrize(
    "secret",
    [
        "wrong",
        "",
        SECRET[:-1],
        SECRET + "x",
        "\N{LATIN SMALL LETTER E WITH ACUTE}" * 9,
        [],
        [SECRET, SECRET],
        [SECRET, "wrong"],
    ],
)
async def test_a_call_without_the_secret_is_refused_unread(world, hook, secret, caplog):
    caplog.set_level(logging.WARNING)
    assert await hook.post({"update_id": 1, "message": message()}, x_telegram_bot_api_secret_token=secret) == 401
    assert hook.read == []
    assert world.sink.events == []
    assert SECRET not in caplog.text
    await hook.post({}, x_telegram_bot_api_secret_token=secret)
    assert [record.message for record in caplog.records] == ["telegram_webhook_wrong_secret"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"path": "/"}, 404),
        ({"path": "/hooks/tele gram/"}, 404),
        ({"path": "/hooks", "x_telegram_bot_api_secret_token": "wrong"}, 404),
        ({"method": "GET"}, 405),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": []}, 415),
        ({"content_length": str(BODY_LIMIT_BYTES + 1)}, 413),
        ({"content_length": "9" * 5000}, 413),
    ],
)
async def test_what_telegram_would_not_send_is_refused_unread(world, hook, options, status):
    assert await hook.post({"update_id": 1, "message": message()}, **options) == status
    assert hook.read == []
    assert world.sink.events == []


async def test_a_body_that_does_not_end_is_not_read_on(hook):
    chunk = b" " * 300_000

    assert await hook.call(chunks=[chunk] * 100) == 413
    assert len(hook.read) == 4


async def test_a_caller_that_hangs_up_leaves_nothing_behind(world, hook):
    assert await hook.call(chunks=[b'{"update_id": 1', None]) == 400
    assert world.sink.events == []


async def test_a_body_in_pieces_is_one_update(world, hook):
    whole = json.dumps({"update_id": 1, "message": message(text="in pieces")}).encode()

    assert await hook.call(chunks=[whole[:20], whole[20:]], content_type="application/JSON; charset=utf-8") == 200
    assert world.sink.texts == ["in pieces"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe\xff", b"[" * 100_000, b"9" * 6000, b"[]", b"null", b'{"message": 5}']
)
async def test_what_can_never_be_read_is_answered_so_that_it_does_not_come_for_ever(world, hook, body, caplog):
    caplog.set_level(logging.WARNING)
    assert await hook.call(body) == 200
    assert [record.message for record in caplog.records] == ["telegram_update_malformed"]
    assert await hook.says(2, "fine") == 200
    assert world.sink.texts == ["fine"]


async def test_an_event_that_breaks_the_host_is_answered_and_logged(world, hook, caplog):
    world.sink.errors = [RuntimeError("a bug")]

    assert await hook.says(1) == 200
    assert "telegram_event_crashed" in caplog.text


async def test_an_update_that_means_nothing_is_answered(world, hook):
    assert await hook.post({"update_id": 1, "shiny_new_update": {}}) == 200
    assert world.sink.events == []


async def test_a_press_is_answered_in_time_while_the_store_is_stuck_c27(world):
    sink = StuckSink()
    async with hooked(world, sink) as hook:
        await world.until(lambda: hook.health.probe().healthy)
        ahead = asyncio.create_task(hook.says(1))
        await world.until(lambda: sink.entered)
        pressed = asyncio.create_task(hook.post({"update_id": 2, "callback_query": press()}))
        await world.pass_time(1, step=0.1)

        assert [call.params["callback_query_id"] for call in world.server.calls_of("answerCallbackQuery")] == [42]
        assert not pressed.done()
        await world.stop(hook.running)
        assert await asyncio.gather(ahead, pressed) == [503, 503]


async def test_before_and_after_it_runs_everything_is_refused_so_that_it_comes_again(world):
    await world.server.stop()
    async with hooked(world) as hook:
        await world.until(lambda: world.clock.sleeping)
        assert await hook.says(1) == 503
        await world.server.start()
        await world.pass_time(3)
        await world.until(lambda: hook.health.probe().healthy)
        assert await hook.says(1) == 200
        await world.stop(hook.running)

        assert await hook.says(2) == 503


async def test_only_http_is_spoken(hook):
    async def never(*_):
        raise AssertionError("nothing is read or sent")

    await hook.intake({"type": "websocket", "path": "/hooks/tele gram"}, never, never)


# Registration


async def test_the_webhook_is_set_once_with_its_secret_and_what_is_wanted(world, hook):
    await world.pass_time(300)

    (call,) = world.server.calls_of("setWebhook")
    assert (call.params["url"], call.params["secret_token"]) == (URL, SECRET)
    assert call.params["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
        "chat_member",
        "message_reaction",
    ]
    assert not call.params.get("drop_pending_updates")
    assert 5 <= len(world.server.calls_of("getWebhookInfo")) <= 7
    assert hook.health.probe().healthy


async def test_a_webhook_that_another_program_removed_is_set_again_with_one_warning(world, hook, caplog):
    caplog.set_level(logging.WARNING)
    world.server.updates.webhook_url = ""
    await world.pass_time(61)

    assert world.server.updates.webhook_url == URL
    assert [record.message for record in caplog.records] == ["telegram_webhook_changed"]
    assert hook.health.probe().healthy


async def test_an_outage_at_the_start_is_waited_out(world, caplog):
    world.server.fail_next("getMe", 502)
    world.server.fail_next("setWebhook", 429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 20}})
    async with hooked(world) as hook:
        await world.pass_time(2)
        assert not hook.health.probe().healthy
        await world.pass_time(25)
        await world.until(lambda: hook.health.probe().healthy)

    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == ["telegram_webhook_failed"]


async def test_an_address_that_telegram_refuses_is_named_and_tried_seldom(world):
    refusal = {"ok": False, "error_code": 400, "description": "Bad Request: bad webhook: Failed to resolve host"}
    world.server.fail_next("setWebhook", 400, refusal, times=100)
    async with hooked(world) as hook:
        await world.pass_time(600, step=5)
        probe = hook.health.probe()

    assert not probe.healthy
    assert "failed to resolve host" in probe.detail
    assert "webhook_url" in probe.detail
    assert len(world.server.calls_of("setWebhook")) <= 7


async def test_a_refused_token_ends_it_c69(world):
    world.server.revoked = True
    async with hooked(world) as hook:
        await asyncio.wait({hook.running}, timeout=30)

        assert isinstance(hook.running.exception(), ChannelDown)
        assert "@BotFather" in hook.health.probe().detail


async def test_a_token_that_is_revoked_later_ends_it_too(world, hook):
    world.server.revoked = True
    await world.pass_time(61)
    await asyncio.wait({hook.running}, timeout=30)

    assert isinstance(hook.running.exception(), ChannelDown)


class StumblingApi(BotApi):
    """Has a bug that shows once at the start and once later."""

    def __init__(self, token, api_base, mask):
        super().__init__(token, api_base, mask)
        self.bugs = ["me", "webhook_state"]

    async def me(self):
        self.stumble("me")
        return await super().me()

    async def webhook_state(self):
        self.stumble("webhook_state")
        return await super().webhook_state()

    def stumble(self, name):
        if name in self.bugs:
            self.bugs.remove(name)
            raise KeyError("a bug")


async def test_an_error_that_nobody_foresaw_is_logged_and_it_goes_on(world, caplog):
    caplog.set_level(logging.WARNING)
    async with hooked(world, api=StumblingApi) as hook:
        await world.pass_time(122)
        assert hook.health.probe().healthy
        assert await hook.says(1) == 200

    assert [record.message for record in caplog.records] == ["telegram_webhook_crashed"] * 2


# Over the wire


@pytest.mark.parametrize("fault", [None, Fault.DUPLICATED, Fault.LOST_RESPONSE])
async def test_telegram_posts_what_people_say_and_what_waited_before(world, fault):
    world.server.user_says(111, "before")
    async with hooked(world) as hook, serve(hook.intake, listen="127.0.0.1:0") as bound:
        if fault is not None:
            world.server.fault("webhook", fault)
        world.server.webhook.proxies["https://bot.example"] = f"http://{bound.removeprefix('http://')}"
        await world.until(lambda: hook.health.probe().healthy)
        world.server.user_says(111, "after")
        await world.pass_time(5)
        await world.server.wait_for(lambda: not world.server.updates.unconfirmed)

    assert list(dict.fromkeys(world.sink.texts)) == ["before", "after"]
    assert set(world.server.webhook.statuses) == {200}


async def test_what_telegram_cannot_deliver_turns_the_probe_red_and_comes_later(world):
    async with hooked(world) as hook:
        await world.until(lambda: hook.health.probe().healthy)
        world.server.user_says(111, "one")
        await world.pass_time(62)
        probe = hook.health.probe()
        assert not probe.healthy
        assert "Updates that wait: 1" in probe.detail
        async with serve(hook.intake, listen="127.0.0.1:0") as bound:
            world.server.webhook.proxies["https://bot.example"] = f"http://{bound.removeprefix('http://')}"
            await world.pass_time(62)
            await world.server.wait_for(lambda: not world.server.updates.unconfirmed)

        assert world.sink.texts == ["one"]
        assert hook.health.probe().healthy
        assert world.clock.now() - world.sink.events[0].sent_at > timedelta(minutes=1)
