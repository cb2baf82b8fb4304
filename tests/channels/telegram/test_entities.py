import pytest

from channels.markdown import parse
from channels.telegram.entities import format_blocks, is_visible
from channels.telegram.formatted import Formatted


def shown(markdown):
    """Return what people read, and (kind, what it covers, detail) of each entity."""
    formatted = format_blocks(parse(markdown))
    return formatted.text, [(str(e.kind), formatted.text[e.start : e.end], e.detail) for e in formatted.entities]


def entities(markdown):
    return shown(markdown)[1]


def kinds(markdown):
    return [(kind, covered) for kind, covered, _ in entities(markdown)]


def test_formatting_becomes_entities_of_plain_characters():
    text, found = shown("a **b** *c* ~~d~~ `e` [f](https://example.org/f)")

    assert text == "a b c d e f"
    assert found == [
        ("bold", "b", ""),
        ("italic", "c", ""),
        ("strikethrough", "d", ""),
        ("code", "e", ""),
        ("text_link", "f", "https://example.org/f"),
    ]


def test_offsets_count_utf16_units():
    formatted = format_blocks(parse("\U0001f600 **\U0001f680b** e\u0301 *c*"))

    assert formatted.as_parameter() == [
        {"type": "bold", "offset": 3, "length": 3},
        {"type": "italic", "offset": 10, "length": 1},
    ]


def test_code_keeps_its_language_and_everything_in_it():
    text, found = shown("Run:\n```python\nif a < b:\n\n    **x** &lt; `y`\n```\ndone")

    assert text == "Run:\n\nif a < b:\n\n    **x** &lt; `y`\n\ndone"
    assert found == [("pre", "if a < b:\n\n    **x** &lt; `y`", "python")]


def test_code_begins_where_telegram_takes_no_blanks_away():
    assert entities("```\n\n    def f():\n        return 1\n```") == [("pre", "def f():\n    return 1", "")]
    assert shown("a\n```\n\tx\n\t\ty\n```")[0] == "a\n\nx\n    y"


def test_bold_goes_on_around_the_code_that_it_may_not_hold():
    assert kinds("**run `ls` now**") == [("bold", "run"), ("code", "ls"), ("bold", "now")]
    assert kinds("# `ls`") == [("code", "ls")]


def test_a_link_holds_no_code_and_stays_a_link():
    assert kinds("[`ls` and **cat**](https://example.org)") == [("text_link", "ls and cat"), ("bold", "cat")]


def test_what_is_bold_already_is_not_so_twice():
    assert kinds("# a **b** c") == [("bold", "a b c")]
    assert kinds("***a** b*") == [("italic", "a b"), ("bold", "a")]


def test_no_entity_begins_or_ends_at_a_blank():
    assert kinds("**a&#32;** **&#160;** *&#9;b*") == [("bold", "a"), ("italic", "b")]
    assert kinds("`` ` ``  x `  y  `") == [("code", "`"), ("code", "y")]


def test_lists_have_bullets_numbers_and_indentation():
    text, _ = shown("- one\n- two\n  - inner\n    more\n- \n\n7. seven\n8. eight\n   1. nine")

    assert text == "• one\n• two\n  • inner\n    more\n• \n\n7. seven\n8. eight\n  1. nine"


def test_items_that_stand_apart_stay_apart():
    assert shown("1. a\n\n   b\n\n2. c\n\nd")[0] == "1. a\n\n  b\n\n2. c\n\nd"


def test_code_and_quotes_in_an_item_stand_on_lines_of_their_own():
    assert shown("1. ```sh\n   ls\n   ```\n2. x") == ("1. \nls\n2. x", [("pre", "ls", "sh")])
    assert shown("- a\n  > b\n- c") == ("• a\nb\n• c", [("blockquote", "b", "")])


def test_a_quote_in_a_quote_is_marked_by_a_character():
    text, found = shown("> a **b**\n>\n> > c\n> > d\n\ne")

    assert text == "a b\n\n> c\n> d\n\ne"
    assert found == [("blockquote", "a b\n\n> c\n> d", ""), ("bold", "b", "")]


def test_a_quote_may_hold_code():
    assert kinds("> ```\n> x\n> ```") == [("blockquote", "x"), ("pre", "x")]


def test_a_table_is_aligned_code_with_its_links_below():
    text, found = shown(
        "| Name | Size | 漢字 |\n|---|--:|:-:|\n| a **b** | 1 | [docs](https://example.org) |\n| `c` | 12345 | 字 |"
    )

    table = """\
Name |  Size | 漢字
-----+-------+-----
a b  |     1 | docs
c    | 12345 |  字"""
    assert text == f"{table}\ndocs"
    assert found == [("pre", table, ""), ("text_link", "docs", "https://example.org")]


def test_one_long_cell_does_not_widen_all_rows_of_a_table():
    text, _ = shown(f"| a | b |\n|---|---|\n| {'x' * 500} | 1 |\n| y | 2 |")

    assert max(map(len, text.splitlines()[:2])) < 50


def test_a_rule_is_a_line_and_an_image_a_link():
    text, found = shown("a\n\n---\n\n![chart](https://example.org/c.png)")

    assert text == "a\n\n──────────\n\nchart"
    assert found == [("text_link", "chart", "https://example.org/c.png")]


def test_addresses_that_telegram_links_itself_need_no_entity():
    assert shown("https://example.org/x?y=1&z=2 <a@b.example>") == ("https://example.org/x?y=1&z=2 a@b.example", [])
    assert shown("[](https://example.org)") == ("https://example.org", [])


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://localhost:8080/x", "http://localhost:8080/x"),
        ("mailto:a@b.example", "a@b.example"),
        ("https://[::1]/", "https://[::1]/"),
        ("https://example.org:99999/", "https://example.org:99999/"),
    ],
)
def test_a_target_that_telegram_would_refuse_is_named(url, target):
    assert shown(f"[it]({url})") == (f"it ({target})", [])


def test_nothing_of_the_text_becomes_a_mention():
    text, found = shown("@everyone <@U0BOB> [Bob](tg://user?id=222) <tg://user?id=222>")

    assert text == "@everyone <@U0BOB> [Bob](tg://user?id=222) <tg://user?id=222>"
    assert found == []


def test_what_cannot_be_seen_is_no_text():
    for markdown in ("", "---", "***\n\n---", "```\n```", "#", ">", "\u200b", "**\u2028**", "[a]: https://b.c"):
        assert format_blocks(parse(markdown)) == Formatted(text="")
    assert not is_visible("\u200b \n\u2028")


def test_characters_that_telegram_takes_out_do_not_move_entities():
    assert shown("a\x00\x07b\u202e **c\u2028d**") == ("a� b cd", [("bold", "cd", "")])


def test_what_stands_empty_leaves_no_gap():
    assert shown("a\n\n```\n```\n\n>\n\n#\n\nb")[0] == "a\n\nb"
