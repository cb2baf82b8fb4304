import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.chunking import cut_text, measure, split_text
from channels.contract import TextUnit
from channels.discord.limits import TEXT_LIMIT_UTF16
from channels.discord.outbound import (
    SURELY_FITS_UTF16,
    caption,
    new_message,
    nonce_of,
    notices,
    preview,
    shown,
    snowflake,
)
from core.contracts.addresses import Button, CardContent, FileContent, TextContent
from core.contracts.errors import SendRejected, TextTooLong
from tests.channels.discord.eyes import blocks_of_code, has_broken_fence
from tests.channels.discord.sending import text, thread_of

WORDS = st.sampled_from(
    ["word ", "*a* ", "**b** ", "_", "`code` ", "\n", "\n\n", "- item\n", "1. one\n", "> quote\n", "# head\n",
     "```python\nx = 1\n", "```\n", "~~~\ny\n~~~\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "[l](https://x.org/a_(b)) ",
     "https://x.org/q?a=1&b=2 ", "\N{GRINNING FACE}", "\u4e2d\u6587", "&lt;", "\\*", "||s|| ", "@everyone "]
)  # fmt: skip
DOCUMENTS = st.lists(st.tuples(WORDS, st.sampled_from([1, 1, 1, 7, 90])), max_size=24).map(
    lambda words: "".join(word * times for word, times in words)
)
CODE = "\n".join(["x = 'aaaaaaaaaaaaaaaaaaaa'"] * 300)


def content_of(markdown):
    return shown(TextContent(markdown=markdown))["content"]


def delivered(markdown):
    """Return what the outbox makes of a text: it splits smaller what is refused as too long."""
    parts = []
    waiting = [*reversed(split_text(markdown, TEXT_LIMIT_UTF16, TextUnit.UTF16))]
    while waiting:
        part = waiting.pop()
        try:
            parts.append(content_of(part))
        except TextTooLong:
            assert len(part) > SURELY_FITS_UTF16
            waiting += reversed(split_text(part, max(1, min(TEXT_LIMIT_UTF16, len(part)) // 2), TextUnit.UTF16))
    return parts


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
@example("|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|b" * 60 + "|")
@example("*" * 2000)
@example("\\" * 1999)
def test_every_part_of_every_answer_fits_and_has_whole_fences_c12(document):
    for part in delivered(document):
        assert measure(part, TextUnit.UTF16) <= TEXT_LIMIT_UTF16
        assert not has_broken_fence(part)


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_the_parts_of_an_answer_join_to_it_c14(document):
    assert "".join(part.content for part in cut_text(document, TEXT_LIMIT_UTF16, TextUnit.UTF16)) == document


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.integers(1, 60))
def test_every_prefix_of_a_stream_has_a_preview_that_fits_and_has_whole_fences(document, step):
    for end in range(1, len(document) + 1, max(step, len(document) // 20)):
        prefix = document[:end].strip()
        if prefix:
            drawn = preview(prefix)["content"]
            assert 0 < measure(drawn, TextUnit.UTF16) <= TEXT_LIMIT_UTF16
            assert not has_broken_fence(drawn)


@pytest.mark.parametrize(
    ("markdown", "code"),
    [
        ("intro\n\n```python\n" + CODE + "\n```\noutro", CODE),
        ("```\n" + "z" * 9000 + "\n```", "z" * 9000),
        ("```\n" + "z" * 9000, "z" * 9000),
    ],
    ids=["A", "B", "C"],
)
def test_code_that_is_cut_joins_to_the_same_code_c12(markdown, code):
    blocks = [block for part in delivered(markdown) for block in blocks_of_code(part)]
    between = "" if "\n" not in code else "\n"

    assert between.join(blocks) == code
    if "python" in markdown:
        assert all("```python\n" in part for part in delivered(markdown) if "```" in part)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_fence_at_the_very_limit_is_not_broken_c12(offset):
    markdown = "a" * (TEXT_LIMIT_UTF16 + offset - 3) + "\n```\ncode\n```\nend"
    parts = delivered(markdown)

    assert [block for part in parts for block in blocks_of_code(part)] == ["code"]
    assert all(measure(part, TextUnit.UTF16) <= TEXT_LIMIT_UTF16 for part in parts)


def test_2001_characters_are_two_messages_and_nothing_is_lost_c14():
    with pytest.raises(TextTooLong):
        content_of("a" * 2001)

    assert [len(part) for part in delivered("a" * 2001)] == [2000, 1]
    assert "".join(delivered("a" * 2001)) == "a" * 2001


@pytest.mark.parametrize("char", ["\U0001f600", "\U0001f469\u200d\U0001f4bb"])
def test_emoji_are_counted_as_the_strictest_reading_would_and_never_cut_c14(char):
    parts = delivered(char * 1500)

    assert "".join(parts) == char * 1500
    assert all(part.startswith(char) and part.endswith(char) for part in parts)


def test_a_text_that_grows_too_long_as_it_is_drawn_is_split_smaller_c14():
    parts = delivered("* " + "*a " * 660)

    assert len(parts) > 1
    assert sum(part.count("a") for part in parts) == 660


@settings(max_examples=300, deadline=None)
@given(st.text("|-\n:a*`\\_ >1.#[](", max_size=SURELY_FITS_UTF16))
@example("|" * 31 + "\n" + "-|" * 16)
@example("- " * 31 + "x")
@example("> " * 31 + "x")
def test_a_short_text_always_fits(markdown):
    assert measure(content_of(markdown), TextUnit.UTF16) <= TEXT_LIMIT_UTF16


def test_a_text_that_would_show_nothing_is_sent_as_it_is_written():
    assert content_of("```\n```") == "\\`\\`\\`\n\\`\\`\\`"
    assert preview("```")["content"] == "\\`\\`\\`"


def test_texts_and_settled_cards_have_no_buttons_left():
    button = Button(token="t", label="Yes")

    assert shown(TextContent(markdown="a"))["components"] == []
    assert shown(CardContent(text="Done."))["components"] == []
    assert len(shown(CardContent(text="Run?", rows=((button,),)))["components"]) == 1


def test_a_preview_that_is_too_long_shows_its_beginning_and_that_it_goes_on():
    drawn = preview("word " * 1000)["content"]

    assert drawn.startswith("word word")
    assert drawn.endswith("…")
    assert len(drawn) > 1900
    assert preview("```py\n" + "x\n" * 3000)["content"].endswith("x\n```\n…")


def test_a_nonce_is_the_same_for_the_same_item_and_short_enough():
    assert nonce_of("turn/1") == nonce_of("turn/1") != nonce_of("turn/2")
    assert re.fullmatch(r"[0-9a-f]{25}", nonce_of("x" * 500))


def test_a_new_message_names_what_it_answers_where_it_stands():
    def reference(item, *, in_thread=True):
        return (
            new_message(item, nonce="n", silent=False, in_thread=in_thread)
            .get("message_reference", {})
            .get("message_id")
        )

    assert reference(text("a")) is None
    assert reference(text("a", reply_to="5")) == "5"
    assert reference(text("a", thread_of(7), reply_to="5")) == "5"
    assert reference(text("a", thread_of(7), reply_to="7")) is None
    assert reference(text("a", thread_of(7)), in_thread=False) == "7"
    assert new_message(text("a", reply_to="5"), nonce="n", silent=True, in_thread=True) == {
        "nonce": "n",
        "enforce_nonce": True,
        "flags": 4096,
        "message_reference": {"message_id": "5", "fail_if_not_exists": False},
    }


def test_ids_of_others_are_refused():
    assert snowflake("123") == "123"
    for strange in ("", "a", "1/2", "-1", "\u0663"):
        with pytest.raises(SendRejected):
            snowflake(strange)


def test_a_caption_is_plain_and_one_that_is_too_long_is_told():
    content = FileContent(path="/x", name="x", media_type="text/plain", caption="**a**")

    assert caption(content) == {"content": "\\*\\*a\\*\\*"}
    with pytest.raises(TextTooLong):
        caption(FileContent(path="/x", name="x", media_type="text/plain", caption="a" * 2001))


def test_a_long_notice_is_several_messages_that_only_one_person_sees():
    parts = notices("word " * 1000 + "\n```\n" + "x" * 2500)

    assert len(parts) > 2
    assert {part["flags"] for part in parts} == {64}
    assert all(len(part["content"]) <= TEXT_LIMIT_UTF16 and not has_broken_fence(part["content"]) for part in parts)
    assert notices(" ") == ()
