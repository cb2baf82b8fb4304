"""The real SDKs talk to the fake as they do to Slack; what was shown of them elsewhere shows here too."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import ClientError, web
from slack_bolt import BoltResponse
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack_faults import Fault
from tests.platforms.slack_http import Signing
from tests.platforms.slack_workspace import ALICE, ALICE_DM, ROOM, TEAM

pytest_plugins = ["tests.platforms.plugin"]

PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Deny"}, "action_id": "deny", "value": "tok"}
MODAL = {
    "type": "modal",
    "callback_id": "reason",
    "title": {"type": "plain_text", "text": "Why?"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "why",
            "label": {"type": "plain_text", "text": "Why"},
            "element": {"type": "plain_text_input", "action_id": "reason"},
        }
    ],
}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """The SDK takes a proxy from the environment even to loopback, and knows no exceptions from it."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def client(fake_slack, no_proxy):
    return AsyncWebClient(token=fake_slack.token, base_url=fake_slack.api_base)


@pytest.fixture
def app(client):
    return AsyncApp(client=client)


@pytest.fixture
async def connected(app, fake_slack):
    handler = AsyncSocketModeHandler(app, fake_slack.app_token, ping_interval=0.05)  # looks after its socket that often
    await handler.connect_async()
    yield handler
    await handler.close_async()


async def test_a_proxy_in_the_environment_takes_every_call(fake_slack, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(ClientError):
        await AsyncWebClient(token=fake_slack.token, base_url=fake_slack.api_base).auth_test()

    assert fake_slack.calls == []


async def test_messages_are_posted_changed_reacted_to_and_read_back(client, fake_slack):
    mark = {"event_type": "lodger_outbox", "event_payload": {"id": "1"}}
    root = await client.chat_postMessage(channel=ROOM, text="one", metadata=mark, unfurl_links=False)
    await client.chat_postMessage(channel=ROOM, text="two", thread_ts=root["ts"])
    await client.chat_update(channel=ROOM, ts=root["ts"], text="changed")
    await client.reactions_add(channel=ROOM, timestamp=root["ts"], name="eyes")
    thread = await client.conversations_replies(channel=ROOM, ts=root["ts"], include_all_metadata=True)

    assert [message["text"] for message in thread["messages"]] == ["changed", "two"]
    assert thread["messages"][0]["metadata"] == mark
    assert thread["messages"][0]["reactions"][0]["name"] == "eyes"


async def test_pages_are_followed_by_the_client(client, fake_slack):
    for number in range(5):
        fake_slack.user_says(ROOM, ALICE, str(number))
    texts = [
        message["text"]
        async for page in await client.conversations_history(channel=ROOM, limit=2)
        for message in page["messages"]
    ]

    assert texts == ["4", "3", "2", "1", "0"]


async def test_a_limit_is_told_by_an_error_with_its_wait(client, fake_slack):
    fake_slack.flood("chat.postMessage", 30)
    with pytest.raises(SlackApiError) as error:
        await client.chat_postMessage(channel=ROOM, text="a")

    assert error.value.response["error"] == "ratelimited"
    assert error.value.response.headers["Retry-After"] == "30"


@pytest.mark.parametrize(("handlers", "posts"), [(None, 2), ([], 1)])
async def test_the_client_posts_again_after_a_lost_answer_unless_it_is_told_not_to(fake_slack, handlers, posts):
    client = AsyncWebClient(token=fake_slack.token, base_url=fake_slack.api_base, retry_handlers=handlers)
    fake_slack.fault("chat.postMessage", Fault.LOST_RESPONSE, times=2)
    with pytest.raises(ClientError):
        await client.chat_postMessage(channel=ROOM, text="a")

    assert len(fake_slack.visible(ROOM)) == posts


async def test_a_page_instead_of_json_is_an_error(client, fake_slack):
    fake_slack.fail_next("chat.postMessage", 502, "<html>bad gateway</html>")
    with pytest.raises(SlackApiError, match="status: 502"):
        await client.chat_postMessage(channel=ROOM, text="a")


async def test_the_streaming_helper_streams(client, fake_slack):
    root = fake_slack.user_says(ROOM, ALICE, "q")
    stream = await client.chat_stream(
        channel=ROOM, thread_ts=root, recipient_team_id=TEAM, recipient_user_id=ALICE, buffer_size=4
    )
    await stream.append(markdown_text="**one** ")
    await stream.append(markdown_text="two")
    await stream.stop(markdown_text=" three", blocks=[{"type": "actions", "elements": [BUTTON]}])
    (message,) = fake_slack.visible(ROOM, root)

    assert (message.text, message.stream, message.buttons) == ("**one** two three", "streamed", {"Deny": "tok"})


async def test_the_upload_helper_uploads(client, fake_slack):
    root = fake_slack.user_says(ROOM, ALICE, "q")
    answer = await client.files_upload_v2(
        channel=ROOM, thread_ts=root, filename="a.txt", content="content", initial_comment="here"
    )
    (message,) = fake_slack.visible(ROOM, root)

    assert (message.text, [file.data for file in message.files]) == ("here", [b"content"])
    assert answer["files"][0]["id"] == message.files[0].id


async def test_agent_and_home_methods_are_called(client, fake_slack):
    root = fake_slack.user_says(ALICE_DM, ALICE, "q")
    await client.agents_sessions_setStatus(channel_id=ALICE_DM, thread_ts=root, status="processing")
    await client.agents_sessions_rename(channel_id=ALICE_DM, thread_ts=root, title="Trip")
    await client.assistant_threads_setStatus(channel_id=ALICE_DM, thread_ts=root, status="thinks")
    await client.views_publish(user_id=ALICE, view={"type": "home", "blocks": [{"type": "divider"}]})

    assert fake_slack.agents.sessions[ALICE_DM, root].title == "Trip"
    assert fake_slack.agents.status(ALICE_DM, root) == "thinks"
    assert fake_slack.views.homes[ALICE].blocks[0]["type"] == "divider"


async def test_an_event_is_acknowledged_and_answered_over_a_socket(app, fake_slack, connected):
    @app.event("app_mention")
    async def answer(event, say):
        await say(text="hi", thread_ts=event["ts"])

    ts = fake_slack.user_says(ROOM, ALICE, "<@U0BOT> hello")
    (message,) = await fake_slack.wait_for(lambda: fake_slack.visible(ROOM))
    mention = fake_slack.deliveries.of("app_mention")[0]
    await fake_slack.acked(mention)

    assert (message.text, message.thread_ts) == ("hi", ts)
    assert 0 <= mention.latency < 3


async def test_what_breaks_before_the_ack_is_not_acknowledged_and_comes_again(app, fake_slack, connected):
    seen = []

    @app.middleware
    async def note(body, req):
        seen.append(
            (body["event"]["text"], req.headers.get("x-slack-retry-num"), req.headers.get("x-slack-retry-reason"))
        )
        if len(seen) == 1:
            raise RuntimeError("the inbox is closed")
        return BoltResponse(status=200, body="")

    fake_slack.user_says(ALICE_DM, ALICE, "hi")
    await fake_slack.wait_for(lambda: seen)
    (delivery,) = fake_slack.deliveries.all
    assert delivery.acked_at is None
    fake_slack.redeliver()
    await fake_slack.acked(delivery)

    assert seen == [("hi", ["0"], [""]), ("hi", ["1"], ["timeout"])]


async def test_own_messages_come_back_and_are_dropped_by_the_sdk(app, client, fake_slack, connected):
    heard = []

    @app.event("message")
    async def hear(event):
        heard.append(event["text"])

    await client.chat_postMessage(channel=ROOM, text="mine")
    (own,) = fake_slack.deliveries.all
    await fake_slack.acked(own)
    fake_slack.user_says(ROOM, ALICE, "yours")
    await fake_slack.wait_for(lambda: fake_slack.deliveries.all[-1].acked_at is not None)
    while not heard:
        await asyncio.sleep(0)

    assert heard == ["yours"]


async def test_a_press_opens_a_modal_whose_reason_comes_back(app, client, fake_slack, connected):
    @app.action("deny")
    async def ask(ack, body):
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=MODAL)

    @app.view("reason")
    async def take(ack, view):
        text = view["state"]["values"]["why"]["reason"]["value"]
        await (ack() if len(text) > 3 else ack(response_action="errors", errors={"why": "Say more."}))

    ts = (await client.chat_postMessage(channel=ROOM, text="Run?", blocks=[{"type": "actions", "elements": [BUTTON]}]))[
        "ts"
    ]
    fake_slack.presses(ALICE, ROOM, ts, "Deny")
    view = await fake_slack.wait_for(lambda: fake_slack.views.opened(ALICE))
    await fake_slack.acked(fake_slack.submits(ALICE, {"reason": "no"}))
    assert view.errors == {"why": "Say more."}
    await fake_slack.acked(fake_slack.submits(ALICE, {"reason": "not today"}))

    assert fake_slack.views.opened(ALICE) is None


async def test_commands_and_presses_are_answered_in_their_own_ways(app, fake_slack, connected):
    @app.command("/lodger")
    async def run(ack, respond, command):
        await ack(f"{command['text']}: started")
        await respond("done", response_type="in_channel")

    command = fake_slack.runs_command("/lodger", "compact")
    await fake_slack.acked(command)
    await fake_slack.wait_for(lambda: fake_slack.visible(ROOM))

    assert [message.text for message in fake_slack.ephemeral(ROOM, ALICE)] == ["compact: started"]
    assert [message.text for message in fake_slack.visible(ROOM)] == ["done"]


@pytest.mark.parametrize("end", ["refresh", "cut"])
async def test_the_sdk_opens_another_socket_and_nothing_is_lost(app, fake_slack, connected, end):
    @app.middleware
    async def take():
        return BoltResponse(status=200, body="")

    (old,) = fake_slack.sockets.open
    getattr(fake_slack.sockets, end)()
    fake_slack.user_says(ALICE_DM, ALICE, "meanwhile")
    await fake_slack.wait_for(lambda: fake_slack.sockets.open not in ([], [old]))
    fake_slack.redeliver()
    (delivery,) = fake_slack.deliveries.all
    await fake_slack.acked(delivery)

    assert len(fake_slack.calls_of("apps.connections.open")) == 2


@pytest.fixture
async def address(client, fake_slack):
    """Where a Bolt app listens that answers every event."""
    app = AsyncApp(client=client, signing_secret=fake_slack.signing_secret)

    @app.event("message")
    async def hear():
        pass

    runner = web.AppRunner(app.web_app("/slack/events"), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    await runner.cleanup()


async def test_bolt_takes_what_is_posted_and_answers_the_challenge(fake_slack, address):
    fake_slack.posts.url = address
    fake_slack.user_says(ALICE_DM, ALICE, "hi")
    (delivery,) = fake_slack.deliveries.all
    await fake_slack.acked(delivery)
    challenge = await fake_slack.verify_url(address)

    assert delivery.statuses == [200]
    assert challenge.text == '{"challenge": "3eZbrw1aB"}'


async def test_bolt_refuses_an_event_that_it_has_no_listener_for_and_gets_it_again(fake_slack, address):
    fake_slack.posts.url = address
    delivery = fake_slack.deliver({"type": "team_join", "user": {"id": "U0NEW"}})
    await fake_slack.wait_for(lambda: len(delivery.statuses) == 2)

    assert delivery.statuses == [404, 404]
    assert delivery.retries[0] == "http_error"


@pytest.mark.parametrize(
    ("signing", "status"),
    [
        (Signing(secret="other"), 401),
        (Signing(left_out=True), 401),
        (Signing(age=timedelta(seconds=310)), 401),
        (Signing(timestamp="yesterday"), 500),
    ],
)
async def test_bolt_refuses_what_is_signed_wrongly(fake_slack, address, signing, status):
    answer = await fake_slack.post_event(address, {"type": "event_callback", "event": {}}, signing=signing)

    assert answer.status == status
