"""HTTP mode: signed posts to a small app, tried again until one is taken."""

import asyncio
import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from aiohttp import web

from tests.platforms.slack_faults import Fault
from tests.platforms.slack_http import Signing
from tests.platforms.slack_server import SIGNING_SECRET
from tests.platforms.slack_workspace import ALICE, ALICE_DM, ROOM

pytest_plugins = ["tests.platforms.slack_client"]


class App:
    """An app that answers with what is in `answers`, then with 200; `gate` holds it."""

    def __init__(self):
        self.received = []
        self.answers = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""

    async def serve(self, request):
        body = await request.read()
        self.received.append((request.headers, body, dict(await request.post())))
        await self.gate.wait()
        return self.answers.pop(0) if self.answers else web.Response()

    def signed_right(self, number=-1):
        headers, body, _ = self.received[number]
        base = b"v0:" + headers["X-Slack-Request-Timestamp"].encode() + b":" + body
        digest = hmac.new(SIGNING_SECRET.encode(), base, hashlib.sha256).hexdigest()
        return headers["X-Slack-Signature"] == f"v0={digest}"


@pytest.fixture
async def app():
    app = App()
    application = web.Application()
    application.router.add_post("/slack/events", app.serve)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    app.url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    yield app
    await runner.cleanup()


async def test_events_are_posted_as_signed_json(slack, app):
    slack.server.posts.url = app.url
    ts = slack.server.user_says(ALICE_DM, ALICE, "hällo")
    (delivery,) = slack.server.deliveries.all
    await slack.server.acked(delivery)
    headers, body, _ = app.received[0]

    assert app.signed_right()
    assert headers["X-Slack-Request-Timestamp"] == ts.partition(".")[0]
    assert headers["Content-Type"] == "application/json"
    assert "X-Slack-Retry-Num" not in headers
    assert json.loads(body)["event"]["text"] == "hällo"


async def test_interactions_and_commands_are_posted_as_signed_forms_and_their_answers_read(slack, app):
    slack.server.posts.url = app.url
    app.answers = [web.json_response({"text": "json"}), web.Response(text="plain"), web.Response()]
    for expected in ({"text": "json"}, {"text": "plain"}, {}):
        assert await slack.server.acked(slack.server.runs_command("/lodger", "help me")) == expected
    shortcut = slack.server.uses_shortcut("ask", ALICE)
    await slack.server.acked(shortcut)

    assert app.received[0][2] | {"command": "/lodger", "text": "help me", "user_id": ALICE} == app.received[0][2]
    assert json.loads(app.received[3][2]["payload"])["callback_id"] == "ask"
    assert all(app.signed_right(number) for number in range(4))
    assert [message.text for message in slack.server.ephemeral(ROOM)] == ["json", "plain"]


async def test_the_address_is_verified_by_a_challenge(slack, app):
    app.answers = [web.json_response({"challenge": "3eZbrw1aB"})]
    answer = await slack.server.verify_url(app.url)

    assert answer.content == {"challenge": "3eZbrw1aB"}
    assert json.loads(app.received[0][1])["type"] == "url_verification"
    assert app.signed_right()


@pytest.mark.parametrize(
    ("signing", "signed_right", "timestamp"),
    [
        (Signing(), True, "1767268800"),
        (Signing(secret="other"), False, "1767268800"),
        (Signing(age=timedelta(seconds=301)), True, "1767268499"),
        (Signing(timestamp="yesterday"), True, "yesterday"),
    ],
)
async def test_a_signature_can_be_wrong_or_old(slack, app, signing, signed_right, timestamp):
    answer = await slack.server.post_event(app.url, {"type": "event_callback"}, signing=signing, retry="2:http_error")
    headers = app.received[0][0]

    assert app.signed_right() is signed_right
    assert headers["X-Slack-Request-Timestamp"] == timestamp
    assert (headers["X-Slack-Retry-Num"], headers["X-Slack-Retry-Reason"]) == ("2", "http_error")
    assert answer.is_taken


async def test_a_signature_can_be_left_out(slack, app):
    await slack.server.post_event(app.url, {}, signing=Signing(left_out=True))

    assert "X-Slack-Signature" not in app.received[0][0]


async def test_an_event_is_tried_again_at_once_after_a_minute_and_after_five(slack, app):
    slack.server.posts.url = app.url
    app.answers = [web.Response(status=status) for status in (500, 503, 404)]
    slack.server.user_says(ALICE_DM, ALICE, "hi")
    (delivery,) = slack.server.deliveries.all
    for tries, pause in ((2, 60), (3, 300)):
        await slack.server.wait_for(lambda tries=tries: len(delivery.retries) == tries)
        await slack.server.wait_for(lambda: slack.clock.sleeping)
        await slack.pass_time(pause - 1)
        assert len(app.received) == tries
        await slack.pass_time(1)
    await slack.server.acked(delivery)

    assert delivery.statuses == [500, 503, 404, 200]
    told = [(headers.get("X-Slack-Retry-Num"), headers.get("X-Slack-Retry-Reason")) for headers, _, _ in app.received]
    assert told == [(None, None), *((str(number), "http_error") for number in (1, 2, 3))]


async def test_an_event_is_lost_after_three_retries_or_when_the_app_wants_none(slack, app):
    slack.server.posts.url = app.url
    app.answers = [web.Response(status=500, headers={"X-Slack-No-Retry": "1"})]
    slack.server.user_says(ALICE_DM, ALICE, "unwanted")
    (unwanted,) = slack.server.deliveries.all
    await slack.server.wait_for(lambda: unwanted.is_lost)
    app.answers = [web.Response(status=500) for _ in range(4)]
    slack.server.user_says(ALICE_DM, ALICE, "hopeless")
    hopeless = slack.server.deliveries.all[-1]
    for tries, pause in ((2, 60), (3, 300)):
        await slack.server.wait_for(lambda tries=tries: len(hopeless.retries) == tries)
        await slack.server.wait_for(lambda: slack.clock.sleeping)
        await slack.pass_time(pause)
    await slack.server.wait_for(lambda: hopeless.is_lost)

    assert (unwanted.statuses, hopeless.statuses) == ([500], [500] * 4)


async def test_what_happened_before_the_address_was_known_comes_as_a_retry(slack, app):
    slack.server.user_says(ALICE_DM, ALICE, "early")
    slack.server.posts.url = app.url
    await slack.server.acked(slack.server.deliveries.all[0])

    assert app.received[0][0]["X-Slack-Retry-Num"] == "1"


async def test_a_command_is_never_tried_again(slack, app):
    slack.server.posts.url = app.url
    app.answers = [web.Response(status=500)]
    command = slack.server.runs_command("/lodger")
    await slack.server.wait_for(lambda: command.is_lost)

    assert len(app.received) == 1


async def test_three_seconds_without_an_answer_are_a_timeout(slack, app):
    slack.server.posts.url = app.url
    app.gate.clear()
    slack.server.user_says(ALICE_DM, ALICE, "hi")
    (delivery,) = slack.server.deliveries.all
    await slack.server.wait_for(lambda: slack.clock.sleeping)
    await slack.pass_time(3)
    await slack.server.wait_for(lambda: delivery.retries)
    app.gate.set()
    await slack.server.acked(delivery)

    assert delivery.retries == ["http_timeout"]


async def test_an_app_that_is_not_there_is_a_failed_connection(slack):
    slack.server.posts.url = "http://127.0.0.1:9/slack/events"
    slack.server.user_says(ALICE_DM, ALICE, "hi")
    (delivery,) = slack.server.deliveries.all
    await slack.server.wait_for(lambda: len(delivery.retries) == 2)

    assert delivery.retries == ["connection_failed"] * 2
    assert delivery.statuses == [0, 0]


@pytest.mark.parametrize(
    ("fault", "texts"),
    [
        (Fault.DUPLICATED, {"one": 2, "two": 1}),
        (Fault.LOST_RESPONSE, {"one": 2, "two": 1}),
        (Fault.LOST_REQUEST, {"one": 1, "two": 1}),
        (Fault.REORDERED, {"one": 1, "two": 1}),
    ],
)
async def test_posts_come_twice_or_unheard_or_in_another_order(slack, app, fault, texts):
    slack.server.posts.url = app.url
    slack.server.fault("event", fault)
    for text in texts:
        slack.server.user_says(ALICE_DM, ALICE, text)
    deliveries = slack.server.deliveries.all
    await slack.server.wait_for(lambda: all(d.acked_at is not None for d in deliveries))
    await slack.server.wait_for(lambda: len(app.received) == sum(texts.values()))
    received = [json.loads(body)["event"]["text"] for _, body, _ in app.received]

    assert {text: received.count(text) for text in texts} == texts
