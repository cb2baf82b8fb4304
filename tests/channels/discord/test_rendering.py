import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from channels.discord.rendering import encodable, escaped, fenced, render_blocks
from channels.markdown import Code, Emphasis, Paragraph, Strike, Strong, Text, parse, plain_text
from tests.channels.discord.eyes import blocks_of_code, has_broken_fence, seen

SPECIAL = "\\`*_~|<>#-+.!()[]{}:/@&=1aé \u4e2d"
PIECES = st.sampled_from(
    ["**", "*", "_", "__", "~~", "||", "`", "``", "```", "```py", "~~~", "> ", "- ", "1. ", "# ", "#### ", "|", "|-|-|",
     "\n", "\n\n", "  ", "\t", "\\", "[a](https://x.org)", "[a](", "https://x.org/a_b", "<https://x.org>", "](", "!",
     "&lt;", "&#96;", "word", "x", "=", "---", "\u200b", "\N{GRINNING FACE}", "1", ".", ":", "<@1>", "@everyone"]
)  # fmt: skip
INLINES = st.recursive(
    st.sampled_from(["a", "b c", "x*", "_y_", "1.", "- z", "`", "||", "a_b"]).map(lambda text: Text(text=text))
    | st.sampled_from(["ls", "a*b", "x`y"]).map(lambda text: Code(text=text)),
    lambda inner: st.builds(
        lambda kind, children: kind(children=tuple(children)),
        st.sampled_from([Strong, Emphasis, Strike]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
DOCUMENTS = st.lists(PIECES, max_size=40).map("".join)


def rendered(markdown):
    return render_blocks(parse(markdown))


def quoted(text):
    """Return plain text as Markdown that means nothing else."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("a **b** *c* ~~d~~ `e` [f](https://example.org/f)", "a **b** *c* ~~d~~ `e` [f](https://example.org/f)"),
        ("__bold__ _italic_", "**bold** *italic*"),
        ("***a** b*", "***a** b*"),
        ("*a***b**", "*a*\u200b**b**"),
        ("# a\n## b\n### c\n#### d **e**", "# a\n## b\n### c\n**d e**"),
        ("Title\n=====\ntext", "# Title\ntext"),
        ("a\nb  \nc", "a\nb\nc"),
        ("* a\n* b\n  1. c", "- a\n- b\n  1. c"),
        ("- # a", "- **a**"),
        ("3) a\n4) b", "3. a\n4. b"),
        ("> a\n>\n> b", "> a\n> \n> b"),
        ("> a\n> > b", "> a\n> \n> > b"),
        ("a\n\n---\n\nb", "a\n\n──────────\n\nb"),
        ("![logo](https://x.org/a.png)", "[logo](https://x.org/a.png)"),
        ("a &lt; b &amp;&amp; c", "a < b && c"),
        ("[a]\n\n[a]: https://x.org/a 'title'", "[a](https://x.org/a)"),
        ("<b>raw</b>", "<b>raw</b>"),
    ],
)
def test_markdown_is_written_in_the_marks_that_discord_has(markdown, shown):
    assert rendered(markdown) == shown


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("see https://x.org/a_b_c now", "see https://x.org/a_b_c now"),
        ("see https://x.org/a.", "see https://x.org/a."),
        ("see https://x.org/a, or not", "see https://x.org/a, or not"),
        ("(https://x.org/a)", "(<https://x.org/a>)"),
        ("**https://x.org/a**", "**https://x.org/a**"),
        ("<https://x.org/a>", "https://x.org/a"),
        ("[https://x.org/a](https://x.org/a)", "https://x.org/a"),
        ("[](https://x.org/a)", "https://x.org/a"),
        ("[https://x.org](https://evil.org)", "https://x.org (<https://evil.org>)"),
        ("[a \\[b\\]](https://x.org)", "a [b] (<https://x.org>)"),
        ("[a](http://localhost:1/b)", "a (<http://localhost:1/b>)"),
        ("[docs](https://example.org/d_(1))", "[docs](https://example.org/d_(1))"),
        ("[x](<https://x.org/a(b>)", "[x](https://x.org/a%28b)"),
        ("<a_b_@x.org>", "a_b\\_@x.org"),
        ("[mail](mailto:a@x.org)", "mail (a@x.org)"),
        ("[x](javascript:alert)", "[x]\\(javascript:alert)"),
        ("\\[x](https://x.org)", "[x]\\(<https://x.org>)"),
    ],
)
def test_an_address_is_a_link_to_itself_and_no_label_hides_another(markdown, shown):
    assert rendered(markdown) == shown
    assert "[https://" not in shown


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("3 * 4 snake_case a|b ~c C:\\dir - x # y 1. z > q", "3 * 4 snake_case a|b ~c C:\\dir - x # y 1. z > q"),
        ("2\\*3\\*4 \\_x\\_ \\~~a~~ \\||b|| \\`c\\`", "2\\*3\\*4 \\_x\\_ \\~\\~a\\~\\~ \\|\\|b\\|\\| \\`c\\`"),
        ("\\# a\n\\- b\n\\> c\n1\\. d\n-# e", "\\# a\n\\- b\n\\> c\n1\\. d\n\\-# e"),
        ("- \\- a", "- \\- a"),
        ("**\\*a**", "**\\*a**"),
    ],
)  # fmt: skip
def test_only_what_discord_would_take_for_a_mark_has_a_backslash(markdown, shown):
    assert rendered(markdown) == shown


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text(SPECIAL, min_size=1, max_size=12), min_size=1, max_size=6))
@example(["\\*a\\*", "**", "_a_", "#", "- #", "1.", "-# x"])
def test_plain_text_is_read_as_it_was_written(words):
    lines = [line for line in (" ".join(word.split()) for word in words) if line]
    text = "\n".join(lines)
    assume("://" not in text)

    assert seen(rendered("\n".join(quoted(line) for line in lines))) == text
    assert seen(escaped(text)) == text


@settings(max_examples=400, deadline=None)
@given(st.lists(INLINES, min_size=1, max_size=4))
@example([Emphasis(children=(Text(text="a"),)), Strong(children=(Text(text="b"),))])
@example([Strong(children=(Emphasis(children=(Text(text="a"),)), Text(text="b")))])
def test_formatted_text_is_read_without_its_marks(inlines):
    text = plain_text(inlines).strip()
    assume(text)

    assert seen(render_blocks([Paragraph(children=tuple(inlines))])).replace("\u200b", "") == text


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS)
@example("```\na```b\n```")
@example("- ```\n  x")
@example("> ```py\n> x")
@example("`` ``` ``")
@example("\\``**```py`")
@example("**`a`**__**`b`**__`c`")
def test_fences_are_whole_at_every_prefix_of_a_stream(document):
    for end in range(len(document) + 1):
        assert not has_broken_fence(rendered(document[:end]))


@settings(max_examples=200, deadline=None)
@given(st.text("ab`~ \n", max_size=60))
def test_code_is_shown_whole_but_for_blanks_around_it(code):
    assume(code.strip())
    shown = fenced(code, "py")

    assert not has_broken_fence(shown)
    assert [block.replace("\u200b", "") for block in blocks_of_code(shown)] == [code.strip("\n")]


def test_code_keeps_its_language_and_everything_in_it():
    assert rendered("Run:\n```python\nif a < b:\n\n    **x** `y`\n```\ndone") == (
        "Run:\n\n```python\nif a < b:\n\n    **x** `y`\n```\n\ndone"
    )
    assert rendered("```what is this?\nx\n```") == "```what\nx\n```"
    assert rendered("```c++/x\nx\n```") == "```\nx\n```"


def test_code_in_a_list_is_not_indented_and_code_in_a_quote_stays_there():
    assert rendered("- a\n  ```\n  x\n    y\n  ```\n- b") == "- a\n```\nx\n  y\n```\n- b"
    assert rendered("> ```\n> x\n> ```") == "> ```\n> x\n> ```"
    assert rendered("- ```\n  x\n  ```") == "-\n```\nx\n```"


def test_code_in_a_line_may_hold_backticks():
    assert rendered("`` a`b ``") == "``a`b``"
    assert rendered("``` a``b ```") == "``a`\u200b`b``"
    assert rendered("`` `a` ``") == "`` `a` ``"
    assert seen(rendered("\\``a`")) == "`\u200ba"


def test_a_table_stands_as_aligned_code_with_its_links_below():
    table = "| Name | Count |\n|---|--:|\n| [a](https://x.org/a) | 1 |\n| ```b``` | 20 |"

    assert rendered(table) == "```\nName | Count\n-----+------\na    |     1\nb    |    20\n```\n[a](https://x.org/a)"


def test_what_shows_nothing_is_nothing():
    for markdown in ("", " \n ", "```\n\n```", "[]()", "&#32;", "---", "\u200b"):
        assert rendered(markdown) == ""


def test_lone_surrogates_are_replaced():
    assert encodable("a\ud800b\U0001f600") == "a\ufffdb\U0001f600"


def test_no_line_grows_without_bound_however_deep_its_list():
    assert max(len(line) for line in rendered("- " * 200 + "x").split("\n")) < 500


def test_a_long_text_takes_no_more_time_than_its_length_is_worth():
    assert len(rendered("*a* https://x.org/a_b " * 4_000)) > 80_000
