import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from channels.chunking import cut_text, fitting, is_safe_cut, measure, safe_end, split_text
from channels.contract import TextUnit

TELEGRAM = 4096
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)", re.DOTALL)


def open_fence(text):
    """Return the marker that `text`, parsed alone, leaves open; an independent reading."""
    marker = ""
    for line in re.split(r"\r\n?|\n", text):
        found = FENCE.fullmatch(line)
        if found is None:
            continue
        run, info = found.groups()
        if not marker and not ("`" in run and "`" in info):
            marker = run
        elif marker and run[0] == marker[0] and len(run) >= len(marker) and not info.strip():
            marker = ""
    return marker


def contents(parts, text, joined=""):
    """Return `parts` without the fence lines that were added; None where they do not join to `text`."""
    if not parts:
        return [] if joined == text else None
    content = parts[0].partition("\n")[2] if open_fence(joined) else parts[0]
    closing = re.search(r"\n?(`{3,}|~{3,})\Z", content)
    # A closing line may be the text's own or added; only what follows can tell.
    for end in (len(content), *((closing.start(1), closing.start()) if closing else ())):
        if text.startswith(content[:end], len(joined)):
            rest = contents(parts[1:], text, joined + content[:end])
            if rest is not None:
                return [content[:end], *rest]
    return None


def assert_well_split(text, limit, unit):
    parts = split_text(text, limit, unit)
    assert all(measure(part, unit) <= limit for part in parts)
    assert [part for part in parts if open_fence(part)] == []
    assert contents(parts, text) is not None
    return parts


CODE_LINES = "x = 'aaaaaaaaaaaaaaaaaaaa'\n" * 300
C12 = {
    "A": f"intro\n\n```python\n{CODE_LINES}```\noutro",
    "B": "```\n" + "z" * 9000 + "\n```",
    "C": "```\n" + "z" * 9000,
    "D limit-1": "a" * (TELEGRAM - 2) + "\n```\ncode\n```\nend",
    "D limit": "a" * (TELEGRAM - 1) + "\n```\ncode\n```\nend",
    "D limit+1": "a" * TELEGRAM + "\n```\ncode\n```\nend",
    "endless info": "```" + "z" * 9000 + "\ncode\n```",
    "tildes": "~~~~ text\n" + "```\nline\n" * 900 + "~~~~\nend",
    "long first lines": "```sh\n" + "y" * 4080 + "\n```\n" + "~~~\n" + "y" * 4083 + "\n~~~",
}


@pytest.mark.parametrize("name", C12)
def test_every_part_of_a_cut_code_block_is_balanced_and_rejoins_c12(name):
    parts = assert_well_split(C12[name], TELEGRAM, TextUnit.UTF16)

    assert len(parts) > 1


def test_a_reopened_block_repeats_its_language_c12():
    parts = split_text(C12["A"], TELEGRAM, TextUnit.UTF16)

    assert parts[0].endswith("\n```")
    assert all(part.startswith("```python\nx = ") for part in parts[1:])


def test_no_part_is_an_empty_code_block():
    text = "w" * 4080 + "\n```python\n" + "code\n" * 10 + "```\nend"
    first, second = split_text(text, TELEGRAM, TextUnit.UTF16)

    assert first == "w" * 4080 + "\n"
    assert second.startswith("```python\ncode\n")


@pytest.mark.parametrize(
    ("text", "limit", "unit"),
    [
        ("\U0001f600" * 2049, TELEGRAM, TextUnit.UTF16),
        ("\U0001f680" * 5000, TELEGRAM, TextUnit.UTF16),
        ("a" * 4095 + "\U0001f469\u200d\U0001f4bb", TELEGRAM, TextUnit.UTF16),
        ("&lt;" * 3000, TELEGRAM, TextUnit.UTF16),
        ("a" * 2001, 2000, TextUnit.CHARS),
        ("a" * 4001, 4000, TextUnit.CHARS),
        ("\U0001f1e9\U0001f1ea" * 3001, TELEGRAM, TextUnit.UTF16),
        ("e\u0301" * 4001, TELEGRAM, TextUnit.UTF16),
        ("\U0001f44d\U0001f3fd" * 2001, TELEGRAM, TextUnit.UTF16),
        ("a\r\n" * 3000, TELEGRAM, TextUnit.UTF16),
    ],
)
def test_parts_fit_in_the_platforms_unit_and_break_no_character_c14(text, limit, unit):
    parts = assert_well_split(text, limit, unit)

    position = 0
    for part in parts[:-1]:
        position += len(part)
        assert is_safe_cut(text, position)
        assert "\u200d" not in (part[-1], text[position])
        assert not unicodedata.combining(text[position])


def test_an_entity_is_never_cut_c14():
    parts = split_text("x" * 93 + "&lt;" * 50, 95, TextUnit.CHARS)

    assert parts[0] == "x" * 93
    assert all(part.replace("&lt;", "").replace("x", "") == "" for part in parts)


@pytest.mark.parametrize("monster", ["e" + "\u0301" * 500, "\u200d" * 500, "`" * 500, "&" * 500, " " * 500])
def test_a_single_character_longer_than_a_part_is_cut_and_never_loops(monster):
    parts = split_text(monster, 64, TextUnit.UTF16)

    assert "".join(parts).replace("\n```", "") == monster
    assert all(measure(part, TextUnit.UTF16) <= 64 for part in parts)


def test_cuts_prefer_paragraphs_then_lines_then_words():
    paragraph = "one two three four five six seven.\n\n"
    assert split_text(paragraph * 2 + "x" * 30, 100, TextUnit.CHARS)[0] == paragraph * 2
    assert split_text("a line of text\n" * 9, 100, TextUnit.CHARS)[0] == "a line of text\n" * 6
    assert split_text("word " * 30, 99, TextUnit.CHARS)[0] == "word " * 19


def test_a_text_that_fits_stays_as_it_is():
    assert split_text("hello\n```\nx\n```", 4096, TextUnit.UTF16) == ("hello\n```\nx\n```",)
    assert split_text("", 4096, TextUnit.UTF16) == ()


def test_measure_counts_what_the_platform_counts():
    assert measure("a\U0001f600", TextUnit.CHARS) == 2
    assert measure("a\U0001f600", TextUnit.UTF16) == 3


@given(st.text(max_size=60), st.integers(0, 80), st.sampled_from(TextUnit))
def test_fitting_is_the_longest_prefix_that_measures_within_the_limit(text, limit, unit):
    end = fitting(text, 0, limit, unit)

    assert measure(text[:end], unit) <= limit
    assert end == len(text) or measure(text[: end + 1], unit) > limit


PIECES = st.sampled_from(
    ["word ", "\n", "\n\n", "```\n", "```python\n", "\n```\n", "~~~\n", "  ```sh\n", "&lt;", "&amp;", "\U0001f600",
     "\U0001f469\u200d\U0001f4bb", "e\u0301", "\U0001f1e9\U0001f1ea", "`inline`", "x" * 40, "``", " ", "a ```b``` c"]
)  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=60).map("".join), st.integers(64, 300))
@example("x" * 60 + " ```" + "y" * 60, 64)
@settings(max_examples=300, deadline=None)
def test_any_text_splits_into_balanced_parts_that_rejoin(text, limit):
    for unit in TextUnit:
        assert_well_split(text, limit, unit)


@given(st.lists(PIECES, min_size=1, max_size=80).map("".join), st.integers(64, 200))
@settings(max_examples=200, deadline=None)
def test_no_cut_breaks_a_character(text, limit):
    position = 0
    for content in contents(split_text(text, limit, TextUnit.UTF16), text):
        position += len(content)
        assert is_safe_cut(text, position)


COMMONMARK = MarkdownIt("commonmark", {"html": False}).enable("table")


def open_blocks(part):
    """Return the code blocks that a part, parsed alone by CommonMark, leaves open at its end."""
    lines = re.split(r"\r\n?|\n", part)
    fences = [token for token in COMMONMARK.parse(part) if token.type == "fence" and len(token.markup) <= 16]
    at_end = [token for token in fences if token.map[1] >= len(lines)]
    closed = [
        re.fullmatch(rf"[> \t]*{token.markup}+[ \t]*", lines[-1]) and token.map[1] - token.map[0] > 1
        for token in at_end
    ]
    return [token.content for token, is_closed in zip(at_end, closed, strict=True) if not is_closed]


def assert_well_cut(text, limit, unit):
    """Hold the parts of a text against everything that is promised of them."""
    parts = list(cut_text(text, limit, unit))
    assert "".join(part.content for part in parts) == text
    assert all(part.content for part in parts)
    assert split_text(text, limit, unit) == tuple(part.head + part.content + part.tail for part in parts)
    for part in parts:
        assert measure(part.text, unit) <= limit
        assert open_blocks(part.text) == []
        assert re.fullmatch(r"([-> ]*(`{3,}|~{3,})\w*\n|.*\|.*\n[-:|> \t]+\n)?", part.head)
        assert re.fullmatch(r"(\n?[> ]*(`{3,}|~{3,}))?", part.tail)
    return parts


@pytest.mark.parametrize("name", C12)
def test_every_part_of_a_cut_code_block_parses_alone_c12(name):
    assert_well_cut(C12[name], TELEGRAM, TextUnit.UTF16)


@pytest.mark.parametrize(
    ("before", "tail", "head"),
    [
        ("1. step\n   ```py\n", "   ```", "   ```py\n"),
        ("10. step\n\n    ```py\n", "    ```", "-   ```py\n"),
        ("- a\n  - b\n    - ```py\n", "      ```", "- -   ```py\n"),
        ("> ```py\n", "> ```", "> ```py\n"),
        ("- > ```py\n", "  > ```", "  > ```py\n"),
        ("  ```py\n", "```", "  ```py\n"),
    ],
)
def test_a_block_in_a_list_or_quote_is_closed_and_reopened_where_it_stands(before, tail, head):
    inner = re.sub(r"[^>\s]", " ", before.splitlines()[-1].partition("`")[0])
    parts = assert_well_cut(before + f"{inner}line\n" * 20 + f"{inner}```\nend", 120, TextUnit.CHARS)

    assert (parts[0].tail, parts[1].head) == (tail, head)
    code = "".join(t.content for part in parts for t in COMMONMARK.parse(part.text) if t.type == "fence")
    assert code == "line\n" * 20
    assert parts[-1].content.endswith("```\nend")


def test_a_block_that_ends_with_its_list_is_not_open_behind_it():
    text = "- ```py\n  x\n" + "prose goes on and on\n" * 8

    assert [part.head + part.tail for part in assert_well_cut(text, 100, TextUnit.CHARS)] == ["", "", ""]


def test_a_fence_is_taken_apart_only_by_its_own_marker():
    text = "````md\n" + "```py\ninner\n```\n" * 12 + "````\nend"
    parts = assert_well_cut(text, 100, TextUnit.CHARS)

    assert {part.head for part in parts[1:]} == {"````md\n"}


ROWS = [f"| row {number} | [docs page](https://example.org/{number}) |\n" for number in range(20)]
TABLE = f"| name | link |\n|------|------|\n{''.join(ROWS)}"


def test_a_table_is_cut_between_rows_and_repeats_its_head():
    parts = assert_well_cut(f"intro\n\n{TABLE}\nend", 300, TextUnit.CHARS)

    assert len(parts) > 3
    assert {part.head for part in parts[1:]} == {"| name | link |\n|------|------|\n"}
    assert all(part.content.startswith("| row") and part.content.endswith("|\n") for part in parts[1:-1])
    tables = [sum(token.type == "table_open" for token in COMMONMARK.parse(part.text)) for part in parts]
    assert tables == [1] * len(parts)


@pytest.mark.parametrize("filler", range(60, 100))
def test_the_head_of_a_table_is_never_parted_from_its_rows(filler):
    parts = split_text("w" * filler + f"\n\n{TABLE}", 200, TextUnit.CHARS)

    for part in parts:
        assert ("| name |" in part) == ("| row" in part)


def test_a_head_that_leaves_no_room_for_rows_is_not_repeated():
    head = f"| {'n' * 60} | b |\n|---|---|\n"
    parts = assert_well_cut(head + "| a | b |\n" * 30, 100, TextUnit.CHARS)

    assert {part.head for part in parts} == {""}


def test_a_list_is_cut_between_its_items():
    item = "- an item\n  of two lines\n  - and an inner one\n"
    parts = split_text(item * 12, 200, TextUnit.CHARS)

    assert all(part.startswith("- an item\n") and part.endswith("inner one\n") for part in parts)


def test_code_moves_whole_to_the_next_part_where_it_can():
    prose = "some words in a line\n" * 6
    first, second = split_text(f"{prose}```py\n" + "code\n\n" * 10 + "```\n", 180, TextUnit.CHARS)

    assert first == prose
    assert second.startswith("```py\ncode\n")


def test_code_is_cut_before_a_line_that_is_not_indented():
    function = "def f():\n    a = 1\n    b = 2\n    return a + b\n"
    parts = list(cut_text("```py\n" + function * 12 + "```\n", 200, TextUnit.CHARS))

    assert all(part.content.startswith("def f():") for part in parts[1:])


@pytest.mark.parametrize(
    "whole",
    [
        "[a label of words](https://example.org/d_(1))",
        '![an image](https://example.org/i.png "its title")',
        "<https://example.org/some/path>",
        "https://example.org/a_b?c=d&e=f",
        "`some code here`",
    ],
)
def test_a_link_or_code_in_a_line_is_not_cut_where_that_can_be_avoided(whole):
    for before in range(60, 120):
        for text in (("字" * before + whole) * 3, ("w " * (before // 2) + whole) * 3):
            assert sum(part.count(whole) for part in split_text(text, 130, TextUnit.CHARS)) == 3


def test_a_link_that_is_longer_than_a_part_is_cut_all_the_same():
    text = "[label](https://example.org/" + "x" * 300 + ")"

    assert_well_cut(text, 100, TextUnit.CHARS)


def test_no_word_is_cut_off_that_would_begin_a_block():
    parts = split_text("in the year of our lord - 1984. " * 10, 90, TextUnit.CHARS)

    assert not any(part.startswith(("- ", "1984. ")) for part in parts)


def test_blanks_at_the_end_are_no_message_of_their_own():
    parts = assert_well_cut("a" * 100 + "\n\n", 100, TextUnit.CHARS)

    assert all(part.text.strip() for part in parts)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 63])
def test_the_smallest_limits_hold_so_that_splitting_again_and_again_ends(limit):
    text = "> - ```python\n>   code is here\n>   ```\n\n" + TABLE
    parts = list(cut_text(text, limit, TextUnit.CHARS))

    assert "".join(part.content for part in parts) == text
    assert max(len(part.text) for part in parts) <= limit


def test_safe_end_is_the_longest_beginning_that_breaks_no_character():
    assert safe_end("abc", 2, TextUnit.UTF16) == 2
    assert safe_end("ab\U0001f469\u200d\U0001f4bb", 6, TextUnit.UTF16) == 2
    assert safe_end("\u0301" * 9, 4, TextUnit.UTF16) == 4


BLOCKS = [
    "```\n",
    "```python\n",
    "~~~\n",
    "- ```py\n  ",
    "> ```\n> ",
    "- item\n",
    "  - inner\n",
    "1. ",
    "> ",
    "# h\n",
    "---\n",
]
WORDS = [
    "word ",
    "字",
    "\n",
    "\n\n",
    "   ",
    "    ",
    "\t",
    "|a|b|\n|-|-|\n",
    "|1|2|\n",
    "x" * 40,
    "\r\n",
    "``",
    "`in line`",
]
WHOLES = ["[a b](https://c.d/e_(f))", "https://q.r/s", "&lt;", "\U0001f600", "\U0001f469\u200d\U0001f4bb", "e\u0301"]
MARKDOWN = st.lists(st.sampled_from(BLOCKS + WORDS + WHOLES), max_size=60).map("".join)


@given(MARKDOWN, st.integers(64, 300), st.sampled_from(TextUnit), st.floats(0, 1))
@settings(max_examples=120, deadline=None)
def test_any_markdown_and_any_beginning_of_it_is_cut_well(text, limit, unit, share):
    assert_well_cut(text, limit, unit)
    assert_well_cut(text[: int(len(text) * share)], limit, unit)
