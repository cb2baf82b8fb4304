import asyncio
import io
import logging
import traceback
from datetime import timedelta

import pytest

from channels.telegram.files import FileCall, FileKind
from channels.telegram.transport import BotApi
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendUnknown
from tests.platforms.telegram_server import TOKEN


def told(error):
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


async def failure_of(call):
    with pytest.raises(ChannelError) as raised:
        await call
    return told(raised.value)


async def test_no_log_line_error_or_repr_holds_the_token_c69(world, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="httpx")
    caplog.set_level(logging.DEBUG, logger="httpcore")
    world.server.user_says(111, "hello")
    task = world.run()
    await world.polls()
    await world.channel.deliver(world.text("answer"))
    seen = []
    world.server.fail_next("sendMessage", drop_before=True)
    seen.append(await failure_of(world.channel.deliver(world.text("x", chat="222"))))
    world.server.fail_next("sendMessage", 502, {"unexpected": TOKEN})
    await world.clock.advance(timedelta(seconds=5))
    seen.append(await failure_of(world.channel.deliver(world.text("x", chat="222"))))
    world.server.revoked = True
    world.server.user_says(111, "ends the poll")
    await asyncio.wait({task}, timeout=30)
    seen.append(told(task.exception()))
    await world.clock.advance(timedelta(seconds=5))
    seen.append(await failure_of(world.channel.deliver(world.text("x", chat="222"))))
    await world.server.stop()
    await world.clock.advance(timedelta(seconds=5))
    seen.append(await failure_of(world.channel.deliver(world.text("x", chat="222"))))
    seen += [repr(world.channel), repr(world.channel._api._bot), str(world.channel._api.__dict__)]
    seen += [(await world.channel.probe()).detail, caplog.text]
    seen += [str(record.__dict__) for record in caplog.records]

    for secret in (TOKEN, TOKEN[-20:]):
        assert [text for text in seen if secret in text] == []


async def test_logs_still_tell_method_and_status_c69(world, caplog):
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.INFO, logger="httpx")
    await world.channel.deliver(world.text("answer"))

    assert "/botTOKEN/sendMessage" in caplog.text
    assert "200 OK" in caplog.text


async def test_the_token_reaches_the_server_and_a_wrong_one_is_refused(world):
    right = BotApi(f" {TOKEN}\n", world.server.api_base + "/", lambda text: text)
    wrong = BotApi("1:x", world.server.api_base, lambda text: text)

    assert await right.me() == (123456789, "lodger_bot")
    with pytest.raises(ChannelDown):
        await wrong.me()
    await right.aclose()
    await wrong.aclose()


@pytest.mark.parametrize("fault", [{"drop_after": True}, {"drop_before": True}, {"status": 503}, {"status": 500}])
async def test_an_answer_that_is_lost_leaves_the_outcome_open_and_nothing_is_repeated(world, fault):
    world.server.fail_next("sendMessage", **fault)
    with pytest.raises(SendUnknown):
        await world.channel.deliver(world.text("once"))

    assert len(world.server.calls_of("sendMessage")) == 1


@pytest.mark.parametrize("body", [{"ok": True}, {"hello": "captive portal"}])
async def test_an_answer_without_a_result_leaves_the_outcome_open(world, body):
    world.server.fail_next("sendMessage", 200, body)
    with pytest.raises(SendUnknown):
        await world.channel.deliver(world.text("once"))


async def test_a_connection_that_was_never_made_is_safe_to_try_again(world):
    await world.server.stop()
    with pytest.raises(SendLimited) as raised:
        await world.channel.deliver(world.text("hello"))

    assert timedelta(0) < raised.value.retry_after <= timedelta(seconds=5)


async def test_polls_hold_no_connection_that_sends_need(world):
    world.run()
    await world.polls()
    gates = [world.server.gate_next("sendMessage") for _ in range(20)]
    sends = []
    for number in range(20):
        world.server.open_chat(1000 + number)
        sends.append(asyncio.create_task(world.channel.deliver(world.text("x", chat=str(1000 + number)))))
    for gate in gates:
        await gate.entered.wait()
    for gate in gates:
        gate.opened.set()

    assert len(set(await asyncio.gather(*sends))) == 20


class WatchedFile(io.FileIO):
    """Remembers how much was asked of it at once."""

    def __init__(self, path):
        super().__init__(path)
        self.asked = []

    def read(self, size=-1):
        self.asked.append(size)
        return super().read(size)


async def test_an_upload_is_read_in_pieces_while_it_goes_out(world, tmp_path):
    path = tmp_path / "big.bin"
    path.write_bytes(bytes(3_000_000))
    api = BotApi(TOKEN, world.server.api_base, lambda text: text)
    with WatchedFile(path) as content:
        await api.send_file(
            FileCall(chat_id=111, kind=FileKind.DOCUMENT, name="big.bin", content=content, caption="", options={})
        )
        assert len(content.asked) > 40
        assert 0 < min(content.asked) <= max(content.asked) <= 65_536
    await api.aclose()

    assert world.server.visible(111)[0].file.size == 3_000_000


async def test_a_webhook_is_set_with_its_secret_and_the_wanted_updates(world):
    api = BotApi(TOKEN, world.server.api_base, lambda text: text)
    assert await api.webhook_url() == ""
    await api.set_webhook("https://bot.example/hook", "s3cret")

    assert await api.webhook_url() == "https://bot.example/hook"
    params = world.server.calls_of("setWebhook")[0].params
    assert params["secret_token"] == "s3cret"
    assert set(params["allowed_updates"]) >= {"message", "callback_query", "my_chat_member", "message_reaction"}
    await api.aclose()
