"""What events say is read from raw ones, and from those that the fake Slack tells of what people do there."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack.inbound import Own, Said, is_public, message_key, parse_event, said
from core.contracts.addresses import Attachment, DeleteBody, EditBody, MessageBody
from core.contracts.clock import FakeClock
from tests.platforms.slack_server import SlackServer
from tests.platforms.slack_workspace import (
    ALICE,
    ALICE_DM,
    BOB,
    BOT,
    BOT_USER,
    EXTERNAL,
    OTHER_BOT,
    OTHER_BOT_USER,
    OTHER_TEAM,
    ROOM,
    SHARED,
    TEAM,
    TRIO,
)

OWN = Own(team=TEAM, user=BOT_USER, bot=BOT)
MENTION = f"<@{BOT_USER}>"
TS, ROOT, LATER = "1700000000.000100", "1699999999.000100", "1700000005.000200"


def raw(text="hello", **fields):
    return {
        "type": "message",
        "channel": ROOM,
        "channel_type": "channel",
        "user": ALICE,
        "team": TEAM,
        "text": text,
        "ts": TS,
    } | fields


def changed(message, before=None, **fields):
    base = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": ROOM, "ts": LATER}
    return base | {"message": message, "previous_message": before or raw("helo")} | fields


def edited(text="hello", by=ALICE, at=LATER, **fields):
    return raw(text, edited={"user": by, "ts": at}, **fields)


def read(event, own=OWN, **outer):
    return parse_event({"type": "event_callback", "team_id": TEAM, "event": event} | outer, own)


def workspace():
    """Return a fake Slack that nobody is connected to; it keeps what it would tell."""
    return SlackServer(clock=FakeClock())


def told(server):
    return [parse_event(delivery.payload, OWN) for delivery in server.deliveries.all]


# What was said


def test_a_message_is_read_with_people_by_their_ids():
    assert read(raw(f"hello <@{BOB}> &amp; all")) == Said(
        key=f"m/{ROOM}/{TS}",
        channel=ROOM,
        kind="channel",
        ts=TS,
        root=None,
        user=ALICE,
        bot="",
        team=TEAM,
        name="",
        body=MessageBody(text=f"hello <@{BOB}> &amp; all"),
        sent_at=datetime(2023, 11, 14, 22, 13, 20, 100, tzinfo=UTC),
        is_mention=False,
        is_shared=False,
    )


@pytest.mark.parametrize(
    ("thread", "root", "external_id"),
    [(None, None, TS), (TS, None, TS), (ROOT, ROOT, f"{ROOT}:{TS}"), ("", None, TS), (5, None, TS)],
)
def test_a_message_with_replies_is_no_reply_to_itself(thread, root, external_id):
    one = read(raw(thread_ts=thread))

    assert (one.root, one.external_id) == (root, external_id)


@pytest.mark.parametrize(
    ("channel", "kind", "is_direct"),
    [
        (ALICE_DM, "im", True),
        (ALICE_DM, "", True),
        ("C0ODD", "im", True),
        (ROOM, "channel", False),
        (ROOM, "", False),
        (TRIO, "mpim", False),
        ("C0PRIVATE", "group", False),
    ],
)
def test_direct_messages_are_known_by_the_kind_of_channel_or_else_by_its_id(channel, kind, is_direct):
    assert read(raw(channel=channel, channel_type=kind)).is_direct is is_direct


def test_everybody_can_read_public_channels_alone():
    assert [kind for kind in ("channel", "group", "im", "mpim", "") if is_public(kind)] == ["channel"]


@pytest.mark.parametrize("subtype", ["", "file_share", "thread_broadcast", "me_message", "bot_message"])
def test_what_people_and_bots_say_is_heard_in_each_of_its_forms(subtype):
    assert read(raw(subtype=subtype)).body == MessageBody(text="hello")


@pytest.mark.parametrize(
    "subtype",
    [
        "assistant_app_thread",
        "bot_add",
        "channel_archive",
        "channel_join",
        "channel_leave",
        "channel_name",
        "channel_posting_permissions",
        "channel_purpose",
        "channel_topic",
        "document_mention",
        "ekm_access_denied",
        "group_join",
        "message_replied",
        "pinned_item",
        "reminder_add",
        "reply_broadcast",
        "slackbot_response",
        "something_new",
        "tombstone",
    ],
)
def test_notes_of_slacks_own_are_no_messages(subtype):
    assert read(raw(f"{MENTION} has joined the channel", subtype=subtype)) is None


def test_a_reply_that_is_shown_in_the_channel_too_stays_in_its_thread():
    one = read(raw(subtype="thread_broadcast", thread_ts=ROOT, root={"ts": ROOT}))

    assert (one.root, one.key) == (ROOT, f"m/{ROOM}/{TS}")


def test_a_huddle_is_told_as_what_cannot_be_taken_in():
    assert read(raw("", subtype="huddle_thread", user="USLACKBOT")).body == MessageBody(text="", unsupported="a huddle")


@pytest.mark.parametrize(
    ("text", "is_mention"),
    [
        (f"{MENTION} hello", True),
        (f"hello {MENTION}", True),
        (f"<@{BOT_USER}|lodger> hello", True),
        (f"<@{BOT_USER}2> hello", False),
        (f"&lt;@{BOT_USER}&gt; hello", False),
        (f"{BOT_USER} hello", False),
        ("<!channel> hello", False),
    ],
)
def test_only_the_agents_own_mention_is_one(text, is_mention):
    assert read(raw(text)).is_mention is is_mention


# One message, one key


def test_a_mention_in_a_channel_comes_as_two_events_and_has_one_key():
    server = workspace()
    server.user_says(ROOM, ALICE, f"{MENTION} hello")
    message, mention = told(server)

    assert [delivery.event["type"] for delivery in server.deliveries.all] == ["message", "app_mention"]
    assert message.key == mention.key
    assert (message.body, message.external_id, message.sent_at) == (mention.body, mention.external_id, mention.sent_at)
    assert message.is_mention
    assert mention.is_mention
    assert (message.kind, mention.kind) == ("channel", "")


def test_a_mention_in_a_thread_has_one_key_and_one_place():
    server = workspace()
    root = server.user_says(ROOM, BOB, "look")
    server.user_says(ROOM, ALICE, f"{MENTION} hello", root)
    _, message, mention = told(server)

    assert (message.key, message.root) == (mention.key, mention.root)
    assert message.root == root


def test_what_is_told_again_is_the_same():
    server = workspace()
    server.user_says(ROOM, ALICE, "hello")
    (delivery,) = server.deliveries.all
    again = {**delivery.payload, "event_id": "Ev99999999", "event_time": 1}

    assert parse_event(again, OWN) == parse_event(delivery.payload, OWN)


def test_a_message_that_is_read_from_the_history_has_the_key_it_was_told_with():
    shown = {name: value for name, value in raw().items() if name not in {"channel", "channel_type"}}
    from_history = said({**shown, "reply_count": 3, "thread_ts": TS, "channel": ROOM}, OWN)

    assert (from_history.key, from_history.root) == (read(raw()).key, None)


def test_the_same_ts_in_another_channel_is_another_message():
    assert read(raw(channel=TRIO)).key != read(raw()).key


def test_what_two_workspaces_tell_of_one_message_has_one_key():
    server = workspace()
    server.user_says(SHARED, EXTERNAL, f"{MENTION} hello")
    here, mention = told(server)
    other = {**server.deliveries.all[0].payload, "team_id": OTHER_TEAM, "context_team_id": OTHER_TEAM}
    there = parse_event(other, OWN)

    assert here.key == mention.key == there.key
    assert {one.team for one in (here, mention, there)} == {OTHER_TEAM}
    assert (here.user, here.is_shared) == (EXTERNAL, True)


@pytest.mark.parametrize(
    ("fields", "team"),
    [
        ({"user_team": OTHER_TEAM, "source_team": OTHER_TEAM}, OTHER_TEAM),
        ({"team": OTHER_TEAM}, OTHER_TEAM),
        ({"team": None}, ""),
        ({"team": None, "user_team": OTHER_TEAM}, OTHER_TEAM),
    ],
)
def test_a_persons_own_workspace_goes_before_that_of_the_message(fields, team):
    assert read(raw(**fields)).team == team


@pytest.mark.parametrize("mark", [None, False, "true", 1])
def test_a_channel_counts_as_shared_where_slack_says_so_plainly(mark):
    assert read(raw(), is_ext_shared_channel=True).is_shared is True
    assert read(raw(), is_ext_shared_channel=mark).is_shared is False


# Edits and deletions


def test_an_edit_names_its_message_and_stands_where_that_does():
    one = read(changed(edited("hello all", thread_ts=ROOT), channel_type="channel"), is_ext_shared_channel=True)

    assert one.body == EditBody(message_key=message_key(ROOM, TS), text="hello all")
    assert (one.key, one.root, one.user) == (f"e/{ROOM}/{TS}/{LATER}", ROOT, ALICE)
    assert (one.sent_at, one.ts) == (datetime(2023, 11, 14, 22, 13, 25, 200, tzinfo=UTC), TS)
    assert (one.kind, one.is_shared) == ("channel", True)


def test_each_edit_has_its_own_key_and_told_again_the_same():
    server = workspace()
    ts = server.user_says(ROOM, ALICE, "one")
    server.user_edits(ROOM, ts, "two")
    server.user_edits(ROOM, ts, "three")
    message, first, second = told(server)

    assert [first.body.text, second.body.text] == ["two", "three"]
    assert {first.body.message_key, second.body.message_key} == {message.key}
    assert len({message.key, first.key, second.key}) == 3
    assert told(server)[1] == first


@pytest.mark.parametrize(
    ("message", "before"),
    [
        pytest.param(raw("hello", attachments=[{"id": 1}]), raw("hello"), id="a preview of a link"),
        pytest.param(edited("hello", attachments=[{"id": 1}]), edited("hello"), id="a preview under what was edited"),
        pytest.param(edited("hello", reply_count=1), edited("hi"), id="a reply below what was edited"),
        pytest.param(edited("hello"), raw("hello"), id="an edit that changes no words"),
        pytest.param(raw("hello", edited={"user": ALICE}), raw("hi"), id="an edit of no time"),
        pytest.param(raw("hello", edited="yes"), raw("hi"), id="an edit of another kind"),
        pytest.param(edited("hello", by=BOT_USER), raw("hi"), id="an edit by the agent"),
        pytest.param(edited("hello", user=BOT_USER, bot_id=BOT), raw("hi"), id="an edit of the agent's message"),
        pytest.param(edited("hello", at="soon"), raw("hi"), id="an edit at no time that is one"),
        pytest.param(None, None, id="an edit of nothing"),
    ],
)
def test_a_change_that_is_no_persons_edit_is_ignored(message, before):
    assert read(changed(message, before)) is None


def test_the_preview_that_slack_puts_under_a_link_is_ignored():
    server = workspace()
    ts = server.user_says(ROOM, ALICE, "https://example.com/")
    server.link_unfurls(ROOM, ts)

    assert told(server)[1] is None


def test_an_edit_is_heard_without_what_was_there_before():
    assert read(changed(edited("hello"), previous_message=None)).body.text == "hello"


def test_a_deletion_names_its_message_and_is_its_writers():
    server = workspace()
    root = server.user_says(ROOM, BOB, "look")
    ts = server.user_says(ROOM, ALICE, "hello", root)
    server.user_deletes(ROOM, ts)
    _, message, deletion = told(server)

    assert deletion.body == DeleteBody(message_key=message.key)
    assert (deletion.user, deletion.root, deletion.ts) == (ALICE, root, ts)
    assert deletion.key not in {message.key, ""}
    assert deletion.sent_at > message.sent_at


def test_a_message_with_replies_that_is_deleted_is_a_deletion_too():
    server = workspace()
    root = server.user_says(ROOM, ALICE, "look")
    server.user_edits(ROOM, root, "look here")
    server.user_says(ROOM, BOB, "where?", root)
    server.user_deletes(ROOM, root)
    message, *_, deletion = told(server)

    assert server.deliveries.all[-1].event["subtype"] == "message_changed"
    assert deletion.body == DeleteBody(message_key=message.key)
    assert (deletion.user, deletion.root, deletion.key) == (ALICE, None, f"d/{ROOM}/{root}")


def test_the_place_of_a_deleted_message_tells_nothing_new_when_it_goes_too():
    left = raw("This message was deleted.", subtype="tombstone", user="USLACKBOT", hidden=True)
    gone = {"type": "message", "subtype": "message_deleted", "channel": ROOM, "ts": LATER, "deleted_ts": TS}

    deleted = read(changed(left, raw("hello")))
    assert read(gone | {"previous_message": left}).key == deleted.key


@pytest.mark.parametrize(
    "before",
    [None, {}, "x", {"user": BOT_USER}, {"user": BOT_USER, "bot_id": BOT}, {"bot_id": BOT}, {"text": "nobody's"}],
)
def test_a_deletion_of_the_agents_own_message_or_of_nobodys_is_ignored(before):
    gone = {"type": "message", "subtype": "message_deleted", "channel": ROOM, "ts": LATER, "deleted_ts": TS}

    assert read(gone | {"previous_message": before}) is None
    assert read(gone | {"previous_message": raw()}) is not None
    assert read(changed(raw(subtype="tombstone"), before or {"user": BOT_USER})) is None


# Files


def file(**fields):
    return {"id": "F1", "name": "a.png", "mimetype": "image/png", "size": 12, "mode": "hosted"} | fields


def test_files_come_with_what_fetches_them():
    body = read(raw("look", subtype="file_share", files=[file(), file(id="F2", name="b.png")])).body

    assert body == MessageBody(
        text="look",
        attachments=(
            Attachment(handle="F1", name="a.png", media_type="image/png", size_bytes=12),
            Attachment(handle="F2", name="b.png", media_type="image/png", size_bytes=12),
        ),
    )


def test_a_file_without_words_is_a_message():
    assert read(raw("", subtype="file_share", files=[file()])).body.text == ""
    assert read(raw(None, subtype="file_share", files=[file()])).body.attachments[0].handle == "F1"


@pytest.mark.parametrize(
    ("fields", "name", "media_type", "size"),
    [
        ({"name": None, "title": "My plan"}, "My plan", "image/png", 12),
        ({"name": "", "title": ""}, "file", "image/png", 12),
        ({"mimetype": None}, "a.png", "application/octet-stream", 12),
        ({"size": None}, "a.png", "image/png", None),
        ({"size": "12"}, "a.png", "image/png", None),
        ({"mode": "external", "is_external": True}, "a.png", "image/png", 12),
    ],
)
def test_a_file_of_which_little_is_told_can_be_asked_for_all_the_same(fields, name, media_type, size):
    (found,) = read(raw(files=[file(**fields)])).body.attachments

    assert found == Attachment(handle="F1", name=name, media_type=media_type, size_bytes=size)


def test_a_file_of_another_workspace_of_which_only_the_id_is_told_is_one():
    (found,) = read(raw(files=[{"id": "F1", "file_access": "check_file_info"}])).body.attachments

    assert found == Attachment(handle="F1", name="file", media_type="application/octet-stream")


@pytest.mark.parametrize(
    "gone",
    [file(mode="tombstone"), file(mode="hidden_by_limit"), file(mode="not_visible"), file(id=None), {}],
)
def test_a_file_that_cannot_be_had_is_told_as_such_beside_the_others(gone):
    body = read(raw("", subtype="file_share", files=[gone, file(id="F2")])).body

    assert [one.handle for one in body.attachments] == ["F2"]
    assert body.unsupported == "a file that Slack does not show"
    assert read(raw("", files=[gone])).body.unsupported == body.unsupported


# Bots, and the agent itself


def test_a_bot_is_named_by_its_id_beside_its_user():
    one = read(raw(user=OTHER_BOT_USER, bot_id=OTHER_BOT, bot_profile={"id": OTHER_BOT, "name": "Peer"}))

    assert (one.user, one.bot, one.name) == (OTHER_BOT_USER, OTHER_BOT, "Peer")


def test_a_bot_without_a_user_is_heard_under_the_name_it_took():
    one = read(raw(subtype="bot_message", user=None, bot_id=OTHER_BOT, username="Builds", bot_profile={"name": "CI"}))

    assert (one.user, one.bot, one.name) == ("", OTHER_BOT, "Builds")


@pytest.mark.parametrize("fields", [{"user": BOT_USER}, {"user": BOT_USER, "bot_id": BOT}, {"bot_id": BOT}])
@pytest.mark.parametrize("kind", ["message", "app_mention"])
def test_the_agents_own_words_are_never_heard(fields, kind):
    own = raw(f"{MENTION} hello", type=kind, user="") | fields

    assert read(own) is None
    assert said(own, OWN) is None
    assert read(own | {"subtype": "bot_message"}) is None
    assert read(changed(own | {"edited": {"user": ALICE, "ts": LATER}})) is None


def test_an_app_that_has_no_bot_of_its_own_still_hears_people():
    assert read(raw(), Own(team=TEAM, user=BOT_USER, bot="")).user == ALICE


# What is no message at all


@pytest.mark.parametrize(
    "event",
    [
        raw(""),
        raw(None),
        raw(5),
        raw("", files=[]),
        raw("", files="x"),
        raw("", files=[None, 5, []]),
        raw("", attachments=[{"text": "a preview"}]),
        raw(channel=None),
        raw(channel=""),
        raw(channel=["C"]),
        raw(ts=None),
        raw(ts="soon"),
        raw(ts=1700000000.0001),
        raw(ts="99999999999999999999.0"),
        raw(user=None),
        raw(user=""),
        raw(user={"id": ALICE}),
        raw(type=None),
        raw(type="reaction_added"),
        raw(type="something_new"),
        {"type": "message"},
        {"type": "app_mention"},
        {"type": "message", "subtype": "message_changed"},
        {"type": "message", "subtype": "message_deleted"},
        {"type": "message", "subtype": "message_deleted", "channel": ROOM, "previous_message": raw(), "ts": LATER},
        {},
        [],
        None,
        "message",
    ],
)
def test_what_is_no_message_or_says_nothing_is_ignored(event):
    assert read(event) is None
    assert read(changed(event)) is None


def test_a_payload_without_an_event_is_ignored():
    assert parse_event({}, OWN) is None
    assert parse_event({"type": "event_callback", "event": None}, OWN) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([TS, ROOM, ALICE, BOT]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "ts", "user", "text", "edited", "subtype", "mode"]), inner, max_size=4)
    ),
    max_leaves=8,
)
FIELDS = ["channel", "ts", "user", "bot_id", "text", "thread_ts", "files", "bot_profile", "message", "edited"]
FIELDS += ["previous_message", "deleted_ts", "channel_type", "team", "username"]
EVENTS = st.builds(
    lambda kind, subtype, fields: raw(type=kind, subtype=subtype) | fields,
    st.sampled_from(["message", "app_mention"]),
    st.sampled_from(["", "message_changed", "message_deleted", "file_share", "huddle_thread"]) | ANYTHING,
    st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=6),
)


@given(EVENTS)
def test_any_event_is_read_or_ignored_and_never_breaks_the_host(event):
    one = read(event)

    assert one is None or (one.key.count("/") >= 2 and one.channel and one.sent_at.tzinfo is UTC)
