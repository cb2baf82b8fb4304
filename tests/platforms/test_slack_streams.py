"""Streamed messages, as far as they are documented and as people found them to be."""

import pytest

from tests.platforms.slack_workspace import ALICE, ALICE_DM, ROOM, TEAM

pytest_plugins = ["tests.platforms.slack_client"]

TASK = {"type": "task_update", "id": "1", "title": "Read", "status": "in_progress"}
RECIPIENT = {"recipient_team_id": TEAM, "recipient_user_id": ALICE}
MARK = {"event_type": "lodger_outbox", "event_payload": {"id": "1"}}


async def started(slack, **params):
    """Start a stream below a question in Alice's direct channel; return what names it in later calls."""
    root = slack.server.user_says(ALICE_DM, ALICE, "q")
    answer = await slack.result("chat.startStream", channel=ALICE_DM, thread_ts=root, **params)
    return {"channel": answer["channel"], "ts": answer["ts"]}


async def test_a_stream_grows_until_it_is_stopped(slack):
    at = await started(slack, markdown_text="one ")
    await slack.result("chat.appendStream", markdown_text="two ", **at)
    (message,) = slack.server.visible(ALICE_DM)
    assert (message.text, message.stream) == ("one two ", "streaming")
    answer = await slack.result("chat.stopStream", markdown_text="three", blocks=[{"type": "divider"}], **at)

    assert (message.text, message.stream) == ("one two three", "streamed")
    assert message.blocks == [{"type": "divider", "block_id": "b0"}]
    assert answer["message"]["text"] == "one two three"
    assert await slack.refused("chat.appendStream", markdown_text="x", **at) == "message_not_in_streaming_state"
    assert await slack.refused("chat.stopStream", **at) == "message_not_in_streaming_state"


async def test_chunks_carry_text_tasks_plans_and_blocks(slack):
    at = await started(slack)
    blocks = {"type": "blocks", "blocks": [{"type": "divider"}]}
    chunks = [{"type": "markdown_text", "text": "a"}, TASK, {"type": "plan_update", "title": "Plan"}, blocks]
    await slack.result("chat.appendStream", chunks=chunks, **at)
    (message,) = slack.server.visible(ALICE_DM)

    assert message.text == "a"
    assert [chunk["type"] for chunk in message.chunks] == ["task_update", "plan_update", "blocks"]
    assert [block["type"] for block in message.blocks] == ["divider"]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({}, "no_text"),
        ({"chunks": [{"type": "song", "text": "la"}]}, "invalid_chunks"),
        ({"chunks": [TASK | {"status": "doing"}]}, "invalid_chunks"),
        ({"chunks": [{"type": "blocks", "blocks": [{"type": "marquee"}]}]}, "invalid_blocks"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"markdown_text": "x" * 4001}, "msg_too_long"),
        ({"ts": "1.0", "markdown_text": "a"}, "message_not_found"),
    ],
)
async def test_what_cannot_be_appended_changes_nothing(slack, params, error):
    at = await started(slack, markdown_text="kept")

    assert await slack.refused("chat.appendStream", **at | params) == error
    assert [(m.text, m.stream) for m in slack.server.visible(ALICE_DM)] == [("kept", "streaming")]


async def test_text_and_task_cards_share_one_limit_and_only_the_last_state_of_a_card_counts(slack):
    at = await started(slack, markdown_text="x" * 3000)
    for status in ("in_progress", "complete"):
        await slack.result("chat.appendStream", chunks=[TASK | {"status": status, "details": "d" * 990}], **at)
    card = TASK | {"id": "2", "title": "1234567"}
    assert await slack.refused("chat.appendStream", chunks=[card], **at) == "msg_too_long"
    slack.server.streams.limit_chars = 5000

    assert (await slack.call("chat.appendStream", chunks=[card], **at))["ok"]


async def test_a_stream_in_a_channel_needs_a_recipient(slack):
    root = slack.server.user_says(ROOM, ALICE, "q")
    there = {"channel": ROOM, "thread_ts": root}
    assert await slack.refused("chat.startStream", **there) == "missing_recipient_team_id"
    assert await slack.refused("chat.startStream", recipient_team_id=TEAM, **there) == "missing_recipient_user_id"
    strange = RECIPIENT | {"recipient_user_id": "U0NONE"}
    assert await slack.refused("chat.startStream", **there, **strange) == "user_not_found"
    await slack.result("chat.startStream", **there, **RECIPIENT)

    assert [message.thread_ts for message in slack.server.visible(ROOM)] == [root]


async def test_a_streaming_message_cannot_be_changed_until_it_is_stopped_or_expired(slack):
    at = await started(slack, markdown_text="a")
    assert await slack.refused("chat.update", text="b", **at) == "streaming_state_conflict"
    await slack.pass_time(299)
    await slack.result("chat.appendStream", markdown_text="b", **at)
    await slack.pass_time(1)
    assert await slack.refused("chat.appendStream", markdown_text="c", **at) == "message_not_in_streaming_state"
    assert await slack.refused("chat.stopStream", **at) == "message_not_in_streaming_state"
    await slack.result("chat.update", text="whole", **at)

    assert [(m.text, m.stream) for m in slack.server.visible(ALICE_DM)] == [("whole", "expired")]


async def test_another_message_is_no_stream(slack):
    posted = await slack.post("a")
    of_alice = slack.server.user_says(ROOM, ALICE, "b")

    for ts, error in ((posted, "message_not_in_streaming_state"), (of_alice, "message_not_owned_by_app")):
        assert await slack.refused("chat.appendStream", channel=ROOM, ts=ts, markdown_text="x") == error


async def test_a_stop_sets_metadata_and_the_status_of_the_session(slack):
    at = await started(slack, markdown_text="a")
    (message,) = slack.server.visible(ALICE_DM)
    await slack.result("chat.stopStream", metadata=MARK, session_status="active", **at)

    assert message.metadata == MARK
    assert slack.server.agents.sessions[ALICE_DM, message.thread_ts].status == "active"


async def test_the_stop_button_ends_the_streams_of_a_thread_and_tells_which(slack):
    at = await started(slack, markdown_text="a")
    (message,) = slack.server.visible(ALICE_DM)
    delivery = slack.server.stops_session(ALICE_DM, ALICE, message.thread_ts)

    assert delivery.event["type"] == "agent_session_stopped"
    assert delivery.event["streaming_message_ts"] == [message.ts]
    assert await slack.refused("chat.appendStream", markdown_text="x", **at) == "message_not_in_streaming_state"
    assert slack.server.stops_session(ALICE_DM, ALICE, message.thread_ts).event["streaming_message_ts"] == []


async def test_a_status_line_stands_until_the_next_message_or_for_two_minutes(slack):
    root = slack.server.user_says(ROOM, ALICE, "q")
    there = {"channel_id": ROOM, "thread_ts": root}
    await slack.result("assistant.threads.setStatus", status="thinks", loading_messages=["hm"], **there)
    assert slack.server.agents.status(ROOM, root) == "thinks"
    assert slack.server.agents.loading_messages(ROOM, root) == ["hm"]
    await slack.post("a", thread_ts=root)
    assert slack.server.agents.status(ROOM, root) == ""
    await slack.result("assistant.threads.setStatus", status="thinks again", **there)
    await slack.pass_time(120)
    assert slack.server.agents.status(ROOM, root) == "thinks again"
    await slack.pass_time(1)

    assert slack.server.agents.status(ROOM, root) == ""


async def test_status_lines_and_prompts_have_limits_and_need_their_thread(slack):
    root = slack.server.user_says(ROOM, ALICE, "q")
    there = {"channel_id": ROOM, "thread_ts": root}
    prompt = {"title": "Ask", "message": "What is new?"}
    set_status, set_prompts = "assistant.threads.setStatus", "assistant.threads.setSuggestedPrompts"

    assert await slack.refused(set_status, channel_id=ROOM, thread_ts="1.0", status="a") == "invalid_thread_ts"
    refused = await slack.refused(set_status, status="a", loading_messages=["x"] * 11, **there)
    assert refused == "invalid_arguments"
    assert await slack.refused(set_prompts, prompts=[prompt] * 5, **there) == "invalid_arguments"
    await slack.result(set_prompts, prompts=[prompt] * 4, **there)
    await slack.result(set_prompts, prompts=[prompt], channel_id=ALICE_DM)
    await slack.result("assistant.threads.setTitle", title="News", **there)
    assert slack.server.agents.prompts == {(ROOM, root): [prompt] * 4, (ALICE_DM, ""): [prompt]}
    assert slack.server.agents.titles == {(ROOM, root): "News"}


async def test_a_session_is_made_by_its_first_status_and_renamed_apart(slack):
    there = {"channel_id": ALICE_DM, "thread_ts": "1.1"}
    assert await slack.refused("agents.sessions.rename", title="a", **there) == "session_not_found"
    first = await slack.result("agents.sessions.setStatus", status="processing", title="First", **there)
    await slack.result("agents.sessions.setStatus", status="closed", title="Second", **there)
    await slack.result("agents.sessions.rename", title="Third", **there)
    session = slack.server.agents.sessions[ALICE_DM, "1.1"]

    assert (first["status"], first["title"]) == ("processing", "First")
    assert (session.statuses, session.title) == (["processing", "closed"], "Third")
    assert await slack.refused("agents.sessions.setStatus", status="asleep", **there) == "invalid_status"
    without = await slack.refused("agents.sessions.setStatus", channel_id=ALICE_DM, status="active")
    assert without == "thread_ts_required"


async def test_an_app_that_does_not_hear_of_stops_is_warned(slack):
    slack.server.agents.subscribed_to_stops = False
    answer = await slack.result("agents.sessions.setStatus", channel_id=ALICE_DM, thread_ts="1.1", status="active")

    assert answer["warning"] == "missing_agent_session_stopped_event_subscription"
