import pytest

from channels.outline import Outline

TEXT = """intro

```py
a = 1

b = 2
```
- item
  more
- item

| h | i |
|---|---|
| 1 | 2 |
| 3 | 4 |

end [a link](https://example.org) end
"""


def at(mark, text=TEXT):
    return text.index(mark)


def quality(mark):
    outline = Outline(TEXT)
    (line,) = outline.lines_between(at(mark), at(mark))
    return outline.line_quality(line)


def test_lines_are_found_by_where_they_begin():
    outline = Outline("a\r\nb\rc\n")

    assert [outline.line_start(line) for line in outline.lines_between(0, 99)] == [0, 3, 5]
    assert outline.lines_between(1, 4) == (1,)
    assert outline.line_start(3) == 7


def test_a_part_best_begins_with_a_block_and_worst_with_an_indented_line():
    assert [quality(mark) for mark in ("```py", "- item", "b = 2", "a = 1", "  more")] == [0, 1, 2, 3, 4]
    assert quality("| 3") == 3


def test_an_open_block_is_closed_and_opened_again():
    outline = Outline(TEXT)

    assert (outline.closing_at(at("b = 2")), outline.reopening_at(at("b = 2"))) == ("```", "```py\n")
    assert outline.closing_at(at("= 2")) == "\n```"
    for outside in ("intro", "- item", "end"):
        assert (outline.closing_at(at(outside)), outline.reopening_at(at(outside))) == ("", "")
    assert outline.longest_closing(len(TEXT)) == 4
    assert outline.longest_closing(at("intro")) == 0


def test_a_cut_between_the_rows_of_a_table_repeats_its_head():
    outline = Outline(TEXT)

    assert outline.reopening_at(at("| 3")) == "| h | i |\n|---|---|\n"
    assert outline.closing_at(at("| 3")) == ""


@pytest.mark.parametrize(
    ("mark", "is_safe"),
    [
        ("```py", True),
        ("py\n", False),  # it would be another language
        ("a = 1", False),  # the part before would be an empty block
        ("b = 2", True),
        ("```\n-", False),  # the part behind would be an empty block
        ("- item", True),
        ("| h", True),
        ("|---", False),
        ("| 1", False),
        ("| 3", True),
        ("link", False),
        ("[a", True),
    ],
)
def test_a_cut_is_safe_where_nothing_breaks(mark, is_safe):
    assert Outline(TEXT).is_safe_cut(at(mark)) == is_safe


def test_a_cut_makes_no_fence_of_what_is_none():
    text = "words ``` words"

    assert Outline(text).is_safe_cut(len("wor"))
    assert not Outline(text).is_safe_cut(at("```", text))
    assert Outline("in 1984. x").begins_block(3)
    assert not Outline("in 1984. x").begins_block(0)


def test_decoration_is_no_block_that_has_to_be_closed():
    outline = Outline("`" * 40 + "\ntext\n")

    assert outline.closing_at(44) == ""
