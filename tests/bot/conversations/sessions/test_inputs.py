"""What a client may send, and what it is told when it sends something else."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.sessions.inputs import (
    CancelAsked,
    Decided,
    InputEnded,
    Pinged,
    ToolAnswered,
    ToolsGiven,
    UserSaid,
    read_input,
    read_object,
)
from bot.conversations.sessions.protocol import LINE_LIMIT_BYTES
from core.contracts.agents import QueueMode
from core.contracts.errors import InvalidInput

GOOD = [
    ({"type": "user", "text": "hi"}, UserSaid(text="hi", id="", mode=None)),
    (
        {"type": "user", "text": "hi", "id": "m1", "mode": "after_turn"},
        UserSaid(text="hi", id="m1", mode=QueueMode.AFTER_TURN),
    ),
    (
        {"type": "decision", "approval_id": "apr-1", "choice": "deny", "feedback": "no"},
        Decided(approval_id="apr-1", choice="deny", feedback="no"),
    ),
    ({"type": "cancel"}, CancelAsked()),
    ({"type": "tools", "tools": []}, ToolsGiven(tools=())),
    ({"type": "tool_result", "call_id": "c", "text": ""}, ToolAnswered(call_id="c", text="", is_error=False)),
    (
        {"type": "tool_result", "call_id": "c", "content": [{"type": "text", "text": "a"}], "is_error": True},
        ToolAnswered(call_id="c", text="a", is_error=True),
    ),
    ({"type": "ping"}, Pinged(id="")),
    ({"type": "end"}, InputEnded()),
]


@pytest.mark.parametrize(("data", "said"), GOOD, ids=[f"{n} {data['type']}" for n, (data, _) in enumerate(GOOD)])
def test_every_input_is_read_for_what_it_is(data, said):
    assert read_input(read_object(json.dumps(data).encode())) == said


BAD = [
    ({}, "unknown type None"),
    ({"type": "shout"}, "unknown type 'shout'; the types are user, decision,"),
    ({"type": ["user"]}, "unknown type"),
    ({"type": "user"}, "'user' needs 'text': a text"),
    ({"type": "user", "text": 3}, "'text' is not a text"),
    ({"type": "user", "text": " \n"}, "'text' says nothing"),
    ({"type": "user", "text": "x", "mode": "later"}, "'mode' is not one of steer, after_turn, interrupt"),
    ({"type": "user", "text": "x", "id": "i" * 129}, "'id' is longer than 128 characters"),
    ({"type": "user", "text": "x", "colour": "teal"}, "'user' has no field 'colour'"),
    ({"type": "decision", "approval_id": "a"}, "'decision' needs 'choice': one of approve,"),
    ({"type": "decision", "approval_id": "a", "choice": ["approve"]}, "'choice' is not one of approve,"),
    ({"type": "cancel", "turn_id": "t"}, "'cancel' has no field 'turn_id'"),
    ({"type": "tools", "tools": {}}, "'tools' is not a list"),
    ({"type": "tool_result", "call_id": "c"}, "'tool_result' needs 'content': a list"),
    ({"type": "tool_result", "call_id": "c", "text": "x", "is_error": "no"}, "'is_error' is not true or false"),
    ({"type": "tool_result", "call_id": "c", "text": "x", "content": []}, "has no field 'content'"),
    ({"type": "tool_result", "call_id": "c", "content": [{"type": "image"}]}, "'content' holds something else"),
]


@pytest.mark.parametrize(("data", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_what_is_wrong_is_named(data, reason):
    with pytest.raises(InvalidInput) as refused:
        read_input(data)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not UTF-8"),
        (b'{"type": "user", "text": NaN}', "NaN is no JSON value"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (LINE_LIMIT_BYTES + 1), "longer than 10000000 bytes"),
    ],
    ids=["empty", "cut", "list", "latin", "nan", "deep", "long"],
)
def test_a_line_that_is_no_object_is_refused(line, reason):
    with pytest.raises(InvalidInput, match=reason):
        read_object(line)


def test_text_that_nothing_can_store_is_cleaned():
    said = read_input(read_object(b'{"type": "user", "text": "a\\ud800b\\u0000"}'))
    assert isinstance(said, UserSaid)
    assert said.text == "a\ufffdb"


@given(
    st.dictionaries(
        st.sampled_from(["type", "text", "id", "mode", "tools", "call_id", "content", "choice", "approval_id"]),
        st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists, max_leaves=5)
        | st.sampled_from(["user", "decision", "tool_result", "tools", "ping", "cancel", "end"]),
    )
)
def test_whatever_comes_is_read_or_refused(data):
    with suppress(InvalidInput):
        assert read_input(data) is not None
