import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.commonmark import is_safe_link
from channels.markdown import (
    DEEPEST_INLINE,
    LONGEST_TEXT_CHARS,
    Alignment,
    Break,
    Code,
    CodeBlock,
    Emphasis,
    Heading,
    Image,
    Link,
    List,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Strong,
    Table,
    Text,
    parse,
    plain_text,
)


def text(content):
    return Text(text=content)


def paragraph(*children):
    return Paragraph(children=children)


def inlines(markdown):
    (block,) = parse(markdown)
    return block.children


def nodes(node):
    """Yield a node and all nodes in it."""
    if isinstance(node, tuple):
        for inner in node:
            yield from nodes(inner)
    elif dataclasses.is_dataclass(node):
        yield node
        for field in dataclasses.fields(node):
            yield from nodes(getattr(node, field.name))


def test_inline_formatting_nests():
    assert inlines("a **b *c*** ~~d~~ `e **f**`") == (
        text("a "),
        Strong(children=(text("b "), Emphasis(children=(text("c"),)))),
        text(" "),
        Strike(children=(text("d"),)),
        text(" "),
        Code(text="e **f**"),
    )


def test_blocks_are_what_commonmark_says():
    assert parse("# h\n\ntext\n***\n> q\n\n```py x\ncode\n```\n\n    indented") == (
        Heading(level=1, children=(text("h"),)),
        paragraph(text("text")),
        Rule(),
        Quote(blocks=(paragraph(text("q")),)),
        CodeBlock(language="py", text="code\n"),
        CodeBlock(language="", text="indented\n"),
    )


def test_a_list_knows_its_numbers_and_whether_its_items_stand_apart():
    (tight, loose) = parse("- a\n  1. b\n- c\n\n7. d\n\n8. e")

    inner = List(ordered=True, start=1, tight=True, items=((paragraph(text("b")),),))
    assert tight.items == ((paragraph(text("a")), inner), (paragraph(text("c")),))
    assert (tight.ordered, tight.tight) == (False, True)
    assert (loose.ordered, loose.start, loose.tight) == (True, 7, False)


def test_a_loose_list_in_a_tight_one_does_not_loosen_it():
    (outer,) = parse("- a\n  - b\n\n    c\n- d")

    assert outer.tight
    assert not outer.items[0][1].tight


def test_a_table_has_a_cell_for_every_column_of_every_row():
    (table,) = parse("| a | *b* |\n|:-:|---|\n| 1 |\n| 2 | x \\| y | gone |")

    assert isinstance(table, Table)
    assert table.alignments == (Alignment.CENTER, None)
    assert table.header == ((text("a"),), (Emphasis(children=(text("b"),)),))
    assert table.rows == (((text("1"),), ()), ((text("2"),), (text("x | y"),)))


def test_every_line_break_counts_as_people_write_in_chats():
    assert inlines("one\ntwo  \nthree") == (text("one"), Break(), text("two"), Break(), text("three"))


def test_a_line_break_from_an_entity_is_none():
    assert inlines("a&#10;b") == (text("a b"),)


def test_raw_html_and_mentions_are_text():
    assert inlines("<b>x</b> <!channel> <@U0BOB>") == (text("<b>x</b> <!channel> <@U0BOB>"),)
    assert parse("<div>\nx\n</div>") == (paragraph(text("<div>"), Break(), text("x"), Break(), text("</div>")),)


@pytest.mark.parametrize(
    "url", ["javascript:x", "tg://user?id=1", "data:text/html,x", "file:///x", "/path", "//a.b", ""]
)
def test_a_link_to_anything_but_web_and_mail_stays_text(url):
    assert not any(isinstance(node, Link | Image) for node in nodes(parse(f"[click]({url}) ![i]({url}) <{url}>")))


def test_a_link_keeps_its_parentheses_and_title():
    label = (text("docs"),)
    assert inlines("[docs](https://example.org/d_(1))") == (Link(url="https://example.org/d_(1)", children=label),)
    assert inlines('[docs](mailto:a@b.c "T")') == (Link(url="mailto:a@b.c", children=label, title="T"),)


def test_a_bare_address_is_a_link_to_itself_without_the_sentence_around_it():
    url = "https://example.org/x?y=1&z=2"

    assert inlines(f"see ({url}).") == (text("see ("), Link(url=url, children=(text(url),)), text(")."))
    assert inlines(f"`{url}`") == (Code(text=url),)
    assert inlines(f"[{url}](https://other.example)")[0].children == (text(url),)


def test_an_image_has_a_label_and_inside_a_link_is_only_that():
    assert inlines("![a *b*](https://x.y/i)") == (Image(url="https://x.y/i", label="a *b*"),)
    assert inlines("![](https://x.y/i)") == (Image(url="https://x.y/i", label="https://x.y/i"),)
    assert inlines("[![badge](https://x.y/i)](https://z.y)") == (Link(url="https://z.y", children=(text("badge"),)),)


def test_code_that_is_never_closed_goes_on_to_the_end():
    assert parse("a\n```py\ncode **x**") == (paragraph(text("a")), CodeBlock(language="py", text="code **x**\n"))


def test_plain_text_is_what_is_left_without_formatting():
    assert plain_text(inlines("a **b `c`** [d](https://e.f) ![g](https://h.i)\nj")) == "a b c d g j"


def depth(node):
    children = node if isinstance(node, tuple) else ()
    if dataclasses.is_dataclass(node):
        children = tuple(getattr(node, field.name) for field in dataclasses.fields(node))
    return dataclasses.is_dataclass(node) + max(map(depth, children), default=0)


@pytest.mark.parametrize(
    "bomb",
    [
        "> " * 3000 + "a",
        "- " * 3000 + "a",
        "**a _b " * 3000 + "c" + "_ d**" * 3000,
        "[" * 9000 + "a" + "](https://x.y)" * 3000,
        "![" * 3000 + "a" + "](https://x.y)" * 3000,
        "`" * 9000,
        "|" + "a|" * 3000 + "\n|" + "-|" * 3000 + "\n" + "|a\n" * 3000,
    ],
    ids=["quotes", "items", "emphasis", "brackets", "images", "backticks", "cells"],
)
def test_however_deep_a_text_nests_its_tree_does_not(bomb):
    assert depth(parse(bomb)) <= 20 + DEEPEST_INLINE + 1


def test_formatting_that_is_nested_too_deep_leaves_its_text():
    markdown = "*a **b " * DEEPEST_INLINE + "core" + "** c*" * DEEPEST_INLINE

    assert plain_text(inlines(markdown)).count("core") == 1
    assert "*" not in plain_text(inlines(markdown))


def test_few_characters_make_no_thousands_of_cells():
    hundred_columns = "|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n"

    assert isinstance(parse(hundred_columns + "|a\n" * 100)[0], Table)
    assert isinstance(parse(hundred_columns + "|a\n" * 1000)[0], Paragraph)


def test_a_text_beyond_all_measure_is_shown_as_it_is_written():
    line = "**x** [a](https://b.c)"
    (block,) = parse(f"{line}\r\n" * (1_000_000 // len(line)))

    assert block.children[:3] == (text(line), Break(), text(line))
    assert isinstance(parse("*" * LONGEST_TEXT_CHARS)[0], Rule)


PIECES = st.sampled_from(
    ["a", " ", "\n", "\n\n", "**", "*", "_", "~~", "`", "```\n", "# ", "> ", "- ", "1. ", "    ", "|", "[", "](",
     "|a|b|\n|-|:-:|\n", "[l](https://x.y/z)", "![i](https://q.r)", "<b>", "&amp;", "https://bare.x/y_z", "<tg://x>",
     "\\", "\t", "---\n", "===\n", "[a]: tg://r\n", "[a]", "\x00", "\ud800", "\r", "\u2028", "&#10;"]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join))
@settings(max_examples=150, deadline=None)
def test_any_text_parses_to_safe_links_and_single_lines(markdown):
    for node in nodes(parse(markdown)):
        match node:
            case Link(url=url) | Image(url=url):
                assert is_safe_link(url)
            case Text(text=content):
                assert content
                assert not set(content) & set("\r\n")
            case CodeBlock(text=content):
                assert content == "" or content.endswith("\n")
            case Table(alignments=alignments, header=header, rows=rows):
                assert {len(alignments)} == {len(header), *map(len, rows)} | {len(alignments)}
