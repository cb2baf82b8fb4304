"""The forms of an approval: what is asked for, what stands there at first, and what comes back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.cards import ApprovalPress, parse_token
from bot.conversations.forms import (
    ARGUMENTS,
    FIELD_LIMIT_UTF16,
    NOTHING_DECIDED,
    REASON,
    Written,
    deny_form,
    edit_form,
    read_edit,
)
from channels.chunking import measure
from channels.contract import Form, TextUnit
from core.contracts.ids import new_id
from core.permissions.approvals import binding_hash
from tests.core.stores.samples import approval

TITLE_LIMIT, LABEL_LIMIT, FIELDS_LIMIT = 24, 45, 5
"""As `channels.contract.Form` promises every adapter."""


def asked(arguments, tool: str = "shell"):
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return replace(approval(new_id("apr"), "call-1"), tool=tool, shown=shown)


def fields_of(arguments) -> dict[str, str]:
    form = edit_form(asked(arguments), str)
    assert isinstance(form, Form), form
    return {field.name: field.value for field in form.fields}


def sent(form: Form, **changes) -> dict[str, str]:
    """Return what comes back from a form in which a person changed some fields."""
    return {field.name: field.value for field in form.fields} | changes


def test_a_denial_asks_for_its_reason_in_several_lines():
    one = asked({"command": "ls"})
    form = deny_form(one)
    (field,) = form.fields
    assert (field.name, field.required, field.value) == (REASON, True, "")
    assert field.lines > 1
    assert parse_token(form.token) == ApprovalPress(approval_id=one.id, choice="r")


def test_a_call_of_texts_has_a_field_for_each_with_what_was_shown():
    arguments = {"path": "notes/a.md", "text": "one\ntwo"}
    form = edit_form(asked(arguments, "write"), str)
    assert sent(form) == arguments
    path, text = form.fields
    assert path.lines == 1
    assert text.lines > 1
    assert not any(field.required for field in form.fields), "an argument may be emptied"


def test_a_line_that_is_long_has_room():
    (field,) = edit_form(asked({"command": "x" * 400}), str).fields
    assert field.lines > 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls", "timeout_seconds": 60},
        {"changes": [{"kind": "delete", "path": "a.md"}]},
        {},
        {f"name_{number}": "text" for number in range(FIELDS_LIMIT + 1)},
        {"": "no name"},
        {"a name of spaces": "text"},
        {"n" * 50: "text"},
        {"text": "a bell \x07"},
        {"text": "nothing \0"},
        {"text": "of another system\r\n"},
    ],
    ids=["a number", "a list", "nothing", "many", "no name", "spaces", "a long name", "a control", "a NUL", "a return"],
)
def test_every_other_call_has_one_field_in_json(arguments):
    fields = fields_of(arguments)
    assert list(fields) == [ARGUMENTS]
    assert json.loads(fields[ARGUMENTS]) == arguments


def test_the_json_is_written_for_people():
    assert fields_of({"n": 1, "t": "ü"})[ARGUMENTS] == '{\n  "n": 1,\n  "t": "ü"\n}'


@pytest.mark.parametrize("text", ["x" * FIELD_LIMIT_UTF16, "😀" * (FIELD_LIMIT_UTF16 // 2)])
def test_a_text_as_long_as_a_field_can_be_edited_and_one_that_is_longer_cannot(text):
    """Cut, it would be another call; an emoji counts as two."""
    assert isinstance(edit_form(asked({"text": text}), str), Form)
    assert "too long" in edit_form(asked({"text": text + "x"}), str)
    assert "too long" in edit_form(asked({"text": text, "n": 1}), str)


def test_a_call_with_a_secret_cannot_be_edited():
    """In the form it would be masked, and what came back would be another call."""
    told = edit_form(asked({"command": "login hunter2222"}), lambda text: text.replace("hunter2222", "[secret]"))
    assert "secret" in told
    assert "hunter2222" not in told


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.lists(st.text()), max_size=7))
def test_a_form_is_within_what_every_platform_takes_and_unchanged_it_is_the_same_call(arguments):
    one = asked(arguments)
    form = edit_form(one, str)
    assert isinstance(form, Form)
    assert 1 <= len(form.fields) <= FIELDS_LIMIT
    assert len(form.title) <= TITLE_LIMIT
    for field in form.fields:
        assert 0 < len(field.label) <= LABEL_LIMIT
        assert measure(field.value, TextUnit.UTF16) <= FIELD_LIMIT_UTF16
    written = read_edit(one, sent(form))
    assert written.fault == ""
    assert binding_hash("t", written.arguments) == binding_hash("t", one.shown)


def test_the_titles_and_buttons_fit_every_platform():
    for form in (deny_form(asked({})), edit_form(asked({}), str)):
        assert len(form.title) <= TITLE_LIMIT
        assert len(form.send_label) <= TITLE_LIMIT


def test_the_arguments_are_exactly_what_was_written():
    one = asked({"command": "make x"})
    written = read_edit(one, {"command": '  make "y"\n\n'})
    assert json.loads(written.arguments) == {"command": '  make "y"\n\n'}


def test_an_argument_may_be_emptied():
    assert json.loads(read_edit(asked({"text": "a"}), {"text": ""}).arguments) == {"text": ""}


def test_fields_that_were_not_asked_for_are_no_arguments():
    written = read_edit(asked({"command": "ls"}), {"command": "ls -l", "network": "yes"})
    assert json.loads(written.arguments) == {"command": "ls -l"}


def test_json_is_kept_as_it_was_written():
    text = '{ "timeout_seconds" : 6e1, "command": "\\u006cs" }'
    assert read_edit(asked({"command": "ls", "timeout_seconds": 60}), {ARGUMENTS: text}) == Written(arguments=text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "make y",
        "[1]",
        '"text"',
        "null",
        '{"n": 1',
        '{"n": NaN}',
        '{"n": 1, "n": 2}',
        "{'n': 1}",
        "[" * 3000,
        '{"n": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_object_in_json_is_answered_with_words(text):
    written = read_edit(asked({"n": 1}), {ARGUMENTS: text})
    assert written.arguments == ""
    assert NOTHING_DECIDED in written.fault


def test_json_that_breaks_off_is_shown_where():
    assert "line 2" in read_edit(asked({"n": 1}), {ARGUMENTS: '{\n  "n": ,\n}'}).fault


@pytest.mark.parametrize("values", [{}, {"reason": "x"}, {ARGUMENTS: "{}"}])
def test_a_form_that_came_back_without_its_fields_is_no_edit(values):
    assert NOTHING_DECIDED in read_edit(asked({"command": "ls"}), values).fault


def test_a_form_of_json_that_came_back_without_it_is_no_edit():
    assert NOTHING_DECIDED in read_edit(asked({"n": 1}), {"n": "1"}).fault
