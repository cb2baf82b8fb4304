import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.slack.cards import cut_escaped, draw_card, plain
from channels.slack.limits import BLOCKS_LIMIT_CHARS, CARD_CODE_LIMIT_BYTES, SECTION_LIMIT_CHARS
from channels.slack.mrkdwn import escape
from core.contracts.addresses import Button, ButtonStyle, CardContent
from core.contracts.errors import SendRejected
from tests.channels.slack.markdown_samples import MARKDOWN, MENTIONS, assert_no_mention, assert_safe_mrkdwn
from tests.platforms.slack_blocks import message_blocks, texts

ROWS = (
    (
        Button(token="a", label="Allow", style=ButtonStyle.GOOD),
        Button(token="d", label="Deny", style=ButtonStyle.DANGER),
    ),
)


def sections(card):
    return [block["text"]["text"] for block in draw_card(card).blocks if block["type"] == "section"]


def code_of(card):
    """Return the code that people read, put together again."""
    pieces = [text.removeprefix("```\n").removesuffix("\n```") for text in sections(card) if text.startswith("```")]
    return "\n".join(pieces).replace("\u200b", "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def test_a_card_is_text_code_and_rows_of_buttons():
    blocks = draw_card(CardContent(text="Run this?", code="ls -l", rows=ROWS)).blocks

    assert [block["type"] for block in blocks] == ["section", "section", "actions"]
    assert sections(CardContent(text="Run this?", code="ls -l")) == ["Run this?", "```\nls -l\n```"]
    assert [(button["value"], button["text"]["text"], button.get("style")) for button in blocks[2]["elements"]] == [
        ("a", "Allow", "primary"),
        ("d", "Deny", "danger"),
    ]


def test_a_settled_card_has_no_buttons():
    assert [block["type"] for block in draw_card(CardContent(text="Allowed by Alice", code="ls")).blocks] == [
        "section"
    ] * 2


def test_nothing_in_a_card_is_a_mention_a_link_or_a_mark_c17():
    card = CardContent(text=MENTIONS, code=MENTIONS, rows=((Button(token="t", label="<!channel> yes"),),))
    drawn = draw_card(card)

    assert_no_mention(drawn.blocks)
    assert_safe_mrkdwn(drawn.notice)
    assert all(block["text"]["verbatim"] for block in drawn.blocks if block["type"] == "section")
    assert code_of(card) == MENTIONS


def test_a_command_of_6000_characters_is_cut_with_a_mark_and_settles_within_the_limits_c26():
    code = "".join(f"echo {number:04} <<'EOF'\n" for number in range(310))
    for rows in (ROWS, ()):
        card = CardContent(text="Run this?" * 500, code=code, rows=rows)
        message_blocks(list(draw_card(card).blocks))

        assert "… (cut: 3," in code_of(card)
        assert code_of(card).startswith(code[:2000])


def test_a_long_text_is_cut_with_a_mark_c14():
    (text,) = sections(CardContent(text="a" * 3001))

    assert len(text) <= SECTION_LIMIT_CHARS
    assert text.endswith("… (cut: 31 more characters)")


def test_blocks_together_stay_below_what_slack_takes_c14():
    card = CardContent(text="&" * 9000, code="&" * 9000, rows=ROWS)
    blocks = list(draw_card(card).blocks)

    message_blocks(blocks)
    assert sum(map(len, texts(blocks))) <= BLOCKS_LIMIT_CHARS


@pytest.mark.parametrize("char", ["&", "<", "`", "*", "字", "\U0001f600", "\n", "x"])
def test_code_up_to_the_limit_is_always_shown_whole(char):
    code = "x" + char * ((CARD_CODE_LIMIT_BYTES - 2) // len(char.encode())) + "x"
    card = CardContent(text="t" * 5000, code=code, rows=ROWS)

    message_blocks(list(draw_card(card).blocks))
    assert code_of(card).replace("\n", "") == code.replace("\n", "")


def test_code_that_needs_several_blocks_is_cut_between_lines():
    code = "".join(f"&&&& <<<< >>>> {number:02}\n" for number in range(100))
    card = CardContent(text="t", code=code)
    pieces = sections(card)[1:]

    assert len(pieces) == 2
    assert code_of(card) == code.rstrip()


def test_labels_are_cut_and_never_empty():
    row = (Button(token="a", label="x" * 90), Button(token="b", label=" "))
    labels = [button["text"]["text"] for button in draw_card(CardContent(text="t", rows=(row,))).blocks[1]["elements"]]

    assert labels == ["x" * 74 + "…", "…"]


@pytest.mark.parametrize("token", ["", "t" * 2001])
def test_a_button_that_carries_what_slack_does_not_take_is_refused_at_once_c26(token):
    with pytest.raises(SendRejected):
        draw_card(CardContent(text="t", rows=((Button(token=token, label="Yes"),),)))


@pytest.mark.parametrize("card", [CardContent(text=" "), CardContent(text="t", rows=ROWS * 50)])
def test_a_card_of_nothing_or_of_too_much_is_refused(card):
    with pytest.raises(SendRejected):
        draw_card(card)


def test_a_row_of_many_buttons_takes_several_blocks():
    row = tuple(Button(token=f"t{number}", label="x") for number in range(60))
    blocks = list(draw_card(CardContent(text="t", rows=(row,))).blocks)

    message_blocks(blocks)
    found = list(itertools.chain.from_iterable(block["elements"] for block in blocks[1:]))
    assert [button["value"] for button in found] == [f"t{number}" for number in range(60)]
    assert len({button["action_id"] for button in found}) == 60


def test_a_cut_breaks_no_character():
    cut = cut_escaped("\U0001f469\u200d\U0001f4bb" * 30, 70, escape)

    assert cut.partition("…")[0].replace("\U0001f469\u200d\U0001f4bb", "") == ""
    assert cut_escaped("<<<", 12, escape) == "&lt;&lt;&lt;"


def test_plain_text_never_ends_inside_a_character():
    assert plain("ab\U0001f469\u200d\U0001f4bb", 4)["text"] == "ab…"


@given(MARKDOWN, st.integers(1, 40), MARKDOWN, st.integers(1, 40))
@settings(max_examples=80, deadline=None)
def test_any_card_is_drawn_within_the_limits_and_mentions_nobody(text, times, code, lines):
    drawn = draw_card(CardContent(text=f"t{text * times}", code=code * lines, rows=ROWS))

    message_blocks(list(drawn.blocks))
    assert_no_mention(drawn.blocks)
    assert_safe_mrkdwn(drawn.notice)
    assert len(drawn.notice.encode()) <= 3000
    for block in drawn.blocks:
        if block["type"] == "section":
            assert_safe_mrkdwn(block["text"]["text"])
