import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.chunking import fitting, is_safe_cut, measure, split_text
from channels.contract import TextUnit

TELEGRAM = 4096
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)", re.DOTALL)


def open_fence(text):
    """Return the marker that `text`, parsed alone, leaves open; an independent reading."""
    marker = ""
    for line in text.split("\n"):
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
