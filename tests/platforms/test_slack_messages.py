"""Messages as chat.postMessage, chat.update, chat.delete and reactions document them."""

from datetime import timedelta

import pytest

from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, BOB_DM, BOT_USER, OTHER_BOT_USER, PRIVATE, ROOM

pytest_plugins = ["tests.platforms.slack_client"]

MARK = {"event_type": "lodger_outbox", "event_payload": {"id": "1"}}
BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "go", "value": "tok"}


async def test_timestamps_grow_and_begin_with_the_time(slack):
    first, second = [await slack.post("a") for _ in range(2)]

    assert (first, second) == ("1767268800.000000", "1767268800.000001")
    await slack.pass_time(2)
    assert await slack.post("a") == "1767268802.000000"


async def test_the_answer_shows_the_message_as_it_was_kept(slack):
    answer = await slack.result(
        "chat.postMessage", channel=ROOM, text="hi", blocks=[{"type": "actions", "elements": [BUTTON]}], metadata=MARK
    )
    shown = answer["message"]
    (message,) = slack.server.visible(ROOM)

    assert (answer["channel"], answer["ts"]) == (ROOM, message.ts)
    assert (shown["user"], shown["bot_id"], shown["app_id"], shown["metadata"]) == (BOT_USER, "B0BOT", "A0APP", MARK)
    assert message.buttons == {"Go": "tok"}


@pytest.mark.parametrize(
    ("channel", "error"), [("C0NONE", "channel_not_found"), (None, "invalid_arguments"), ("C0OLD", "is_archived")]
)
async def test_a_message_needs_a_channel_that_takes_it(slack, channel, error):
    slack.server.workspace.add_channel("C0OLD").is_archived = True

    assert await slack.refused("chat.postMessage", channel=channel, text="a") == error


async def test_a_channel_that_the_bot_left_is_closed_and_a_private_one_unknown(slack):
    for channel in (ROOM, PRIVATE):
        slack.server.removes_bot(channel)

    assert await slack.refused("chat.postMessage", channel=ROOM, text="a") == "not_in_channel"
    assert await slack.refused("chat.postMessage", channel=PRIVATE, text="a") == "channel_not_found"


async def test_a_person_stands_for_the_direct_channel_when_posting_but_not_when_changing(slack):
    answer = await slack.result("chat.postMessage", channel=BOB, text="a")

    assert answer["channel"] == BOB_DM
    assert await slack.refused("chat.update", channel=BOB, ts=answer["ts"], text="b") == "channel_not_found"


async def test_a_reply_needs_a_root_that_is_there_and_is_none_itself(slack):
    root = slack.server.user_says(ROOM, ALICE, "q")
    reply = await slack.post("a", thread_ts=root)
    answer = await slack.result("conversations.replies", channel=ROOM, ts=root)

    assert await slack.refused("chat.postMessage", channel=ROOM, text="a", thread_ts="1.0") == "thread_not_found"
    refused = await slack.refused("chat.postMessage", channel=ROOM, text="a", thread_ts=reply)
    assert refused == "cannot_reply_to_message"
    assert [m.text for m in slack.server.visible(ROOM, root)] == ["a"]
    first, second = answer["messages"]
    assert (first["thread_ts"], first["reply_count"], first["latest_reply"]) == (root, 1, reply)
    assert (second["thread_ts"], second["parent_user_id"]) == (root, ALICE)


@pytest.mark.parametrize(
    ("asked", "unfurls"),
    [
        ({}, True),
        ({"unfurl_links": False}, True),
        ({"unfurl_links": False, "unfurl_media": False}, False),
        ({"unfurl_media": False}, False),
        ({"unfurl_links": True, "unfurl_media": False}, True),
    ],
)
async def test_previews_are_off_only_when_those_of_media_are_refused_and_those_of_links_not_asked_for(
    slack, asked, unfurls
):
    await slack.post("https://example.com/", **asked)

    assert slack.server.visible(ROOM)[0].unfurls is unfurls


async def test_a_text_of_more_than_40000_characters_is_truncated_with_a_warning(slack):
    answer = await slack.result("chat.postMessage", channel=ROOM, text="x" * 40_001)

    assert len(slack.server.visible(ROOM)[0].text) == 40_000
    assert answer["warning"] == "message_truncated"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, "no_text"),
        ({"text": "  "}, "no_text"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"markdown_text": "a", "text": "b"}, "markdown_text_conflict"),
        ({"markdown_text": "a", "blocks": [{"type": "divider"}]}, "markdown_text_conflict"),
        ({"text": "a", "metadata": {"event_type": "x"}}, "invalid_metadata_format"),
        ({"text": "a", "metadata": "nothing"}, "invalid_arguments"),
    ],
)
async def test_content_that_slack_does_not_take_is_refused_when_posted_and_when_changed(slack, content, error):
    ts = await slack.post("a")

    assert await slack.refused("chat.postMessage", channel=ROOM, **content) == error
    assert await slack.refused("chat.update", channel=ROOM, ts=ts, **content) == error
    assert [message.text for message in slack.server.visible(ROOM)] == ["a"]


async def test_markdown_is_taken_up_to_12000_characters(slack):
    await slack.result("chat.postMessage", channel=ROOM, markdown_text="x" * 12_000)

    assert slack.server.visible(ROOM)[0].is_markdown


@pytest.mark.parametrize(("text", "fits"), [("x" * 4000, True), ("x" * 4001, False), ("ä" * 2001, False)])
async def test_a_changed_text_may_have_4000_bytes(slack, text, fits):
    ts = await slack.post("a")
    answer = await slack.call("chat.update", channel=ROOM, ts=ts, text=text)

    assert answer["ok"] is fits
    assert fits or answer["error"] == "msg_too_long"


async def test_a_text_without_blocks_takes_the_blocks_away_and_metadata_stays(slack):
    ts = await slack.post("a", blocks=[{"type": "actions", "elements": [BUTTON]}], metadata=MARK)
    await slack.result("chat.update", channel=ROOM, ts=ts, text="b")
    (message,) = slack.server.visible(ROOM)

    assert (message.text, message.blocks, message.metadata) == ("b", [], MARK)
    assert message.versions == ["a", "b"]
    await slack.result("chat.update", channel=ROOM, ts=ts, text="b", metadata={})
    assert message.metadata == {}


async def test_only_own_messages_that_are_there_can_be_changed_or_deleted(slack):
    ts = slack.server.user_says(ROOM, ALICE, "mine")
    of_peer = slack.server.user_says(ROOM, OTHER_BOT_USER, "of another bot")

    assert await slack.refused("chat.update", channel=ROOM, ts=ts, text="a") == "cant_update_message"
    assert await slack.refused("chat.update", channel=ROOM, ts=of_peer, text="a") == "cant_update_message"
    assert await slack.refused("chat.delete", channel=ROOM, ts=ts) == "cant_delete_message"
    assert await slack.refused("chat.update", channel=ROOM, ts="1.0", text="a") == "message_not_found"
    assert await slack.refused("chat.delete", channel=ROOM, ts="1.0") == "message_not_found"


async def test_a_workspace_can_limit_how_long_messages_may_be_changed(slack):
    slack.server.messages.edit_window = timedelta(minutes=5)
    ts = await slack.post("a")
    await slack.pass_time(300)
    await slack.result("chat.update", channel=ROOM, ts=ts, text="b")
    await slack.pass_time(1)

    assert await slack.refused("chat.update", channel=ROOM, ts=ts, text="c") == "edit_window_closed"


async def test_a_deleted_root_with_replies_leaves_its_place(slack):
    root = await slack.post("root")
    await slack.post("reply", thread_ts=root)
    alone = await slack.post("alone")
    for ts in (root, alone):
        await slack.result("chat.delete", channel=ROOM, ts=ts)
    thread = (await slack.result("conversations.replies", channel=ROOM, ts=root))["messages"]

    assert [message.text for message in slack.server.visible(ROOM)] == ["reply"]
    assert [message.get("subtype") for message in thread] == ["tombstone", None]
    assert await slack.refused("chat.update", channel=ROOM, ts=root, text="a") == "message_not_found"
    assert await slack.post("another", thread_ts=root)
    told = [d.event["subtype"] for d in slack.server.deliveries.of("message") if "subtype" in d.event]
    assert told == ["message_changed", "message_deleted"]


async def test_an_ephemeral_message_is_seen_by_one_member_and_kept_nowhere(slack):
    answer = await slack.result("chat.postEphemeral", channel=ROOM, user=ALICE, text="psst", metadata=MARK)
    (message,) = slack.server.ephemeral(ROOM, ALICE)

    assert (message.text, message.metadata, answer["message_ts"]) == ("psst", {}, message.ts)
    assert slack.server.visible(ROOM) == slack.server.ephemeral(ROOM, BOB) == []
    assert await slack.refused("chat.update", channel=ROOM, ts=message.ts, text="a") == "message_not_found"
    stranger = await slack.refused("chat.postEphemeral", channel=PRIVATE, user=BOB, text="a")
    assert stranger == "user_not_in_channel"


async def test_reactions_are_given_once_and_taken_back_once(slack):
    ts = slack.server.user_says(ROOM, ALICE, "a")
    there = {"channel": ROOM, "timestamp": ts, "name": "eyes"}
    await slack.result("reactions.add", **there)
    (message,) = slack.server.visible(ROOM, everyone=True)
    assert message.reactions == {"eyes": [BOT_USER]}
    assert await slack.refused("reactions.add", **there) == "already_reacted"
    await slack.result("reactions.remove", **there)

    assert message.reactions == {}
    assert await slack.refused("reactions.remove", **there) == "no_reaction"
    assert await slack.refused("reactions.add", **there | {"name": "👀"}) == "invalid_name"
    assert await slack.refused("reactions.add", **there | {"timestamp": "1.0"}) == "message_not_found"
    assert await slack.refused("reactions.add", channel=ROOM, name="eyes") == "no_item_specified"


async def test_what_the_app_does_comes_back_to_it_as_events(slack):
    ts = await slack.post("a", ALICE_DM)
    await slack.result("chat.update", channel=ALICE_DM, ts=ts, text="b")
    await slack.result("reactions.add", channel=ALICE_DM, timestamp=ts, name="eyes")
    events = [delivery.event for delivery in slack.server.deliveries.all]

    assert [event["type"] for event in events] == ["message", "message", "reaction_added"]
    assert (events[0]["bot_id"], events[0]["channel_type"]) == ("B0BOT", "im")
    assert (events[1]["message"]["text"], events[1]["previous_message"]["text"]) == ("b", "a")
    assert events[1]["message"]["edited"]["user"] == BOT_USER
