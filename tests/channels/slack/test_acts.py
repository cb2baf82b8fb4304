"""What acts mean is read from raw payloads, and from those that the fake Slack tells of what people do there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.contract import Form, FormField
from channels.slack.acts import (
    ASK,
    QUESTION,
    Act,
    Reply,
    parse_command,
    parse_form,
    parse_press,
    parse_shortcut,
    remembered,
    unpacked,
)
from channels.slack.cards import draw_card
from channels.slack.forms import FORM, draw_form
from channels.slack.home import draw_home
from core.contracts.addresses import Button, CardContent
from core.contracts.clock import FakeClock
from tests.platforms.slack_blocks import checked_view
from tests.platforms.slack_server import SlackServer
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, EXTERNAL, OTHER_TEAM, ROOM, SHARED, TEAM

TS, ROOT = "1700000002.000100", "1700000001.000100"
CARD = CardContent(text="Run?", rows=((Button(token="t-allow", label="Allow"), Button(token="t-deny", label="Deny")),))
REASON = Form(token="t-deny", title="Deny", fields=(FormField(name="reason", label="Why?", required=False),))
QUESTION_FORM = Form(token=ASK, title="Ask", fields=(FormField(name=QUESTION, label="What?"),))
USER = {"id": ALICE, "username": "alice", "name": "alice", "team_id": TEAM}
BESIDE = [None, "x", 5, [], {}]


def workspace():
    """Return a fake Slack that nobody is connected to; it keeps what it would tell."""
    return SlackServer(clock=FakeClock())


def card(server, channel=ROOM, thread=None):
    """Let the app show a card, and return its ts."""
    params = {"channel": channel, "text": "Run?", "blocks": list(draw_card(CARD).blocks)}
    return server.messages.post(params | ({"thread_ts": thread} if thread else {}))["ts"]


def sent(server, form, memory, callback=FORM, values=None, user=ALICE):
    """Let somebody open a form and send it; return what Slack tells of that."""
    trigger = server.interactions.trigger(user)
    server.views.open({"trigger_id": trigger, "view": draw_form(form, memory=memory, callback=callback)})
    return server.submits(user, values).payload


def press(**fields):
    base = {"type": "block_actions", "user": USER, "trigger_id": "1.2.3", "response_url": "https://example.com/r"}
    container = {"type": "message", "message_ts": TS, "channel_id": ROOM}
    return base | {"container": container, "channel": {"id": ROOM}, "actions": [{"value": "t-allow"}]} | fields


def submission(memory="", callback=FORM, **view):
    metadata = json.dumps({"token": "t-deny", "memory": memory})
    state = {"values": {"reason": {"text": {"value": "no"}}}}
    shown = {"id": "V1", "callback_id": callback, "private_metadata": metadata, "state": state} | view
    return {"type": "view_submission", "user": USER, "view": shown}


def shortcut(text="hello", **fields):
    message = {"type": "message", "user": BOB, "ts": TS, "text": text}
    base = {"type": "message_action", "callback_id": ASK, "trigger_id": "1.2.3", "user": USER}
    return base | {"channel": {"id": ROOM}, "message": message} | fields


def command(text="status", **fields):
    base = {"command": "/lodger", "text": text, "channel_id": ROOM, "user_id": ALICE, "user_name": "alice"}
    return base | {"team_id": TEAM, "trigger_id": "1.2.3", "response_url": "https://example.com/r"} | fields


# What an act entitles to


@pytest.mark.parametrize("root", [None, ROOT])
def test_what_an_act_entitles_to_is_kept_in_its_event(root):
    reply = Reply(url="https://example.com/r", trigger="1.2.3", channel=ROOM, ts=TS, root=root)

    assert unpacked(reply.packed()) == reply


@pytest.mark.parametrize(
    "acknowledge",
    [None, "", "x", "null", "5", "[]", '"x"', '{"other": "x"}', "{", "of another platform"],
)
def test_what_is_nothing_of_slacks_entitles_to_nothing(acknowledge):
    assert unpacked(acknowledge) == Reply()


# Presses


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_press_says_who_pressed_what_and_where(in_thread):
    server = workspace()
    root = server.user_says(ROOM, BOB, "look") if in_thread else None
    ts = card(server, thread=root)
    payload = server.presses(ALICE, ROOM, ts, "Deny").payload
    url, trigger = payload["response_url"], payload["trigger_id"]

    assert parse_press(payload) == Act(
        key=f"p/{trigger}",
        user=ALICE,
        team=TEAM,
        name="alice",
        token="t-deny",
        channel=ROOM,
        ts=ts,
        root=root,
        reply=Reply(url=url, trigger=trigger, channel=ROOM, ts=ts, root=root),
    )
    assert parse_press(payload).card == (f"{root}:{ts}" if root else ts)


def test_a_press_below_a_root_with_replies_is_none_in_a_thread():
    container = {"message_ts": TS, "thread_ts": TS, "channel_id": ROOM}

    assert parse_press(press(container=container)).root is None


def test_two_presses_are_two_and_one_that_is_told_again_is_one():
    server = workspace()
    ts = card(server)
    first, second = (server.presses(ALICE, ROOM, ts, "Allow").payload for _ in range(2))

    assert parse_press(first).key != parse_press(second).key
    assert parse_press(json.loads(json.dumps(first))) == parse_press(first)


def test_a_press_on_a_home_screen_is_on_no_message():
    server = workspace()
    server.views.publish({"user_id": ALICE, "view": draw_home(()) | {"blocks": list(draw_card(CARD).blocks)}})
    payload = server.presses_in_view(ALICE, "Allow").payload
    act = parse_press(payload)

    assert (act.channel, act.ts, act.root, act.card, act.token) == ("", "", None, "", "t-allow")
    assert act.reply == Reply(trigger=payload["trigger_id"])


def test_somebody_of_another_workspace_is_told_as_such():
    server = workspace()
    ts = card(server, channel=SHARED)

    assert parse_press(server.presses(EXTERNAL, SHARED, ts, "Allow").payload).team == OTHER_TEAM


@pytest.mark.parametrize(
    ("fields", "team", "name"),
    [
        ({"user": {"id": ALICE, "username": "al"}, "team": {"id": TEAM}}, TEAM, "al"),
        ({"user": {"id": ALICE}, "team": None}, "", ""),
        ({"user": {"id": ALICE, "team_id": OTHER_TEAM}, "team": {"id": TEAM}}, OTHER_TEAM, ""),
    ],
)
def test_who_pressed_is_read_from_what_there_is(fields, team, name):
    act = parse_press(press(**fields))

    assert (act.team, act.name) == (team, name)


def test_where_it_was_pressed_is_read_from_what_there_is():
    assert parse_press(press(container={"message_ts": TS})).channel == ROOM
    assert parse_press(press(container={"message_ts": TS, "channel_id": "C1"})).channel == "C1"


@pytest.mark.parametrize(
    "fields",
    [
        *({"type": other} for other in [None, "view_submission", "message_action", "shortcut", "block_suggestion"]),
        *({"actions": other} for other in [*BESIDE, [{}], [{"value": 5}], [{"action_id": "x", "type": "button"}]]),
        *({"container": other} for other in [*BESIDE, {"type": "view", "view_id": "V1"}, {"message_ts": 5}]),
        *({"user": other} for other in [*BESIDE, {"id": 5}, {"name": "alice"}]),
        *({"trigger_id": other} for other in [None, "", 5]),
        *({"container": {"message_ts": TS}, "channel": other} for other in BESIDE),
    ],
)
def test_what_is_no_press_of_a_button_of_the_app_is_none(fields):
    assert parse_press(press()) is not None
    assert parse_press(press(**fields)) is None


def test_a_press_in_a_form_is_none():
    assert parse_press(press(container={"type": "view", "view_id": "V1"}, view={"type": "modal", "id": "V1"})) is None


# Forms


@pytest.mark.parametrize(("values", "text"), [({"reason": "too <late> & loud"}, "too <late> & loud"), (None, "")])
def test_a_form_says_what_was_written_and_for_which_press(values, text):
    server = workspace()
    reply = Reply(url="https://example.com/r", trigger="1.2.3", channel=ROOM, ts=TS, root=ROOT)
    payload = sent(server, REASON, remembered(reply), values=values)

    assert parse_form(payload) == (
        FORM,
        Act(
            key=f"v/{payload['view']['id']}",
            user=ALICE,
            team=TEAM,
            name="alice",
            token="t-deny",
            channel=ROOM,
            ts=TS,
            root=ROOT,
            values=(("reason", text),),
            reply=Reply(url="https://example.com/r"),
        ),
    )


def test_a_form_of_a_home_screen_is_on_no_message():
    _, act = parse_form(sent(workspace(), REASON, remembered(Reply(trigger="1.2.3"))))

    assert (act.channel, act.card, act.reply) == ("", "", Reply())


def test_a_form_that_is_sent_again_is_the_same():
    server = workspace()
    payload = sent(server, REASON, remembered(Reply(channel=ROOM, ts=TS)))
    again = server.submits(ALICE).payload

    assert payload["trigger_id"] != again["trigger_id"]
    assert parse_form(payload) == parse_form(again)


def test_what_a_question_is_about_is_remembered_with_its_author():
    server = workspace()
    ts = server.user_says(ROOM, BOB, "the <plan> is &amp; was")
    trigger, memory = parse_shortcut(server.uses_shortcut(ASK, ALICE, ROOM, ts).payload)
    payload = sent(server, QUESTION_FORM, memory, ASK, {QUESTION: "Why?"})
    callback, act = parse_form(payload)

    assert trigger
    assert (callback, act.user, act.values) == (ASK, ALICE, ((QUESTION, "Why?"),))
    assert (act.quote, act.channel, act.card) == (("the <plan> is &amp; was", BOB), ROOM, ts)


@pytest.mark.parametrize(
    "memory",
    [
        "",
        "x",
        "null",
        "5",
        '"abcd"',
        "[]",
        '["C0ROOM", "1.2", null]',
        '{"a": 1, "b": 2, "c": 3, "d": 4}',
        "[1, 2, 3, 4]",
        '["C0ROOM", "1.2", 3, ""]',
        '["C0ROOM", null, null, ""]',
        '[null, "1.2", null, ""]',
        '["C0ROOM", "1.2", null, null]',
        '["C0ROOM", "1.2", null, "", 5]',
        '["C0ROOM", "1.2", null, "", "U0ALICE", "more"]',
    ],
)
@pytest.mark.parametrize("callback", [FORM, ASK])
def test_a_form_that_remembers_something_else_is_none_of_the_apps(memory, callback):
    assert parse_form(submission(json.dumps([ROOM, TS, None, ""]), callback)) is not None
    assert parse_form(submission(memory, callback)) is None


@pytest.mark.parametrize(
    "fields",
    [
        *({"callback_id": other} for other in [None, "", 5, "another form"]),
        *({"private_metadata": other} for other in [None, "", "x", {}, "[]", '{"token": "t"}']),
        {"id": None},
        {"id": ""},
    ],
)
def test_a_form_of_somebody_else_is_none(fields):
    assert parse_form(submission(json.dumps([ROOM, TS, None, ""]), **fields)) is None


@pytest.mark.parametrize("other", BESIDE)
def test_a_form_of_nobody_or_that_was_not_sent_is_none(other):
    whole = submission(json.dumps([ROOM, TS, None, ""]))

    assert parse_form(whole | {"user": other}) is None
    assert parse_form(whole | {"view": other}) is None
    assert parse_form(whole | {"type": other}) is None
    assert parse_form(whole | {"type": "view_closed"}) is None


@pytest.mark.parametrize(
    ("state", "values"),
    [
        (None, ()),
        ({"values": None}, ()),
        ({"values": {"reason": None}}, (("reason", ""),)),
        ({"values": {"reason": {"other": {"value": "x"}}}}, (("reason", ""),)),
        ({"values": {"reason": {"text": {"value": None}}}}, (("reason", ""),)),
        ({"values": {"a": {"text": {"value": "x"}}, "b": {"text": {"value": "y"}}}}, (("a", "x"), ("b", "y"))),
    ],
)
def test_a_field_that_was_left_empty_is_an_empty_text(state, values):
    _, act = parse_form(submission(json.dumps([ROOM, TS, None, ""]), state=state))

    assert act.values == values


# "Ask about this"


def test_a_question_about_a_reply_remembers_its_thread():
    server = workspace()
    root = server.user_says(ROOM, BOB, "look")
    reply = server.user_says(ROOM, BOB, "here", root)
    about = [parse_shortcut(server.uses_shortcut(ASK, ALICE, ROOM, ts).payload) for ts in (root, reply)]

    assert [json.loads(memory) for _, memory in about] == [
        [ROOM, root, None, "look", BOB],
        [ROOM, reply, root, "here", BOB],
    ]


@given(
    st.text(max_size=1200)
    | st.sampled_from(["x", "ж", "你", "🙂", "\\", '"', "\n", "\x00", "\ud83d"]).map(lambda char: char * 2000)
)
def test_any_message_can_be_asked_about_and_its_beginning_is_remembered(text):
    _, memory = parse_shortcut(shortcut(text, channel={"id": "C" * 12}))
    view = checked_view(draw_form(QUESTION_FORM, memory=memory, callback=ASK), "modal")
    _, act = parse_form({"type": "view_submission", "user": USER, "view": view | {"id": "V1"}})

    assert text.startswith(act.quote[0])
    assert len(act.quote[0]) == min(len(text), 800) or len(act.quote[0]) >= 190
    assert act.quote[1] == BOB


def test_a_message_of_no_words_and_nobody_can_be_asked_about():
    _, memory = parse_shortcut(shortcut(message={"ts": TS, "text": None}))

    assert json.loads(memory) == [ROOM, TS, None, "", ""]


@pytest.mark.parametrize(
    "fields",
    [
        *({"type": other} for other in [None, "shortcut", "block_actions"]),
        *({"callback_id": other} for other in [None, "", "another"]),
        *({"message": other} for other in [*BESIDE, {"ts": 5}]),
        *({"channel": other} for other in [*BESIDE, {"id": 5}]),
    ],
)
def test_any_other_shortcut_is_none(fields):
    assert parse_shortcut(shortcut()) is not None
    assert parse_shortcut(shortcut(**fields)) is None


# Commands


def test_a_command_says_who_gave_it_where():
    server = workspace()
    payload = server.runs_command("/lodger", "remember this", ALICE, ALICE_DM).payload
    url, trigger = payload["response_url"], payload["trigger_id"]

    assert parse_command(payload) == (
        Act(
            key=f"c/{trigger}",
            user=ALICE,
            team=TEAM,
            name="alice",
            channel=ALICE_DM,
            reply=Reply(url=url, trigger=trigger),
        ),
        "/remember this",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("status", "/status"),
        ("/status", "/status"),
        ("  mode ask  ", "/mode ask"),
        ("//status", "//status"),
        ("", "/help"),
        ("  ", "/help"),
        ("/", "/help"),
        (None, "/help"),
        (5, "/help"),
    ],
)
def test_a_command_is_read_as_it_would_be_typed_and_an_empty_one_asks_for_help(text, words):
    assert parse_command(command(text))[1] == words


@pytest.mark.parametrize("name", ["command", "channel_id", "user_id", "trigger_id"])
@pytest.mark.parametrize("other", [None, "", 5, {}])
def test_a_command_of_nobody_or_nowhere_is_none(name, other):
    assert parse_command(command(**{name: other})) is None


def test_each_act_is_of_one_kind():
    memory = json.dumps([ROOM, TS, None, ""])
    acts = (press(), submission(memory), shortcut(), command(), {}, {"type": "event_callback", "event": {}})
    kinds = [
        [reader(act) is not None for reader in (parse_press, parse_form, parse_shortcut, parse_command)] for act in acts
    ]

    assert kinds == [[one == act for one in range(4)] for act in range(6)]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from([TS, ROOM, "home", "[]"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "type", "ts", "value"]), inner),
    max_leaves=6,
)
NAMES = ["user", "actions", "container", "view", "channel", "message", "trigger_id", "response_url", "team", "text"]


@given(
    st.sampled_from([press(), submission(), shortcut(), command()]),
    st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=5),
)
def test_any_act_is_read_or_is_none_and_never_breaks_the_host(payload, fields):
    changed = payload | fields

    for reader in (parse_press, parse_form, parse_shortcut, parse_command):
        assert reader(changed) is None or isinstance(reader(changed), Act | tuple)
