"""Reading back, and looking people and places up."""

import pytest

from tests.platforms.slack_workspace import (
    ALICE,
    ALICE_DM,
    BOB,
    BOT_USER,
    EXTERNAL,
    GUEST,
    OTHER_BOT,
    PRIVATE,
    ROOM,
    SHARED,
    TRIO,
)  # fmt: skip

pytest_plugins = ["tests.platforms.slack_client"]

MARK = {"event_type": "lodger_outbox", "event_payload": {"id": "1"}}


async def texts(slack, method="conversations.history", **params):
    answer = await slack.result(method, **{"channel": ROOM} | params)
    return [message["text"] for message in answer["messages"]]


async def test_a_channel_is_read_from_its_newest_message_on_without_replies(slack):
    root = slack.server.user_says(ROOM, ALICE, "one")
    slack.server.user_says(ROOM, BOB, "in the thread", thread_ts=root)
    await slack.post("broadcast", thread_ts=root, reply_broadcast=True)
    slack.server.user_says(ROOM, BOB, "two")

    assert await texts(slack) == ["two", "broadcast", "one"]


async def test_what_is_read_lies_between_two_instants(slack):
    first, second, third = [slack.server.user_says(ROOM, ALICE, text) for text in ("one", "two", "three")]

    assert await texts(slack, oldest=first) == ["three", "two"]
    assert await texts(slack, latest=third) == ["two", "one"]
    assert await texts(slack, oldest=first, latest=second, inclusive="true") == ["two", "one"]
    assert await slack.refused("conversations.history", channel=ROOM, oldest="soon") == "invalid_ts_oldest"


async def test_pages_are_followed_by_their_cursors(slack):
    for number in range(5):
        slack.server.user_says(ROOM, ALICE, str(number))
    read, cursor = [], ""
    while True:
        answer = await slack.result("conversations.history", channel=ROOM, limit=2, cursor=cursor)
        read += [message["text"] for message in answer["messages"]]
        cursor = answer["response_metadata"]["next_cursor"]
        assert answer["has_more"] is bool(cursor)
        if not cursor:
            break

    assert read == ["4", "3", "2", "1", "0"]
    assert await slack.refused("conversations.history", channel=ROOM, cursor="!") == "invalid_cursor"
    assert await slack.refused("conversations.history", channel=ROOM, limit=1000) == "invalid_limit"


async def test_a_thread_is_read_from_its_root_on_with_the_root_on_every_page(slack):
    root = slack.server.user_says(ROOM, ALICE, "root")
    replies = [slack.server.user_says(ROOM, BOB, text, thread_ts=root) for text in ("one", "two", "three")]
    method = "conversations.replies"
    page = await slack.result(method, channel=ROOM, ts=root, limit=2)
    cursor = page["response_metadata"]["next_cursor"]

    assert await texts(slack, method, ts=root) == ["root", "one", "two", "three"]
    assert await texts(slack, method, ts=root, oldest=replies[1]) == ["root", "three"]
    assert await texts(slack, method, ts=root, limit=2, cursor=cursor) == ["root", "three"]
    assert await texts(slack, method, ts=replies[0]) == ["one"]
    assert await slack.refused(method, channel=ROOM, ts="1.0") == "thread_not_found"


async def test_metadata_is_read_only_where_it_is_asked_for(slack):
    root = slack.server.user_says(ROOM, ALICE, "root")
    await slack.post("a", thread_ts=root, metadata=MARK)
    for params, expected in (({}, None), ({"include_all_metadata": "1"}, MARK)):
        answer = await slack.result("conversations.replies", form=True, channel=ROOM, ts=root, **params)
        assert answer["messages"][1].get("metadata") == expected


async def test_people_are_told_apart(slack):
    users = {user: (await slack.result("users.info", user=user))["user"] for user in (ALICE, GUEST, EXTERNAL, BOT_USER)}

    assert users[ALICE]["is_admin"]
    assert not users[ALICE]["is_restricted"]
    assert users[GUEST]["is_restricted"]
    assert (users[EXTERNAL]["team_id"], users[EXTERNAL]["is_stranger"]) == ("T0OTHER", True)
    assert (users[BOT_USER]["is_bot"], users[BOT_USER]["profile"]["bot_id"]) == (True, "B0BOT")
    assert await slack.refused("users.info", user="U0NONE") == "user_not_found"


async def test_bots_and_groups_are_found(slack):
    assert (await slack.result("bots.info", bot=OTHER_BOT))["bot"]["name"] == "peer"
    assert await slack.refused("bots.info", bot="B0NONE") == "bot_not_found"
    assert [group["handle"] for group in (await slack.result("usergroups.list"))["usergroups"]] == ["ops"]
    assert (await slack.result("usergroups.users.list", usergroup="S0OPS"))["users"] == [ALICE]
    assert await slack.refused("usergroups.users.list", usergroup="S0NONE") == "no_such_subteam"


@pytest.mark.parametrize(
    ("channel", "facts"),
    [
        (ROOM, {"is_channel": True, "is_private": False, "name": "room", "is_ext_shared": False}),
        (PRIVATE, {"is_group": True, "is_private": True}),
        (SHARED, {"is_ext_shared": True}),
        (ALICE_DM, {"is_im": True, "user": ALICE}),
        (TRIO, {"is_mpim": True}),
    ],
)
async def test_a_channel_says_what_it_is(slack, channel, facts):
    shown = (await slack.result("conversations.info", channel=channel))["channel"]

    assert shown | facts == shown


async def test_channels_are_listed_by_kind_and_those_of_the_bot_apart(slack):
    slack.server.workspace.add_channel("C0ELSE", members=(ALICE,))
    everywhere = await slack.result("conversations.list", types="public_channel,private_channel", limit=2)
    of_bot = await slack.result("users.conversations", types="public_channel,im")
    members = await slack.result("conversations.members", channel=TRIO)

    assert [c["id"] for c in everywhere["channels"]] == [ROOM, PRIVATE]
    assert everywhere["response_metadata"]["next_cursor"]
    assert "C0ELSE" not in [c["id"] for c in of_bot["channels"]]
    assert members["members"] == [BOT_USER, ALICE, BOB]


async def test_direct_and_group_channels_are_opened_once(slack):
    first = await slack.result("conversations.open", users=GUEST)
    second = await slack.result("conversations.open", users=GUEST, return_im=True)
    group = await slack.result("conversations.open", users=f"{ALICE},{BOB}")

    assert first["channel"] == {"id": "D0GUEST"}
    assert (second["channel"]["id"], second["channel"]["user"]) == ("D0GUEST", GUEST)
    assert group["channel"]["id"] == TRIO
    assert await slack.refused("conversations.open", users="U0NONE") == "user_not_found"


async def test_the_bot_leaves_and_joins(slack):
    await slack.result("conversations.leave", channel=ROOM)
    assert await slack.call("conversations.leave", channel=ROOM) == {"ok": False, "not_in_channel": True}
    assert await slack.refused("conversations.history", channel=ROOM) == "not_in_channel"
    await slack.result("conversations.join", channel=ROOM)

    assert await texts(slack) == []
    assert await slack.refused("conversations.leave", channel=ALICE_DM) == "method_not_supported_for_channel_type"
    assert [d.event["type"] for d in slack.server.deliveries.all] == ["channel_left"]
