"""What the app is told when people do something."""

import pytest

from tests.platforms.slack_workspace import (
    ALICE,
    ALICE_DM,
    BOB,
    BOT_USER,
    EXTERNAL,
    GUEST,
    OTHER_BOT_USER,
    PRIVATE,
    ROOM,
    SHARED,
    TRIO,
)  # fmt: skip

pytest_plugins = ["tests.platforms.slack_client"]

MENTION = f"<@{BOT_USER}> hello"
BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "go", "value": "tok"}
OVERFLOW = {
    "type": "overflow",
    "action_id": "more",
    "options": [{"text": {"type": "plain_text", "text": "Mute"}, "value": "mute"}],
}


def events(slack):
    return [delivery.event for delivery in slack.server.deliveries.all]


async def test_a_mention_in_a_channel_is_told_twice_with_one_ts_and_two_ids(slack):
    ts = slack.server.user_says(ROOM, ALICE, MENTION)
    message, mention = slack.server.deliveries.all

    assert [message.event["type"], mention.event["type"]] == ["message", "app_mention"]
    assert message.event["ts"] == mention.event["ts"] == ts
    assert message.payload["event_id"] != mention.payload["event_id"]
    assert message.event["client_msg_id"] == mention.event["client_msg_id"]
    assert "channel_type" not in mention.event


@pytest.mark.parametrize(
    ("channel", "kind", "types"),
    [
        (ROOM, "channel", ["message", "app_mention"]),
        (PRIVATE, "group", ["message", "app_mention"]),
        (TRIO, "mpim", ["message", "app_mention"]),
        (ALICE_DM, "im", ["message"]),
    ],
)
async def test_the_kind_of_a_channel_is_told_and_a_direct_one_knows_no_mentions(slack, channel, kind, types):
    slack.server.user_says(channel, ALICE, MENTION)

    assert [event["type"] for event in events(slack)] == types
    assert events(slack)[0]["channel_type"] == kind


async def test_nothing_is_told_of_a_channel_that_the_bot_is_not_in(slack):
    slack.server.removes_bot(ROOM, BOB)
    slack.server.user_says(ROOM, ALICE, MENTION)

    assert [(event["type"], event["actor_id"]) for event in events(slack)] == [("channel_left", BOB)]


async def test_the_envelope_of_an_event_says_for_whom_it_is(slack):
    slack.server.user_says(SHARED, EXTERNAL, "hi")
    payload = slack.server.deliveries.all[0].payload

    assert (payload["type"], payload["team_id"], payload["api_app_id"]) == ("event_callback", "T0TEAM", "A0APP")
    assert payload["authorizations"][0]["user_id"] == BOT_USER
    assert payload["is_ext_shared_channel"]
    assert payload["event_time"] == 1767268800
    assert (payload["event"]["team"], payload["event"]["user_team"]) == ("T0OTHER", "T0OTHER")


async def test_a_reply_names_its_root_and_whoever_wrote_that(slack):
    root = slack.server.user_says(ROOM, ALICE, "root")
    slack.server.user_says(ROOM, GUEST, "reply", root)

    assert "thread_ts" not in events(slack)[0]
    assert (events(slack)[1]["thread_ts"], events(slack)[1]["parent_user_id"]) == (root, ALICE)


async def test_another_bot_is_told_as_one(slack):
    slack.server.user_says(ROOM, OTHER_BOT_USER, MENTION)

    assert [(event["bot_id"], event["user"]) for event in events(slack)] == [("B0OTHER", OTHER_BOT_USER)] * 2


async def test_an_edit_and_a_preview_differ_in_who_edited(slack):
    ts = slack.server.user_says(ROOM, ALICE, "one")
    slack.server.user_edits(ROOM, ts, "two")
    slack.server.link_unfurls(ROOM, ts)
    edit, preview = events(slack)[1:]

    assert (edit["subtype"], edit["message"]["text"], edit["previous_message"]["text"]) == (
        "message_changed",
        "two",
        "one",
    )
    assert edit["message"]["edited"]["user"] == ALICE
    assert preview["subtype"] == "message_changed"
    assert preview["message"]["edited"] == preview["previous_message"]["edited"]
    assert preview["message"]["attachments"][0]["from_url"] == "https://example.com/"


async def test_a_preview_of_a_message_that_nobody_edited_carries_no_edit(slack):
    ts = slack.server.user_says(ROOM, ALICE, "https://example.com/")
    slack.server.link_unfurls(ROOM, ts)

    assert "edited" not in events(slack)[1]["message"]


async def test_a_deletion_names_what_is_gone(slack):
    ts = slack.server.user_says(ROOM, ALICE, "one")
    slack.server.user_deletes(ROOM, ts)
    gone = events(slack)[1]

    assert (gone["subtype"], gone["deleted_ts"], gone["previous_message"]["text"]) == ("message_deleted", ts, "one")
    assert slack.server.visible(ROOM, everyone=True) == []


async def test_reactions_are_told_with_their_message(slack):
    ts = await slack.post("a")
    slack.server.user_reacts(ROOM, BOB, ts, "+1")
    slack.server.user_reacts(ROOM, BOB, ts, "+1", removed=True)
    added, removed = events(slack)[1:]

    assert (added["type"], added["user"], added["reaction"]) == ("reaction_added", BOB, "+1")
    assert added["item"] == {"type": "message", "channel": ROOM, "ts": ts}
    assert (removed["type"], added["item_user"]) == ("reaction_removed", BOT_USER)


async def test_a_press_tells_who_pressed_what_on_which_message(slack):
    root = slack.server.user_says(ROOM, ALICE, "q")
    ts = await slack.post("Run?", thread_ts=root, blocks=[{"type": "actions", "elements": [BUTTON, OVERFLOW]}])
    payloads = [slack.server.presses(BOB, ROOM, ts, name).payload for name in ("go", "tok", "Go")]
    chosen = slack.server.presses(BOB, ROOM, ts, "more", option="Mute").payload["actions"][0]

    assert [payload["actions"][0]["value"] for payload in payloads] == ["tok"] * 3
    payload = payloads[0]
    container = {"type": "message", "message_ts": ts, "channel_id": ROOM, "is_ephemeral": False, "thread_ts": root}
    assert payload["container"] == container
    assert (payload["type"], payload["user"]["id"], payload["team"]["id"]) == ("block_actions", BOB, "T0TEAM")
    assert (payload["message"]["ts"], payload["channel"]["id"]) == (ts, ROOM)
    assert payload["response_url"].startswith(slack.server.base)
    assert chosen["selected_option"]["value"] == "mute"


async def test_a_button_that_is_gone_can_be_pressed_on_an_old_screen_only(slack):
    ts = await slack.post("Done")
    with pytest.raises(AssertionError, match="nothing with"):
        slack.server.presses(BOB, ROOM, ts, "tok")

    assert slack.server.presses(BOB, ROOM, ts, "tok", stale=True).payload["actions"][0]["value"] == "tok"


async def test_a_press_on_an_ephemeral_message_comes_without_it(slack):
    blocks = [{"type": "actions", "elements": [BUTTON]}]
    sent = await slack.result("chat.postEphemeral", channel=ROOM, user=ALICE, text="a", blocks=blocks)
    payload = slack.server.presses(ALICE, ROOM, sent["message_ts"], "go").payload

    assert payload["container"]["is_ephemeral"]
    assert "message" not in payload


async def test_a_command_tells_who_typed_it_and_where(slack):
    payload = slack.server.runs_command("/lodger", "status", BOB, PRIVATE).payload

    assert (payload["command"], payload["text"], payload["user_id"]) == ("/lodger", "status", BOB)
    assert (payload["channel_id"], payload["channel_name"]) == (PRIVATE, "privategroup")
    assert payload["is_enterprise_install"] == "false"


async def test_a_shortcut_is_of_a_message_or_of_none(slack):
    ts = slack.server.user_says(ROOM, BOB, "look at this")
    of_message = slack.server.uses_shortcut("ask", ALICE, ROOM, ts).payload
    everywhere = slack.server.uses_shortcut("ask", ALICE).payload

    assert (of_message["type"], of_message["message"]["text"]) == ("message_action", "look at this")
    assert of_message["message_ts"] == ts
    assert (everywhere["type"], "response_url" in everywhere) == ("shortcut", False)


async def test_comings_and_goings_are_told(slack):
    slack.server.invites_bot("C0NEW", BOB)
    slack.server.joins("C0NEW", GUEST)
    slack.server.removes_bot(TRIO)
    invited, joined, left = events(slack)

    assert (invited["user"], invited["inviter"], invited["channel_type"]) == (BOT_USER, BOB, "C")
    assert (joined["type"], joined["user"]) == ("member_joined_channel", GUEST)
    assert left["type"] == "group_left"


async def test_people_and_channels_that_were_not_there_are_there_once_somebody_speaks(slack):
    slack.server.user_says("C0FRESH", "U0FRESH", "hi")

    assert events(slack)[0]["channel"] == "C0FRESH"
    assert (await slack.result("users.info", user="U0FRESH"))["user"]["name"] == "u0fresh"
    assert (await slack.result("conversations.info", channel="C0FRESH"))["channel"]["is_member"]


async def test_fields_can_be_added_and_raw_events_told(slack):
    slack.server.user_says(ROOM, ALICE, "hi", subtype="me_message")
    delivery = slack.server.deliver({"type": "tokens_revoked", "tokens": {"bot": [BOT_USER]}})

    assert events(slack)[0]["subtype"] == "me_message"
    assert delivery.event["event_ts"]
    assert slack.server.deliveries.of("tokens_revoked") == [delivery]
