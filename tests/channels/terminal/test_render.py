"""What a chat looks like in a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.terminal.render import TerminalChat, clean, exact

COMMAND = "rm -rf build\nmake all"


def preview(text, message="m1"):
    return {"type": "preview", "external_id": message, "text": text}


def text(markdown, message="m1"):
    return {"type": "shown", "external_id": message, "content": {"markdown": markdown, "silent": False}}


def card(said, *labels, message="c1", code=COMMAND, token="t"):
    row = [{"token": f"{token}-{label}", "label": label, "style": "normal"} for label in labels]
    content = {"text": said, "code": code, "rows": [row] if row else [], "silent": False}
    return {"type": "shown", "external_id": message, "content": content}


def drawn(*events):
    chat = TerminalChat("lodger")
    return "".join(chat.draw(event) for event in events)


def test_an_answer_that_comes_whole_is_one_line_with_the_agents_name():
    assert drawn(text("Hello.")) == "lodger: Hello.\n"


def test_a_growing_answer_is_printed_as_it_grows_and_ended_once():
    assert drawn(preview("Hel"), preview("Hello"), preview("Hello"), text("Hello!")) == "lodger: Hello!\n"


def test_a_preview_that_was_taken_back_is_printed_again_as_it_ended():
    assert drawn(preview("Wrong way"), preview("Right"), text("Right.")) == "lodger: Wrong way\nlodger: Right.\n"


def test_another_message_under_a_growing_one_begins_its_own_line():
    screen = drawn(
        preview("Let me", "m1"), card("Run?", "Yes"), {"type": "notice", "text": "Noted"}, text("Done", "m2")
    )
    assert screen == (
        "lodger: Let me\nlodger: Run?\n    rm -rf build\n    make all\n  #1 Yes\n  (Noted)\nlodger: Done\n"
    )


def test_a_card_shows_every_line_of_the_command_and_numbers_its_buttons():
    assert drawn(card("May I?", "Approve", "Deny")) == (
        "lodger: May I?\n    rm -rf build\n    make all\n  #1 Approve  #2 Deny\n"
    )


def test_no_button_opens_a_form_in_a_terminal_and_none_takes_a_number():
    chat, asked = TerminalChat("lodger"), card("May I?", "Approve", "Deny…", "Deny")
    asked["content"]["rows"][0][1]["opens_form"] = True
    asked["content"]["rows"].append([{"token": "e", "label": "Edit…", "style": "normal", "opens_form": True}])

    assert chat.draw(asked) == "lodger: May I?\n    rm -rf build\n    make all\n  #1 Approve  #2 Deny\n"
    assert chat.press("#2") == ("t-Deny", "c1")
    assert chat.press("#3") is None


def test_a_settled_card_says_what_was_decided_without_the_command():
    settled = card("Approved by Ada.")
    assert drawn(card("May I?", "Approve"), settled).endswith("  #1 Approve\nlodger: Approved by Ada.\n")


def test_a_card_that_is_delivered_again_unchanged_is_not_printed_again():
    once = drawn(card("May I?", "Approve"))
    assert drawn(card("May I?", "Approve"), card("May I?", "Approve")) == once


def test_what_has_no_line_of_its_own_prints_nothing():
    for event in ({"type": "ready"}, {"type": "status", "status": "thinking"}, {"type": "said", "text": "x"}, {}):
        assert drawn(event) == ""


def test_a_number_presses_the_button_it_stands_before():
    chat = TerminalChat("lodger")
    chat.draw(card("One?", "Yes", "No", message="c1", token="one"))
    chat.draw(card("Two?", "Yes", message="c2", token="two"))

    assert chat.press("#2") == ("one-No", "c1")
    assert chat.press(" #3 \n") == ("two-Yes", "c2")


def test_a_button_keeps_its_number_when_its_card_changes():
    chat = TerminalChat("lodger")
    chat.draw(card("One?", "Yes", "No"))
    chat.draw(card("One, still?", "Yes", "No"))
    assert chat.press("#2") == ("t-No", "c1")


@pytest.mark.parametrize("typed", ["yes", "1", "# 1", "#1 please", "##1", "#", "#0001", "approve", "#x", "#²"])
def test_no_other_text_presses_anything(typed):
    chat = TerminalChat("lodger")
    chat.draw(card("Run?", "Approve"))
    assert chat.press(typed) is None
    assert not chat.is_press(typed)


def test_a_number_that_no_button_has_is_still_no_message():
    chat = TerminalChat("lodger")
    chat.draw(card("Run?", "Approve"))
    assert chat.press("#7") is None
    assert chat.is_press("#7")


def test_nothing_that_is_shown_moves_the_cursor_or_writes_an_escape():
    evil = "a\x1b[2J\rb\x07\x9b1m\x00c"
    screen = drawn(preview(evil, "m0"), text(evil), card(evil, evil, code=evil), {"type": "notice", "text": evil})
    assert not set(screen) & {"\x1b", "\r", "\x07", "\x9b", "\x00"}
    assert screen.count("a[2Jb1mc") == 5


def test_the_command_on_a_card_hides_nothing_that_would_run():
    screen = drawn(card("Run?", "Yes", code="echo a\rrm -rf b \u202e# safe\u2028\x1b[8m\n\tok"))
    assert screen == "lodger: Run?\n    echo a\\rrm -rf b \\u202e# safe\\u2028\\x1b[8m\n    \tok\n  #1 Yes\n"


def test_what_can_be_seen_is_shown_as_it_is():
    assert exact("größe 名前 🙂 a\tb\nc") == "größe 名前 🙂 a\tb\nc"


@given(st.text())
def test_cleaning_keeps_everything_but_control_characters(raw):
    cleaned = clean(raw)
    assert cleaned == "".join(c for c in raw if c in "\t\n" or not (ord(c) < 32 or 127 <= ord(c) < 160))
    assert clean(cleaned) == cleaned


@given(st.lists(st.text(alphabet="ab \n", max_size=5), min_size=1, max_size=6), st.text(alphabet="ab", max_size=3))
def test_the_last_line_that_is_printed_ends_with_the_final_text(pieces, rest):
    grown = ["".join(pieces[: count + 1]) for count in range(len(pieces))]
    final = grown[-1] + rest
    assert drawn(*map(preview, grown), text(final)) == f"lodger: {final}\n"


def test_a_file_and_a_reaction_are_lines_of_their_own():
    screen = TerminalChat("lodger")
    file = {"path": "/home/a/x\x1b[2J.txt", "name": "x.txt", "media_type": "text/plain", "caption": "for you"}
    shown = [
        screen.draw({"type": "shown", "external_id": "m1", "content": file}),
        screen.draw({"type": "shown", "external_id": "reaction/k1", "content": {"emoji": "\N{THUMBS UP SIGN}"}}),
        screen.draw({"type": "removed", "external_id": "m1"}),
    ]

    assert shown == [
        "lodger: x.txt (/home/a/x[2J.txt) for you\n",
        "  (lodger reacted with \N{THUMBS UP SIGN})\n",
        "",
    ]
