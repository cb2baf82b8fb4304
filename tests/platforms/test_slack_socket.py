"""Socket Mode by a plain WebSocket client: tickets, envelopes, acknowledgements, refreshes, breakdowns."""

import asyncio
import json

import aiohttp
import pytest

from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, ALICE_DM, ROOM

pytest_plugins = ["tests.platforms.slack_client"]


class App:
    """An app that opens sockets and acknowledges only what it is told to."""

    def __init__(self, slack, session):
        self.slack = slack
        self.session = session
        self.sockets = []

    async def link(self):
        opened = await self.slack.result("apps.connections.open", token=self.slack.server.app_token)
        return opened["url"]

    async def open(self):
        socket = await self.session.ws_connect(await self.link(), autoping=False)
        self.sockets.append(socket)  # one that nobody holds is closed
        hello = await receive(socket)
        assert hello["type"] == "hello"
        return socket


async def receive(socket):
    return json.loads((await asyncio.wait_for(socket.receive(), 30)).data)


async def ack(socket, envelope, **payload):
    answer = {"envelope_id": envelope["envelope_id"]} | ({"payload": payload} if payload else {})
    await socket.send_str(json.dumps(answer))


@pytest.fixture
async def app(slack):
    async with aiohttp.ClientSession() as session:
        yield App(slack, session)


async def test_an_event_comes_in_an_envelope_and_its_acknowledgement_is_noted(slack, app):
    socket = await app.open()
    ts = slack.server.user_says(ALICE_DM, ALICE, "hi")
    envelope = await receive(socket)
    (delivery,) = slack.server.deliveries.all
    assert (envelope["type"], envelope["retry_attempt"], envelope["retry_reason"]) == ("events_api", 0, "")
    assert envelope["accepts_response_payload"] is False
    assert envelope["payload"]["event"]["ts"] == ts
    assert delivery.acked_at is None
    await slack.pass_time(2)
    await ack(socket, envelope)

    assert await slack.server.acked(delivery) == {}
    assert delivery.latency == 2


async def test_an_answer_comes_with_the_acknowledgement_of_a_command(slack, app):
    socket = await app.open()
    delivery = slack.server.runs_command("/lodger", "help")
    envelope = await receive(socket)
    await ack(socket, envelope, text="There is help.")

    assert envelope["accepts_response_payload"]
    assert "retry_attempt" not in envelope
    assert await slack.server.acked(delivery) == {"text": "There is help."}
    assert [message.text for message in slack.server.ephemeral(ROOM, ALICE)] == ["There is help."]


async def test_only_the_first_acknowledgement_counts(slack, app):
    socket = await app.open()
    delivery = slack.server.runs_command("/lodger")
    envelope = await receive(socket)
    await ack(socket, envelope, text="first")
    await slack.server.acked(delivery)
    await slack.pass_time(1)
    await ack(socket, envelope, text="second")
    await slack.server.wait_for(lambda: len(slack.server.sockets.open[0].received) == 2)

    assert (delivery.answer, delivery.latency) == ({"text": "first"}, 0)
    assert [message.text for message in slack.server.ephemeral(ROOM)] == ["first"]


async def test_a_ticket_opens_one_socket(slack, app):
    link = await app.link()
    await app.session.ws_connect(link)
    for url in (link, link.partition("?")[0]):
        with pytest.raises(aiohttp.WSServerHandshakeError) as error:
            await app.session.ws_connect(url)

        assert error.value.status == 403


async def test_events_go_to_the_open_sockets_by_turns(slack, app):
    first, second = await app.open(), await app.open()
    for text in ("one", "two"):
        slack.server.user_says(ALICE_DM, ALICE, text)
    envelopes = [await receive(socket) for socket in (first, second)]

    assert {envelope["payload"]["event"]["text"] for envelope in envelopes} == {"one", "two"}


async def test_an_eleventh_socket_is_one_too_many(slack, app):
    for _ in range(10):
        await app.open()
    socket = await app.session.ws_connect(await app.link())

    assert (await receive(socket))["reason"] == "too_many_websockets"


async def test_what_was_not_acknowledged_is_sent_again_as_a_retry_in_another_envelope(slack, app):
    socket = await app.open()
    slack.server.user_says(ALICE_DM, ALICE, "hi")
    first = await receive(socket)
    slack.server.redeliver()
    second = await receive(socket)
    await ack(socket, first)
    (delivery,) = slack.server.deliveries.all
    await slack.server.acked(delivery)
    slack.server.redeliver()

    assert (second["retry_attempt"], second["retry_reason"]) == (1, "timeout")
    assert second["envelope_id"] != first["envelope_id"]
    assert second["payload"] == first["payload"]
    assert delivery.attempts == 2


async def test_what_happens_while_no_socket_is_open_waits_for_one_or_is_lost(slack, app):
    slack.server.user_says(ALICE_DM, ALICE, "early")
    command = slack.server.runs_command("/lodger")
    assert command.is_lost
    socket = await app.open()
    assert (await receive(socket))["retry_attempt"] == 1
    await socket.close()
    await slack.server.wait_for(lambda: not slack.server.sockets.open)
    slack.server.user_says(ALICE_DM, ALICE, "missed")
    slack.server.deliveries.forget_waiting()
    slack.server.user_says(ALICE_DM, ALICE, "late")

    assert (await receive(await app.open()))["payload"]["event"]["text"] == "late"
    assert [delivery.event["text"] for delivery in slack.server.deliveries.all if delivery.event and delivery.is_lost]


async def test_a_refresh_asks_for_another_socket_and_sends_no_more_through_the_old_one(slack, app):
    old = await app.open()
    slack.server.sockets.refresh()
    asked = await receive(old)
    slack.server.user_says(ALICE_DM, ALICE, "hi")
    new = await app.open()

    assert (asked["type"], asked["reason"]) == ("disconnect", "refresh_requested")
    assert (await receive(new))["payload"]["event"]["text"] == "hi"


async def test_a_warning_alone_changes_nothing_yet(slack, app):
    socket = await app.open()
    slack.server.sockets.refresh("warning")
    assert (await receive(socket))["reason"] == "warning"
    slack.server.user_says(ALICE_DM, ALICE, "hi")

    assert (await receive(socket))["payload"]["event"]["text"] == "hi"


async def test_a_connection_can_end_without_a_word(slack, app):
    socket = await app.open()
    slack.server.sockets.cut()
    message = await asyncio.wait_for(socket.receive(), 30)

    assert message.type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR}
    await slack.server.wait_for(lambda: not slack.server.sockets.open)


async def test_pings_are_answered_and_sent(slack, app):
    socket = await app.open()
    await socket.ping(b"sdk-ping-pong:1")
    pong = await asyncio.wait_for(socket.receive(), 30)
    await slack.server.sockets.ping()
    ping = await asyncio.wait_for(socket.receive(), 30)

    assert (pong.type, bytes(pong.data)) == (aiohttp.WSMsgType.PONG, b"sdk-ping-pong:1")
    assert ping.type is aiohttp.WSMsgType.PING
    assert slack.server.sockets.open[0].pings == 1


async def test_a_deaf_socket_stays_open_and_nothing_comes_through_it(slack, app):
    socket = await app.open()
    slack.server.sockets.deafen()
    slack.server.user_says(ALICE_DM, ALICE, "unheard")
    await socket.ping(b"are you there")
    await slack.server.wait_for(lambda: slack.server.sockets.open[0].pings)
    await slack.server.sockets.ping()
    waiting = asyncio.ensure_future(socket.receive())
    await slack.server.stop()
    message = await asyncio.wait_for(waiting, 30)

    assert message.type not in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.PONG, aiohttp.WSMsgType.PING}


async def test_envelopes_come_twice_in_another_order_late_or_never(slack, app):
    socket = await app.open()

    async def said(*texts):
        for text in texts:
            slack.server.user_says(ALICE_DM, ALICE, text)

    slack.server.fault("envelope", Fault.DUPLICATED)
    await said("one")
    slack.server.fault("envelope", Fault.REORDERED)
    await said("two", "three")
    slack.server.fault("envelope", Fault.LOST_REQUEST)
    await said("four")
    late = slack.server.fault("envelope", Fault.SLOW, seconds=9)
    await said("five")
    await asyncio.wait_for(late.entered.wait(), 30)
    await slack.pass_time(9)
    received = [(await receive(socket))["payload"]["event"]["text"] for _ in range(5)]

    assert received == ["one", "one", "three", "two", "five"]


async def test_an_acknowledgement_can_be_lost_and_an_unknown_one_is_kept_apart(slack, app):
    socket = await app.open()
    slack.server.fault("ack", Fault.LOST_REQUEST)
    slack.server.user_says(ALICE_DM, ALICE, "hi")
    await ack(socket, await receive(socket))
    await socket.send_str(json.dumps({"envelope_id": "nobody's"}))
    await slack.server.wait_for(lambda: slack.server.sockets.unknown_acks)

    assert slack.server.deliveries.all[0].acked_at is None
    assert len(slack.server.sockets.open[0].received) == 2


@pytest.mark.parametrize(
    ("fault", "times"),
    [(Fault.ANSWERED, 1), (Fault.FLOODED, 1), (Fault.LOST_REQUEST, 2)],  # aiohttp asks again when nothing came
)
async def test_a_socket_can_be_refused(slack, app, fault, times):
    slack.server.fault("link", fault, seconds=7, times=times)
    with pytest.raises(aiohttp.ClientError):
        await app.session.ws_connect(await app.link())

    assert slack.server.sockets.open == []
    assert await app.open()


async def test_an_outage_ends_the_sockets_and_the_next_one_gets_what_was_said_meanwhile(slack, app):
    await app.open()
    await slack.server.stop()
    slack.server.user_says(ALICE_DM, ALICE, "during the outage")
    await slack.server.start()

    assert (await receive(await app.open()))["payload"]["event"]["text"] == "during the outage"
