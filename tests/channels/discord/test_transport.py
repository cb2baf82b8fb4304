"""Calls over the wire: what goes out, what comes back, and what becomes of it when it does not."""

import asyncio
import io
import logging
import traceback
from datetime import timedelta

import pytest

from channels.discord.buckets import Route
from channels.discord.errors import InteractionGone, MessageGone, PlaceGone
from channels.discord.limits import Timing
from channels.discord.transport import DiscordApi, Upload
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendRejected, SendUnknown
from tests.channels.discord.sending import opened
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_guilds import ALICE, BOT, GENERAL, GUILD, RANDOM
from tests.platforms.telegram_faults import Fault

GENERAL_ID, RANDOM_ID = str(GENERAL), str(RANDOM)
HELLO = {"content": "hello"}


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


def told(error):
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


async def test_the_bot_its_application_and_its_gateway_are_read(world):
    identity = await world.api.identity()
    application = await world.api.application()
    gateway = await world.api.gateway()

    assert (identity.id, identity.name) == (str(BOT), "lodger")
    assert (application.id, application.reads_content, application.sees_members) == (str(BOT), True, False)
    assert (gateway.url, gateway.starts_left, gateway.starts_total) == (world.server.gateway_url, 1000, 1000)
    assert gateway.resets_after > timedelta(0)


async def test_places_are_read(world):
    first = world.server.user_says(GENERAL, ALICE, "one")
    thread = world.server.says_in_new_thread(GENERAL, ALICE, "in it", at=first)

    assert (await world.api.channel(GENERAL_ID))["name"] == "general"
    assert [found["id"] for found in await world.api.active_threads(str(GUILD))] == [str(thread)]
    assert [guild["id"] for guild in await world.api.guilds()] == [str(GUILD)]
    assert (await world.api.guild(str(GUILD)))["name"] == "Lodge"
    assert (await world.api.member(str(GUILD), str(BOT)))["user"]["id"] == str(BOT)
    assert GENERAL_ID in {channel["id"] for channel in await world.api.channels(str(GUILD))}


async def test_a_history_comes_oldest_first_from_a_message_on(world):
    said = [world.server.user_says(GENERAL, ALICE, str(number)) for number in range(6)]

    async def texts(**query):
        return [message["content"] for message in await world.api.messages(GENERAL_ID, **query)]

    assert await texts() == ["0", "1", "2", "3", "4", "5"]
    assert await texts(after=str(said[1]), limit=2) == ["2", "3"]
    assert await texts(limit=2) == ["4", "5"]


async def test_leaving_a_server_is_done_once(world):
    await world.api.leave(str(GUILD))
    with pytest.raises(SendRejected, match="not in that server"):
        await world.api.leave(str(GUILD))


async def test_commands_are_read_and_replaced(world):
    command = {"name": "status", "description": "What I do", "type": 1, "options": []}
    await world.api.set_commands(str(BOT), [command])

    assert [found["name"] for found in await world.api.commands(str(BOT))] == ["status"]


async def test_every_payload_of_every_kind_mentions_nobody_c17(world):
    loud = {"content": "@everyone <@7001> <@&9300> https://x.org", "allowed_mentions": {"parse": ["everyone"]}}
    message = await world.api.send(GENERAL_ID, loud)
    await world.api.edit(GENERAL_ID, message, loud)
    await world.api.send_files(GENERAL_ID, loud, (Upload(name="a", media_type="text/plain", content=io.BytesIO(b"a")),))
    for call in (
        world.api.respond("5", "tok", {"type": 4, "data": loud}),
        world.api.edit_original(str(BOT), "tok", loud),
        world.api.follow_up(str(BOT), "tok", loud),
    ):
        with pytest.raises(InteractionGone):
            await call

    bodies = [call.body.get("data", call.body) for call in world.server.calls]
    assert len(bodies) == 6
    assert [body["allowed_mentions"] for body in bodies] == [{"parse": [], "replied_user": False}] * 6
    assert [body["flags"] & 4 for body in bodies] == [4] * 6
    assert all(not message.mentions.everyone for message in world.server.visible(GENERAL))


async def test_answers_to_interactions_go_without_the_bots_token_and_tell_nobody_theirs(world, caplog):
    for name in ("", "httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name or None)
    secret = "interaction-secret/with a slash"
    for call in (
        world.api.respond("5", secret, {"type": 6}),
        world.api.edit_original(str(BOT), secret, HELLO),
    ):
        with pytest.raises(InteractionGone) as raised:
            await call
        assert secret not in told(raised.value)

    assert "INTERACTION" in caplog.text
    assert secret[:18] not in caplog.text
    assert [call.ids["token"] for call in world.server.calls if "token" in call.ids] == [secret, secret]


async def test_no_log_line_error_or_repr_holds_the_token_c69(world, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name)
    await world.api.send(GENERAL_ID, HELLO)
    seen = []
    world.server.fault("create_message", Fault.LOST_REQUEST)
    world.server.fail_next("create_message", 400, {"message": f"echo {TOKEN}", "code": 0})
    masking = DiscordApi(TOKEN, world.server.api_base, clock=world.clock, mask=lambda text: text.replace(TOKEN, "***"))
    for _ in range(2):
        with pytest.raises(ChannelError) as raised:
            await masking.send(GENERAL_ID, HELLO)
        seen.append(told(raised.value))
    world.server.account.revoked = True
    with pytest.raises(ChannelDown) as raised:
        await masking.send(GENERAL_ID, HELLO)
    seen += [told(raised.value), repr(masking), str(masking.__dict__), str(masking._http.__dict__), caplog.text]
    seen += [str(record.__dict__) for record in caplog.records]
    await masking.aclose()

    assert [text for text in seen if TOKEN in text or TOKEN[-20:] in text] == []


async def test_the_token_reaches_the_server_without_blanks_and_a_wrong_one_is_refused(world):
    right = DiscordApi(f" {TOKEN}\n", world.server.api_base + "/", clock=world.clock, mask=str)
    wrong = DiscordApi("x.y.z", world.server.api_base, clock=world.clock, mask=str)

    assert (await right.identity()).id == str(BOT)
    with pytest.raises(ChannelDown, match="refused"):
        await wrong.identity()
    await right.aclose()
    await wrong.aclose()


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_a_lost_answer_leaves_the_outcome_open_and_nothing_is_repeated(world, fault):
    world.server.fault("create_message", fault)
    with pytest.raises(SendUnknown):
        await world.api.send(GENERAL_ID, HELLO)

    assert len(world.server.calls_of("create_message")) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_5xx_leaves_the_outcome_open_and_nothing_is_repeated(world, status):
    world.server.fail_next("create_message", status)
    with pytest.raises(SendUnknown):
        await world.api.send(GENERAL_ID, HELLO)

    assert len(world.server.calls_of("create_message")) == 1


@pytest.mark.parametrize("body", [{"hello": "captive portal"}, {"id": 7}, {"id": ""}])
async def test_a_success_that_names_no_message_leaves_the_outcome_open(world, body):
    world.server.fail_next("create_message", 200, body)
    with pytest.raises(SendUnknown):
        await world.api.send(GENERAL_ID, HELLO)


@pytest.mark.parametrize("call", ["messages", "channel"])
async def test_an_answer_of_another_form_is_none(world, call):
    world.server.fail_next("get_messages", 200, {"not": "a list"})
    world.server.fail_next("channel", 200, [])
    with pytest.raises(SendUnknown):
        await (world.api.messages(GENERAL_ID) if call == "messages" else world.api.channel(GENERAL_ID))


async def test_an_outage_is_safe_to_try_again(world):
    await world.server.stop()
    with pytest.raises(SendLimited) as raised:
        await world.api.send(GENERAL_ID, HELLO)
    await world.server.start()

    assert timedelta(0) < raised.value.retry_after <= timedelta(seconds=5)
    assert await world.api.send(GENERAL_ID, HELLO)


async def test_an_answer_that_never_comes_leaves_the_outcome_open_and_other_chats_free(world):
    held = world.server.fault("create_message", Fault.HALF_OPEN)
    short = Timing(answer_timeout=timedelta(milliseconds=50))
    api = DiscordApi(TOKEN, world.server.api_base, clock=world.clock, mask=str, timing=short)
    send = asyncio.create_task(api.send(GENERAL_ID, HELLO))
    await asyncio.wait_for(held.entered.wait(), 30)
    await api.send(RANDOM_ID, HELLO)
    with pytest.raises(SendUnknown):
        await send
    await api.aclose()

    assert world.texts() == []


async def test_a_limit_is_told_and_no_call_goes_out_before_its_end_c15(world):
    world.server.fault("create_message", Fault.FLOODED, seconds=149)
    waits = []
    for _ in range(2):
        with pytest.raises(SendLimited) as raised:
            await world.api.send(GENERAL_ID, HELLO)
        waits.append(raised.value.retry_after.total_seconds())
    await world.api.send(RANDOM_ID, HELLO)

    assert waits == [149, 149]
    assert len(world.server.calls_of("create_message", GENERAL)) == 1
    await world.clock.advance(timedelta(seconds=149))
    await world.api.send(GENERAL_ID, HELLO)
    assert (world.texts(GENERAL), world.texts(RANDOM)) == (["hello"], ["hello"])


async def test_a_limit_on_everything_holds_every_call_c15(world):
    world.server.fault("create_message", Fault.FLOODED, seconds=0.35, is_global=True)
    for channel in (GENERAL_ID, RANDOM_ID):
        with pytest.raises(SendLimited) as raised:
            await world.api.send(channel, HELLO)
        assert raised.value.retry_after == timedelta(seconds=0.35)

    assert len(world.server.calls) == 1
    await world.clock.advance(timedelta(seconds=0.35))
    assert await world.api.send(RANDOM_ID, HELLO)


async def test_a_budget_that_discord_tells_of_is_never_overrun_c15(world):
    world.server.pace.enforced = True
    refused = 0
    for _ in range(12):
        try:
            await world.api.send(GENERAL_ID, HELLO)
        except SendLimited as error:
            refused += 1
            await world.clock.advance(error.retry_after)

    assert refused == 2
    assert {call.status for call in world.server.calls} == {200}


async def test_an_edit_limit_of_old_messages_holds_no_other_edit(world):
    first, second = [await world.api.send(GENERAL_ID, HELLO) for _ in range(2)]
    world.server.fail_next("edit_message", 429, {"message": "old", "code": 30046, "retry_after": 50})
    with pytest.raises(SendLimited):
        await world.api.edit(GENERAL_ID, first, {"content": "a"})
    await world.api.edit(GENERAL_ID, second, {"content": "b"})

    assert world.texts() == ["hello", "b"]


async def test_gone_things_are_told_apart(world):
    with pytest.raises(PlaceGone):
        await world.api.send("12345", HELLO)
    with pytest.raises(MessageGone):
        await world.api.message(GENERAL_ID, "12345")


async def test_many_calls_beside_each_other_are_no_problem(world):
    gates = [world.server.gate_next("create_message") for _ in range(20)]
    sends = [asyncio.create_task(world.api.send(GENERAL_ID, HELLO)) for _ in gates]
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
    with WatchedFile(path) as content:
        upload = Upload(name='b"i\u00e9g\n.bin', media_type="application/x-thing", content=content)
        await world.api.send_files(GENERAL_ID, HELLO, (upload,))
        assert len(content.asked) > 40
        assert 0 < min(content.asked) <= max(content.asked) <= 65_536
    (sent,) = world.server.visible(GENERAL)

    assert (sent.text, sent.attachments[0].size, sent.attachments[0].media_type) == (
        "hello",
        3_000_000,
        "application/x-thing",
    )


async def test_the_time_of_discord_is_told_or_is_not(world):
    assert await world.api.server_time() is not None
    await world.server.stop()
    assert await world.api.server_time() is None


def test_a_route_without_a_place_has_one_budget():
    assert Route(method="GET", path="/users/@me").place == ""
