"""Events over HTTP, signed and posted as Slack does: who is believed, and what is answered."""

import asyncio
import inspect
import json
from datetime import timedelta

import aiohttp
import pytest
from slack_sdk.signature import SignatureVerifier

from channels.health import Health
from channels.slack.webhook import Endpoint
from core.contracts.addresses import CommandBody
from core.contracts.errors import ChannelDown, StorageFull, StoreUnavailable
from tests.channels.slack.taking import posted_to
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_http import Signing
from tests.platforms.slack_server import SIGNING_SECRET
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, BOB_DM, ROOM

PRESSED = {"type": "block_actions", "user": {"id": ALICE}, "actions": [{"value": "t"}], "trigger_id": "1.2"}


def told(text, ts="1700000001.000100", event_id="Ev0001"):
    event = {"type": "message", "channel": ROOM, "channel_type": "channel", "user": ALICE, "ts": ts, "text": text}
    return {"type": "event_callback", "team_id": "T0TEAM", "event_id": event_id, "event": event | {"event_ts": ts}}


async def call(app, *, method="POST", headers=(), chunks=(b"",), kind="http"):
    """Call an ASGI application by hand; a chunk that is None hangs up. Return the status, and what is left of them."""
    left, answered = list(chunks), []

    async def receive():
        part = left.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message):
        answered.append(message)

    await app({"type": kind, "path": "/slack/events", "method": method, "headers": list(headers)}, receive, send)
    return (answered[0]["status"] if answered else None), left


async def test_an_event_is_answered_when_it_is_stored_and_not_before():
    async with posted_to() as (world, url):
        await world.listen()
        world.server.posts.url = url
        world.sink.gate = asyncio.Event()
        world.server.user_says(ALICE_DM, ALICE, "hello")
        await world.until(lambda: world.sink.held)
        (delivery,) = world.server.deliveries.all
        command = world.server.runs_command("/lodger", "status")
        await world.until(lambda: len(world.sink.held) == 2)
        await world.pass_time(1)
        await world.server.acked(command)
        assert delivery.acked_at is None
        world.sink.gate.set()
        await world.server.acked(delivery)

        assert delivery.statuses == [200]
        assert "hello" in [getattr(body, "text", "") for body in world.sink.bodies]


@pytest.mark.parametrize("error", [StoreUnavailable("locked"), StorageFull("disk full")])
async def test_what_could_not_be_stored_is_answered_with_an_error_and_comes_again(error):
    async with posted_to() as (world, url):
        await world.listen()
        world.server.posts.url = url
        world.sink.errors = [error]
        world.server.user_says(ALICE_DM, ALICE, "hello")
        await world.acked()
        (delivery,) = world.server.deliveries.all

        assert (delivery.statuses, delivery.retries) == ([503, 200], ["http_error"])
        assert world.sink.texts == ["hello"]


@pytest.mark.parametrize("fault", [Fault.LOST_RESPONSE, Fault.DUPLICATED])
async def test_an_event_that_slack_posts_again_is_one_c01(fault):
    async with posted_to() as (world, url):
        await world.listen()
        world.server.posts.url = url
        world.server.fault("event", fault)
        world.server.user_says(ROOM, ALICE, "hello")
        await world.until(lambda: len(world.sink.offers) == 2)
        await world.acked()

        assert world.sink.texts == ["hello"]


async def test_the_only_attempt_that_arrives_may_be_a_retry():
    async with posted_to() as (world, url):
        await world.listen()
        answers = [
            await world.server.post_event(url, told("hello"), retry=retry)
            for retry in ("2:http_timeout", "3:http_timeout")
        ]

        assert [answer.status for answer in answers] == [200, 200]
        assert (world.sink.texts, len(world.sink.offers)) == (["hello"], 2)


async def test_acts_and_commands_come_the_same_way():
    async with posted_to() as (world, url):
        await world.listen()
        world.server.posts.url = url
        command = world.server.runs_command("/lodger", "status")
        home = world.server.opens_home(ALICE)
        await world.acked()

        assert (command.statuses, home.statuses) == ([200], [200])
        assert [body.text for body in world.sink.bodies if isinstance(body, CommandBody)] == ["/status"]
        assert len(world.sink.events) == 2


async def test_a_command_that_could_not_be_stored_is_answered_with_an_error():
    async with posted_to() as (world, url):
        await world.listen()
        world.server.posts.url = url
        world.sink.errors = [StoreUnavailable("locked")]
        command = world.server.runs_command("/lodger", "status")
        await world.server.wait_for(lambda: command.is_lost)

        assert command.statuses == [503]


# Proofs


@pytest.mark.parametrize(
    "signing",
    [
        Signing(secret="another"),
        Signing(secret=SIGNING_SECRET[:-1]),
        Signing(left_out=True),
        Signing(age=timedelta(minutes=6)),
        Signing(age=-timedelta(minutes=6)),
        Signing(timestamp="soon"),
        Signing(timestamp="-1"),
        Signing(timestamp="²"),
        Signing(timestamp="1e9"),
    ],
)
@pytest.mark.parametrize("kind", ["events_api", "interactive", "slash_commands"])
async def test_who_does_not_prove_to_be_slack_is_refused_and_heard_by_nobody(signing, kind, caplog):
    async with posted_to() as (world, url):
        await world.listen()
        payload = {
            "events_api": told("hello"),
            "interactive": PRESSED,
            "slash_commands": {"command": "/lodger", "user_id": ALICE, "channel_id": ROOM, "trigger_id": "1.2"},
        }[kind]
        if signing.timestamp == "²":
            async with aiohttp.ClientSession() as session:
                headers = {"X-Slack-Request-Timestamp": "²", "X-Slack-Signature": "v0=0"}
                async with session.post(url, json=payload, headers=headers) as response:
                    status = response.status
        else:
            status = (await world.server.post_event(url, payload, kind, signing=signing)).status
        signed = await world.server.post_event(url, told("signed"))

        assert (status, signed.status) == (401, 200)
        assert world.sink.texts == ["signed"]
        assert "Traceback" not in caplog.text


async def test_a_signature_holds_for_four_minutes():
    async with posted_to() as (world, url):
        await world.listen()
        answer = await world.server.post_event(url, told("hello"), signing=Signing(age=timedelta(minutes=4)))

        assert answer.status == 200


async def test_a_signature_of_another_body_proves_nothing():
    async with posted_to() as (world, url):
        await world.listen()
        posts = world.server.posts
        headers = posts._signature(json.dumps(told("hello")).encode(), Signing())
        async with aiohttp.ClientSession() as session:
            async with session.post(url, data=json.dumps(told("forged")), headers=headers) as response:
                forged = response.status
            async with session.post(url, data=json.dumps(told("hello")), headers=headers) as response:
                genuine = response.status

        assert (forged, genuine) == (401, 200)
        assert world.sink.texts == ["hello"]


def test_signatures_are_compared_in_constant_time():
    assert "compare_digest" in inspect.getsource(SignatureVerifier.is_valid)


@pytest.mark.parametrize("secret", [None, "", " \n"])
async def test_without_a_secret_nobody_is_believed(secret):
    async with posted_to(signing_secret=secret) as (world, url):
        with pytest.raises(ChannelDown, match="signing secret"):
            await world.channel.run(world.sink)
        answer = await world.server.post_event(url, told("hello"), signing=Signing(secret="-"))

        assert answer.status == 503


async def test_the_address_is_proved_to_be_this_hosts_and_to_slack_alone():
    async with posted_to() as (world, url):
        await world.listen()
        answer = await world.server.verify_url(url)
        challenge = {"type": "url_verification", "challenge": "3eZbrw1aB"}
        forged = await world.server.post_event(url, challenge, signing=Signing(secret="another"))

        assert (answer.status, "3eZbrw1aB" in answer.text) == (200, True)
        assert (forged.status, "3eZbrw1aB" in forged.text) == (401, False)
        assert world.sink.offers == []


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"[]", b"7", b"null", b"{", b'{"user":7}', b'{"event":{"channel":7}}', b"payload=7", b"a=%ff"],
)
@pytest.mark.parametrize("signed", [True, False])
async def test_a_body_that_is_none_of_slacks_breaks_nothing(body, signed, caplog):
    async with posted_to() as (world, url):
        await world.listen()
        headers = world.server.posts._signature(body, Signing(secret="" if signed else "another"))
        async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
            status = response.status
        after = await world.server.post_event(url, told("hello"))

        assert status in {200, 401} if signed else status == 401
        assert after.status == 200
        assert world.sink.texts == ["hello"]
        assert "Traceback" not in caplog.text


# Before and after


async def test_while_it_does_not_listen_slack_is_told_to_come_again():
    async with posted_to() as (world, url):
        early = await world.server.post_event(url, told("early"))
        task = await world.listen()
        await world.stop(task)
        late = await world.server.post_event(url, told("late"))
        world.server.posts.url = url
        world.server.user_says(BOB_DM, BOB, "hello")
        (delivery,) = world.server.deliveries.all
        await world.server.wait_for(lambda: len(delivery.retries) == 2)
        await world.listen()
        await world.pass_time(60, step=10)
        await world.acked()

        assert (early.status, late.status) == (503, 503)
        assert delivery.statuses == [503, 503, 200]
        assert world.sink.texts == ["hello"]


async def test_it_is_healthy_while_it_listens():
    async with posted_to() as (world, _):
        before = await world.channel.probe()
        task = await world.listen()
        await world.stop(task)
        after = await world.channel.probe()

        assert not before.healthy
        assert (after.healthy, "does not listen" in after.detail) == (False, True)


async def test_only_posts_are_taken():
    app = Endpoint(SIGNING_SECRET, Health("Slack"))
    headers = [(b"X-Slack-Request-Timestamp", b"1700000000")]

    assert await call(app, method="GET", headers=headers) == (401, [b""])
    assert await call(app, headers=headers) == (503, [b""])
    assert await call(app, kind="lifespan") == (None, [b""])


@pytest.mark.parametrize(
    ("chunks", "left"), [([b"x" * 600_000, b"x" * 600_000, b"never read"], [b"never read"]), ([b"x", None], [])]
)
async def test_a_body_without_end_is_not_read_to_the_end_nor_one_that_is_cut_off(chunks, left):
    app = Endpoint(SIGNING_SECRET, Health("Slack"))
    listening = asyncio.Event()
    task = asyncio.create_task(app.run(None, team="T0TEAM", connected=listening.set))
    await listening.wait()
    answer = await call(app, headers=[(b"X-Slack-Request-Timestamp", b"1700000000")], chunks=chunks)
    task.cancel()
    await asyncio.wait({task})

    assert answer == (413, left)
