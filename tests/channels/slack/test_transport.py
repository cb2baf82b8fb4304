import asyncio
import logging
import traceback
from datetime import timedelta

import pytest

from channels.slack.errors import ActGone
from channels.slack.limits import PAGE_LIMIT, Timing
from channels.slack.outbound import MessageCall
from channels.slack.transport import SlackApi
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendRejected, SendUnknown
from tests.channels.slack.sending import answering, opened
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_server import APP_TOKEN, TOKEN
from tests.platforms.slack_workspace import ALICE, BOB, PRIVATE, ROOM, TRIO

HELLO = MessageCall(channel=ROOM, text="hello")


def told(error):
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


async def failure_of(call):
    with pytest.raises(ChannelError) as raised:
        await call
    return told(raised.value)


async def test_the_app_knows_who_it_is_and_what_it_may_do():
    async with opened() as scene:
        app = await scene.api.identity()

    assert (app.team, app.user, app.bot, app.name, app.workspace) == ("T0TEAM", "U0BOT", "B0BOT", "lodger", "Lodgers")
    assert {"chat:write", "files:read"} <= app.scopes


async def test_people_groups_and_places_are_looked_up():
    async with opened() as scene:
        assert (await scene.api.user(ALICE))["name"] == "alice"
        assert [group["handle"] for group in await scene.api.user_groups()] == ["ops"]
        assert await scene.api.members_of_group("S0OPS") == (ALICE,)
        assert (await scene.api.channel(PRIVATE))["is_private"]
        assert {channel["id"] for channel in await scene.api.joined_channels()} == {ROOM, PRIVATE, "C0SHARED", TRIO}
        with pytest.raises(SendRejected):
            await scene.api.user("U0NOBODY")


async def test_a_post_that_is_dropped_is_made_once_and_its_outcome_is_open():
    async with opened() as scene:
        scene.server.fault("chat.postMessage", Fault.LOST_RESPONSE)
        with pytest.raises(SendUnknown):
            await scene.api.show(HELLO)

        assert len(scene.server.calls_of("chat.postMessage")) == 1
        assert len(scene.server.visible(ROOM)) == 1


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 502, "body": "<html>"}, {"status": 200, "body": "<html>"}]
)
async def test_an_answer_that_is_none_of_slacks_leaves_the_outcome_open(fault):
    async with opened() as scene:
        scene.server.fail_next("chat.postMessage", **fault)
        with pytest.raises(SendUnknown):
            await scene.api.show(HELLO)


@pytest.mark.parametrize("body", [b'["a"]', b'"text"', b"5", b"\xff", b"{", b""])
@pytest.mark.parametrize("media_type", ["application/json", "text/plain", "application/gzip", "image/png"])
async def test_an_answer_of_any_kind_leaves_the_outcome_open(body, media_type):
    async with answering(body, media_type) as base:
        api = SlackApi(TOKEN, base, str)
        try:
            with pytest.raises(SendUnknown):
                await api.show(HELLO)
        finally:
            await api.aclose()


async def test_an_answer_that_never_comes_leaves_the_outcome_open():
    async with opened(Timing(answer_timeout=timedelta(milliseconds=50))) as scene:
        scene.server.fault("chat.postMessage", Fault.HALF_OPEN)
        with pytest.raises(SendUnknown):
            await scene.api.show(HELLO)

        assert scene.server.visible(ROOM) == []


async def test_a_server_that_is_not_there_was_surely_sent_nothing():
    async with opened() as scene:
        await scene.server.stop()
        with pytest.raises(SendLimited):
            await scene.api.show(HELLO)
        await scene.server.start()
        await scene.api.show(HELLO)

        assert len(scene.server.visible(ROOM)) == 1


async def test_a_refused_token_is_the_end():
    async with opened() as scene:
        scene.server.revoke()
        with pytest.raises(ChannelDown):
            await scene.api.identity()


async def test_no_proxy_is_taken_from_the_environment(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with opened() as scene:
        assert (await scene.api.identity()).user == "U0BOT"


async def test_links_are_never_shown_as_previews_and_names_never_looked_up_c17():
    async with opened() as scene:
        await scene.api.show(HELLO)
        (call,) = scene.server.calls_of("chat.postMessage")

    assert (call.params["unfurl_links"], call.params["unfurl_media"], call.params["link_names"]) == (
        False,
        False,
        False,
    )
    assert "metadata" not in call.params


async def test_a_history_is_read_page_by_page_and_the_newest_are_kept():
    async with opened() as scene:
        sent = [scene.server.user_says(ROOM, BOB, f"m{number}") for number in range(PAGE_LIMIT + 7)]

        everything = await scene.api.history(ROOM, limit=1000)
        later = await scene.api.history(ROOM, sent[2], limit=1000)
        some = await scene.api.history(ROOM, limit=3)
        many = await scene.api.history(ROOM, limit=PAGE_LIMIT + 3)

    assert [message["ts"] for message in everything] == sent
    assert [message["ts"] for message in later] == sent[3:]
    assert [message["ts"] for message in some] == sent[-3:]
    assert [message["ts"] for message in many] == sent[4:]


async def test_a_thread_is_read_page_by_page_with_its_root_once():
    async with opened() as scene:
        root = scene.server.user_says(ROOM, BOB, "root")
        sent = [scene.server.user_says(ROOM, BOB, f"m{number}", root) for number in range(PAGE_LIMIT + 5)]

        everything = await scene.api.replies(ROOM, root, limit=1000)
        later = await scene.api.replies(ROOM, root, sent[1], limit=1000)
        some = await scene.api.replies(ROOM, root, limit=2)

    assert [message["ts"] for message in everything] == [root, *sent]
    assert [message["ts"] for message in later] == sent[2:]
    assert [message["ts"] for message in some] == sent[-2:]


async def test_all_the_channels_are_listed_page_by_page():
    async with opened() as scene:
        for number in range(PAGE_LIMIT + 5):
            scene.server.workspace.add_channel(f"C{number:04}")

        assert len(await scene.api.joined_channels()) == PAGE_LIMIT + 5 + 4


async def test_an_answer_that_does_not_say_what_it_made_leaves_the_outcome_open():
    async with opened() as scene:
        for method in ("chat.postMessage", "chat.startStream", "files.getUploadURLExternal"):
            scene.server.fail_next(method, 200, {"ok": True})
        with pytest.raises(SendUnknown):
            await scene.api.show(HELLO)
        with pytest.raises(SendUnknown):
            await scene.api.start_stream(ROOM, "1.000001", "x", None)
        with pytest.raises(SendUnknown):
            await scene.api.begin_upload("a", 1)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"", b'{"ok": false, "error": "expired_url"}'])
async def test_a_refused_answer_to_an_act_may_be_of_any_kind(body):
    async with opened() as scene, answering(body, "text/html", status=404) as base:
        with pytest.raises(ActGone if b"expired" in body else SendLimited):
            await scene.api.respond(f"{base}/actions/1", "x")


async def test_one_message_is_found_in_a_channel_and_in_a_thread():
    async with opened() as scene:
        root = scene.server.user_says(ROOM, BOB, "root")
        reply = scene.server.user_says(ROOM, BOB, "reply", root)

        assert (await scene.api.message(ROOM, None, root))["text"] == "root"
        assert (await scene.api.message(ROOM, root, reply))["text"] == "reply"
        assert await scene.api.message(ROOM, None, reply) is None
        assert await scene.api.message(ROOM, root, "1700000000.000001") is None


async def test_an_act_is_answered_to_its_giver_alone_and_as_often_as_slack_allows():
    async with opened() as scene:
        url = scene.server.runs_command("/lodger", "status").payload["response_url"]
        for number in range(5):
            await scene.api.respond(url, f"answer {number}")
        with pytest.raises(ActGone, match="often"):
            await scene.api.respond(url, "one more")

        assert [message.text for message in scene.server.ephemeral(ROOM, ALICE)] == [f"answer {n}" for n in range(5)]
        assert {call.token for call in scene.server.calls_of("respond")} == {""}


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.LOST_RESPONSE, SendUnknown), (Fault.ANSWERED, SendUnknown), (Fault.FLOODED, SendLimited)],
)
async def test_an_answer_to_an_act_may_fail_too(fault, error):
    async with opened() as scene:
        url = scene.server.runs_command("/lodger").payload["response_url"]
        scene.server.fault("respond", fault, seconds=3)
        with pytest.raises(error):
            await scene.api.respond(url, "x")


async def test_leaving_is_done_once_and_being_out_is_no_failure():
    async with opened() as scene:
        for _ in range(2):
            await scene.api.leave(ROOM)
        await scene.api.leave("C0NOWHERE")

        assert not scene.server.workspace.channels[ROOM].has_bot


async def test_a_socket_is_asked_for_with_the_token_of_the_app():
    async with opened() as scene:
        assert (await scene.api.open_socket()).startswith("ws://127.0.0.1:")
        assert scene.server.calls_of("apps.connections.open")[0].token == APP_TOKEN


async def test_slack_tells_the_time_or_nothing():
    async with opened() as scene:
        assert (await scene.api.server_time()).tzinfo is not None
        await scene.server.stop()
        assert await scene.api.server_time() is None


async def test_no_log_line_error_or_repr_holds_a_token_c69(caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("slack_sdk", "aiohttp", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    seen = []
    async with opened(Timing(answer_timeout=timedelta(milliseconds=100))) as scene:
        await scene.api.show(MessageCall(channel=ROOM, text="a text of people"))
        socket = await scene.api.open_socket()
        for fault in (Fault.LOST_RESPONSE, Fault.HALF_OPEN):
            scene.server.fault("chat.postMessage", fault)
            seen.append(await failure_of(scene.api.show(HELLO)))
        scene.server.fail_next("chat.postMessage", 502, {"unexpected": TOKEN})
        seen.append(await failure_of(scene.api.show(HELLO)))
        scene.server.refuse_next("chat.postMessage", "no_text")
        seen.append(await failure_of(scene.api.show(HELLO)))
        scene.server.revoke()
        seen.append(await failure_of(scene.api.identity()))
        await scene.server.stop()
        seen.append(await failure_of(scene.api.show(HELLO)))
        seen += [repr(scene.api), repr(scene.api._connection), caplog.text]
    seen += [str(record.__dict__) for record in caplog.records]

    for secret in (TOKEN[-20:], APP_TOKEN[-20:], "a text of people", socket.partition("ticket=")[2].partition("&")[0]):
        assert [text for text in seen if secret in text] == []


async def test_nothing_is_left_open():
    before = asyncio.all_tasks()
    async with opened() as scene:
        await scene.api.identity()
        session = scene.api._connection.session
    await asyncio.sleep(0)

    assert session.closed
    assert asyncio.all_tasks() == before
