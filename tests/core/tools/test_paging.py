"""Pages of long texts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contracts.errors import ToolError
from core.tools.paging import PageLimits, Start, page, split_lines

LIMITS = PageLimits(lines=5, line_chars=400, chars=600, numbered=False)
lines_of_text = st.lists(st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=900), max_size=12)


def read_on(shown):
    """Return the shown text of a page and where its last line says to read on."""
    body, _, last = shown.rpartition("\n")
    footer = re.search(r"read on with offset=(\d+)\]", last)
    return (body, int(footer[1])) if footer else (shown, None)


@given(lines_of_text, st.booleans(), st.integers(min_value=1, max_value=900))
def test_a_page_never_exceeds_its_limit(lines, numbered, column):
    limits = PageLimits(lines=5, line_chars=400, chars=600, numbered=numbered)
    assert len(page("\n".join(lines), limits, start=Start(column=column))) <= 600


@given(lines_of_text.filter(any))
def test_following_every_mark_shows_the_whole_text(lines):
    text = "\n".join(lines) + "\n"
    seen, start = {}, Start()
    queue = [start]
    while queue:
        start = queue.pop()
        body, following = read_on(page(text, LIMITS, start=start))
        if following is not None and start.column == 1:
            queue.append(Start(line=following))
        for number, line in enumerate(body.split("\n"), start.line):
            if start.column > 1 and number > start.line:
                break
            cut = re.search(r" \[cut: .* read on with offset=(\d+) column=(\d+)\]$", line)
            seen.setdefault(number, {})[start.column if number == start.line else 1] = (
                line[: cut.start()] if cut else line
            )
            if cut:
                queue.append(Start(line=int(cut[1]), column=int(cut[2])))
    assert ["".join(part for _, part in sorted(seen[number].items())) for number in sorted(seen)] == lines


def test_a_page_says_which_lines_it_shows_and_where_to_read_on():
    text = "".join(f"line {n}\n" for n in range(1, 11))
    assert page(text, LIMITS).endswith("line 5\n[lines 1 to 5 of 10; read on with offset=6]")
    assert page(text, LIMITS, start=Start(line=9)) == "line 9\nline 10"
    assert page(text, LIMITS, start=Start(line=2), lines=1) == "line 2\n[lines 2 to 2 of 10; read on with offset=3]"


def test_a_long_line_is_cut_with_a_mark_and_read_on_from_its_middle():
    shown = page("x" * 300 + "y" * 300, PageLimits(lines=5, line_chars=300, chars=1_000, numbered=False))
    assert shown == "x" * 300 + " [cut: characters 1 to 300 of 600; read on with offset=1 column=301]"
    assert page("x" * 300 + "y" * 300, LIMITS, start=Start(column=301)) == "y" * 300


@pytest.mark.parametrize("start", [Start(column=1_000_001), Start(column=29_999_999), Start()])
def test_the_marks_of_very_long_texts_fit_too(start):
    limits = PageLimits(lines=5, line_chars=30_000, chars=30_000, numbered=True)
    assert len(page("x" * 30_000_000, limits, start=start)) <= 30_000
    assert len(page("x\n" * 3_000_000, limits, start=Start(line=2_999_990))) <= 30_000


def test_numbers_stand_before_lines_where_wanted():
    assert page("a\nb", PageLimits(lines=5, line_chars=9, chars=500, numbered=True)) == "1\ta\n2\tb"


def test_a_start_behind_the_end_is_refused_with_the_number_of_lines():
    with pytest.raises(ToolError, match="there are 2 lines"):
        page("a\nb\n", LIMITS, start=Start(line=3))


def test_an_empty_text_is_said_to_be_empty():
    assert page("", LIMITS) == "(empty)"


def test_lines_end_with_line_feeds_alone():
    assert split_lines("a\r\nb\u2028c\x0cd\n\n") == ["a", "b\u2028c\x0cd", ""]
