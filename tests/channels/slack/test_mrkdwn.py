import pytest
from hypothesis import given, settings

from channels.slack.mrkdwn import code_block, defused, encodable, escape, literal, render
from tests.channels.slack.markdown_samples import DOCUMENT, MARKDOWN, MENTIONS, assert_no_mention, assert_safe_mrkdwn

ZWSP = "\u200b"


def test_formatting_is_written_in_slacks_own_marks():
    shown = render("a **b** *c* ~~d~~ `e` [f](https://example.org/f) ![g](https://example.org/g)")

    assert shown == "a *b* _c_ ~d~ `e` <https://example.org/f|f> <https://example.org/g|g>"


def test_what_an_agent_writes_mentions_nobody_and_is_escaped_once_c17():
    shown = render(MENTIONS)

    assert_safe_mrkdwn(shown)
    assert_no_mention(shown)
    assert "&lt;!channel&gt;, &lt;!here&gt;, &lt;!subteam^S0TEAM&gt;, &lt;@U0BOB&gt;" in shown
    assert "if a &lt; b &amp;&amp; b &gt; c: see <https://example.org/x?y=1&amp;z=2>" in shown
    assert "&amp;amp;" not in shown


def test_a_link_and_bold_still_render_beside_it_c17():
    shown = render(f"{MENTIONS}\n\nread [docs](https://example.org/d_(1)), **bold**")

    assert shown.endswith("read <https://example.org/d_(1)|docs>, *bold*")


@pytest.mark.parametrize("written", ["&lt;!channel&gt;", "&#60;!channel&#62;", "\\<!channel\\>", "`<!channel>`"])
def test_no_way_to_write_a_mention_makes_one_c17(written):
    assert_no_mention(render(written))
    assert "&lt;!channel&gt;" in render(written)


def test_an_escape_that_an_agent_writes_is_shown_as_it_is_written():
    assert render("`&amp;` and &amp;amp; and &amp;") == "`&amp;amp;` and &amp;amp; and &amp;"


def test_headings_are_bold_and_bold_only_once():
    assert render("# a **b** `c`\n\nd") == "*a b `c`*\n\nd"
    assert render("***a** b*") == "_*a* b_"


def test_a_mark_never_spans_lines_nor_outer_blanks():
    assert render("**a\nb** c") == "*a*\n*b* c"
    assert render("**a&#32;&#32;**, b") == "*a*  , b"
    assert render("**&#32;**") == ""


def test_a_mark_in_the_middle_of_a_word_is_parted_from_it():
    assert render("x**y**z") == f"x{ZWSP}*y*{ZWSP}z"
    assert render("`a`b") == f"`a`{ZWSP}b"
    assert render("**a***b*") == f"*a*{ZWSP}_b_"
    assert render("(**a**) `b`, *c*.") == "(*a*) `b`, _c_."


def test_characters_that_mean_themselves_are_no_marks():
    assert (
        render("\\*lit\\* 2 * 3 snake_case_name ~5 a\\_")
        == f"*{ZWSP}lit*{ZWSP} 2 * 3 snake_case_name ~{ZWSP}5 a_{ZWSP}"
    )
    assert render("\\`tick\\`") == "\u02cbtick\u02cb"
    assert render("\\> no quote") == f"{ZWSP}&gt; no quote"


def test_code_in_a_line_holds_no_backtick():
    assert render("`` a`b ``") == "`a\u02cbb`"


def test_code_stands_between_fences_and_is_verbatim():
    assert render("Run:\n```python\nif a < b:\n\n    **x**\n```\ndone") == (
        "Run:\n\n```\nif a &lt; b:\n\n    **x**\n```\n\ndone"
    )


def test_a_fence_inside_code_does_not_end_it_c12():
    shown = render("````\n```\ninner\n```\n````")

    assert shown == f"```\n`{ZWSP}`{ZWSP}`\ninner\n`{ZWSP}`{ZWSP}`\n```"


def test_code_in_lists_and_quotes_stands_at_the_margin():
    assert render("- a\n  ```\n  x\n    y\n  ```\n- b") == "• a\n```\nx\n  y\n```\n• b"
    assert render("> a\n> ```\n> x\n> ```") == "> a\n>\n```\nx\n```"


def test_lists_have_bullets_numbers_and_indentation():
    shown = render("- one\n- two\n  - inner\n    more\n- \n\n7. seven\n8. eight\n   1. nine")

    assert shown == "• one\n• two\n    • inner\n        more\n•\n\n7. seven\n8. eight\n    1. nine"


def test_a_list_that_begins_with_another_block_keeps_its_bullet():
    assert render("- > q\n- ```\n  c\n  ```") == "•\n    > q\n•\n```\nc\n```"


def test_quotes_have_a_sign_on_every_line():
    assert render("> a\n> b\n>\n> > c") == "> a\n> b\n>\n> > c"


def test_a_table_is_aligned_code_with_its_links_below():
    shown = render("| a | b |\n|---|--:|\n| 1 | [x](https://e.org/x) |")

    assert shown == "```\na | b\n--+--\n1 | x\n```\n<https://e.org/x|x>"


def test_a_link_is_one_whatever_its_label_and_target_hold():
    assert render("[a|b > c](https://e.org/a|b)") == "<https://e.org/a%7Cb|a|b &gt; c>"
    assert render("<https://e.org/?a=1&b=2>") == "<https://e.org/?a=1&amp;b=2>"
    assert render("[](https://e.org)") == "<https://e.org>"
    assert render("[**a**\n`b`](https://e.org)") == "<https://e.org|a b>"
    assert render("<a@b.org>") == "<mailto:a@b.org|a@b.org>"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "slack://x", "!channel", "@U0BOB", "#C0ROOM"])
def test_a_link_elsewhere_is_text(url):
    assert "<" not in render(f"[x](<{url}>)")


@pytest.mark.parametrize("markdown", ["", "---", "```\n\n```", "#", ">", "\u200b", "** **"])
def test_what_shows_nothing_is_nothing(markdown):
    assert render(markdown).replace("*", "").replace(" ", "") == ""


def test_plain_text_is_escaped_and_disarmed_line_by_line():
    assert literal("*a*\n> b <!here>\n`c`") == (f"*{ZWSP}a*{ZWSP}\n{ZWSP}&gt; b &lt;!here&gt;\n\u02cbc\u02cb")
    assert escape("a < b & c") == "a &lt; b &amp; c"
    assert code_block("a ``` <b>") == f"```\na `{ZWSP}`{ZWSP}` &lt;b&gt;\n```"
    assert defused("<!here> <b> a<b") == f"<{ZWSP}!here> <b> a<b"


def test_no_request_holds_what_it_cannot_carry_and_nothing_is_hidden():
    assert encodable("a\ud83d\r\nb\rc\x00\x1b\x7f\t") == "a\ufffd\nb\nc\u2400\u241b\u2421\t"
    assert encodable("\ud83d\ude00") == "\U0001f600"


def test_deep_nesting_grows_no_line_without_bound():
    shown = render("\n".join(f"{'  ' * depth}- {depth}" for depth in range(30)))

    assert max(map(len, shown.split("\n"))) < 120


@given(MARKDOWN)
@settings(max_examples=400, deadline=None)
def test_any_markdown_is_safe_when_it_is_rendered(text):
    shown = render(text)

    assert_safe_mrkdwn(shown)
    assert_no_mention(shown)


@given(MARKDOWN)
@settings(max_examples=200, deadline=None)
def test_any_plain_text_is_safe(text):
    assert_safe_mrkdwn(literal(text))
    assert_safe_mrkdwn(code_block(encodable(text)))
    assert_no_mention(defused(text))


def test_every_beginning_of_an_answer_is_safe_when_it_is_rendered():
    for end in range(len(DOCUMENT) + 1):
        assert_safe_mrkdwn(render(DOCUMENT[:end]))
