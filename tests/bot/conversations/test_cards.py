"""Cards: what people read before they decide, and the short tokens of their buttons."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.cards import (
    CHOICES,
    ApprovalPress,
    CommitPress,
    GroupPress,
    approval_card,
    asks_about_group,
    commit_card,
    group_card,
    parse_token,
    reminder_card,
    reminder_id,
    shown_call,
    waiting_card,
    waiting_id,
)
from core.contracts.ids import new_id
from core.contracts.memory import MemoryCommit
from core.contracts.permissions import ApprovalState, Decision, DecisionScope
from tests.core.stores.samples import START, approval

BERLIN = ZoneInfo("Europe/Berlin")
LONGEST_TOKEN_CHARS = 40


def asked(tool: str = "shell", arguments: str = '{"command":"ls"}', **changes):
    return replace(approval(new_id("apr"), "call-1"), tool=tool, shown=arguments, **{"remember": "", **changes})


def decided(
    state: ApprovalState, *, scope: DecisionScope = DecisionScope.ONCE, remember: str = "", edited: str | None = None
):
    approve = state is ApprovalState.APPROVED
    decision = Decision(approve=approve, by="person-1", by_name="Alice", scope=scope, edited=edited)
    at = START + timedelta(minutes=5)
    return asked(state=state, decision=decision, decided_at=at, remember=remember)


def tokens(card) -> list[str]:
    return [button.token for row in card.rows for button in row]


def labels(card) -> list[str]:
    return [button.label for row in card.rows for button in row]


def commit(message: str = "note it", *paths: str) -> MemoryCommit:
    return MemoryCommit(
        revision="0123456789" * 4,
        parent=None,
        author="agent",
        message=message,
        committed_at=datetime(2026, 1, 1, tzinfo=UTC),
        paths=paths or ("notes.md",),
    )


HEREDOC = "cat > plan.md <<'END'\n" + "\n".join(f"line {number} of a long plan" for number in range(270)) + "\nEND"
HARD = {
    "a long tool name": asked(tool="a_tool_of_a_server_" + "with_a_very_long_name_" * 5),
    "a path that is no ASCII": asked("write", json.dumps({"path": "заметки/планы-на-неделю.md", "text": "ü"})),
    "a command of 6,000 characters": asked(arguments=json.dumps({"command": HEREDOC})),
}


@pytest.mark.parametrize("hard", HARD.values(), ids=list(HARD))
def test_tokens_stay_short_whatever_the_call_is(hard):
    """C26 A, B, C."""
    card = approval_card([replace(hard, remember="shell: make *")], BERLIN)
    assert len(tokens(card)) == 6
    for token in [*tokens(card), *tokens(waiting_card([hard])), *tokens(reminder_card([hard]))]:
        assert token.isascii()
        assert len(token) <= LONGEST_TOKEN_CHARS


def test_the_tokens_of_a_commit_stay_short():
    for token in tokens(commit_card(commit())):
        assert len(token) <= LONGEST_TOKEN_CHARS


def test_the_whole_command_is_shown():
    """C26 C: people approve what they can read."""
    assert len(HEREDOC) > 6_000
    assert approval_card([HARD["a command of 6,000 characters"]], BERLIN).code == HEREDOC


def test_every_argument_of_another_tool_is_shown_whole():
    shown = shown_call("write", json.dumps({"path": "заметки/планы.md", "text": "one\ntwo", "mode": 7}))
    assert shown == "write\npath: заметки/планы.md\ntext:\none\ntwo\nmode: 7"


def test_a_command_with_more_arguments_shows_them_too():
    shown = shown_call("shell", '{"command":"ls","timeout_seconds":600}')
    assert "command: ls" in shown
    assert "timeout_seconds: 600" in shown


def test_arguments_that_are_no_json_are_shown_as_they_are():
    assert shown_call("shell", "{broken") == "shell {broken"


@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.lists(st.text())))
def test_no_text_of_a_call_is_left_out(arguments):
    shown = shown_call("tool", json.dumps(arguments))
    for value in arguments.values():
        if isinstance(value, str):
            assert value in shown


def test_an_open_card_says_until_when_and_what_no_answer_means():
    text = approval_card([asked()], BERLIN).text
    assert "May I run shell? Why I ask: asks by default." in text
    assert "Undecided by 02 Jan 13:00, it is not run." in text


def test_only_a_rule_that_exists_can_be_remembered_and_it_stands_on_its_button():
    assert labels(approval_card([asked()], BERLIN)) == ["Approve", "Deny", "Deny…", "Edit…"]
    card = approval_card([asked(remember="shell: make *")], BERLIN)
    assert labels(card)[4:] == ["Approve for this conversation", "Always: shell: make *"]


def test_several_calls_are_numbered_in_text_code_and_buttons():
    card = approval_card([asked(arguments='{"command":"one"}'), asked(arguments='{"command":"two"}')], BERLIN)
    assert card.code == "1. one\n\n2. two"
    assert labels(card) == [f"{number}: {what}" for number in (1, 2) for what in ("Approve", "Deny", "Deny…", "Edit…")]
    assert len(set(tokens(card))) == 8


def test_what_is_decided_loses_its_buttons_and_keeps_its_place():
    card = approval_card([decided(ApprovalState.DENIED), asked()], BERLIN)
    assert labels(card) == ["2: Approve", "2: Deny", "2: Deny…", "2: Edit…"]
    assert card.text.splitlines()[0] == "1. Denied by Alice at 13:05."


@pytest.mark.parametrize(
    ("approval_then", "line"),
    [
        (decided(ApprovalState.APPROVED), "Approved by Alice at 13:05."),
        (
            decided(ApprovalState.APPROVED, scope=DecisionScope.CONVERSATION),
            "Approved for this conversation by Alice at 13:05.",
        ),
        (
            decided(ApprovalState.APPROVED, scope=DecisionScope.ALWAYS, remember="shell: ls"),
            "Approved always (shell: ls) by Alice at 13:05.",
        ),
        (decided(ApprovalState.DENIED), "Denied by Alice at 13:05."),
        (asked(state=ApprovalState.EXPIRED), "Expired: nobody decided in time. It was not run."),
        (asked(state=ApprovalState.VOID), "No longer needed: the turn was stopped. It was not run."),
    ],
)
def test_a_settled_card_says_how_it_ended_and_still_shows_the_call(approval_then, line):
    card = approval_card([approval_then], BERLIN)
    assert card.text == line
    assert card.rows == ()
    assert card.code == "ls"


def test_the_buttons_that_open_a_form_and_no_others_are_known_as_such():
    card = approval_card([asked(remember="shell: ls")], BERLIN)
    forms = [(button.label, button.token[-2:]) for row in card.rows for button in row if button.opens_form]
    assert forms == [("Deny…", ":r"), ("Edit…", ":e")]


def test_a_card_of_an_edited_call_says_so_and_shows_what_was_asked_and_what_it_became():
    card = approval_card([decided(ApprovalState.APPROVED, edited='{"command":"ls -l"}')], BERLIN)
    assert card.text == "Approved with changes by Alice at 13:05."
    assert card.code == "ls\n\nchanged to:\nls -l"
    assert card.rows == ()


def test_every_token_means_what_its_button_said():
    one = asked(remember="shell: ls")
    pressed = [parse_token(token) for token in tokens(approval_card([one], BERLIN))]
    assert pressed == [ApprovalPress(approval_id=one.id, choice=choice) for choice in ("y", "n", "r", "e", "c", "w")]
    assert set(CHOICES.values()) == {"y", "n", "c", "w"}
    assert [parse_token(token) for token in tokens(commit_card(commit()))] == [
        CommitPress(act="diff", revision="0123456789" * 2),
        CommitPress(act="undo", revision="0123456789" * 2),
    ]


@pytest.mark.parametrize(
    "token", ["", "a", "a:apr-1", "a:apr-1:x", "a:apr-1:y:z", "ap:ap1:yes", "yes", "d", "x:1", ":"]
)
def test_no_other_token_means_anything(token):
    assert parse_token(token) is None


@given(st.text(max_size=64))
def test_no_text_of_a_stranger_breaks_the_parser(token):
    press = parse_token(token)
    assert press is None or token.startswith(("a:", "d:", "u:", "g:"))


def test_a_notice_of_several_open_calls_leaves_the_choice_to_their_own_card():
    many = [asked(), asked(tool="write")]
    for card in (waiting_card(many), reminder_card(many)):
        assert card.rows == ()
        assert "shell, write" in card.text


def test_notices_have_one_id_for_each_approval():
    one, other = asked(), asked()
    assert len({waiting_id(one), reminder_id(one), waiting_id(other), reminder_id(other)}) == 4


def test_a_commit_is_one_silent_line():
    card = commit_card(commit("note it", "a.md", "b.md", "c.md", "d.md"))
    assert card.text == "Remembered: note it (a.md, b.md, c.md …)"
    assert card.silent


def test_the_question_about_a_group_has_two_answers():
    assert labels(group_card()) == ["Allow here", "Leave"]
    assert [parse_token(token) for token in tokens(group_card())] == [GroupPress(allow=True), GroupPress(allow=False)]


def test_the_question_about_a_group_is_known_until_it_is_settled():
    assert asks_about_group(group_card("in other words"))
    assert not asks_about_group(replace(group_card(), rows=()))
    assert not asks_about_group(commit_card(commit()))


@pytest.mark.parametrize("token", ["g", "g:", "g:stay", "g:allow:x", "G:allow"])
def test_nothing_else_answers_for_a_group(token):
    assert parse_token(token) is None
