import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.web.markdown import is_safe_link, to_html

ALLOWED_TAGS = {"p", "br", "strong", "em", "s", "code", "pre", "a", "ul", "ol", "li", "blockquote", "hr"} | {
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
}
ALLOWED_ATTRIBUTES = {"href", "rel", "target", "title", "class", "start"}


class Reader(HTMLParser):
    """Collects what a browser would make elements and attributes of."""

    def __init__(self):
        super().__init__()
        self.tags = set()
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


def read(html):
    reader = Reader()
    reader.feed(html)
    return reader


PIECES = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html,x)",
        "[a](//evil.example)",
        "![a](https://evil.example/pixel.png)",
        "<javascript:alert(1)>",
        '[a](https://x.example "t\\" onclick=alert(1)")',
        'https://x.example/"onmouseover=alert(1)',
        "| a |\n|:-:|\n| b |\n",
        '```js" onload=x\n</code></pre><script>\n```\n',
        "# ",
        "> ",
        "**",
        "&lt;b&gt;",
        "\n\n",
        "\x00",
        "`",
        "[",
        "](",
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=12))
def test_whatever_is_written_only_harmless_elements_come_out(pieces):
    seen = read(to_html("".join(pieces)))
    assert seen.tags <= ALLOWED_TAGS
    assert {name for name, _ in seen.attributes} <= ALLOWED_ATTRIBUTES
    assert all(is_safe_link(value) for name, value in seen.attributes if name == "href")


def test_raw_html_is_shown_as_text():
    assert to_html("<script>alert(1)</script>") == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"


@pytest.mark.parametrize(
    "url", ["javascript:x", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/audit", "//a.b"]
)
def test_a_link_to_anything_but_web_and_mail_stays_text(url):
    assert "<a " not in to_html(f"[click]({url})")


def test_links_open_elsewhere_and_carry_noopener():
    html = to_html("[site](https://example.org) and <mailto:a@example.org>")
    assert html.count('rel="noopener noreferrer nofollow" target="_blank"') == 2


def test_a_bare_address_becomes_a_link_without_the_sentence_around_it():
    html = to_html("See (https://example.org/a_b_c?x=1&y=2). Not `https://code.example`.")
    assert '<a href="https://example.org/a_b_c?x=1&amp;y=2"' in html
    assert "</a>). Not <code>https://code.example</code>." in html


def test_an_image_is_a_link_and_fetches_nothing():
    html = to_html("![a chart](https://example.org/c.png) [![badge](https://x.example/b.svg)](https://y.example)")
    assert "<img" not in html
    assert ">a chart</a>" in html
    assert re.search(r'<a href="https://y.example"[^>]*>badge</a>', html)


def test_table_alignment_is_a_class_because_the_policy_forbids_inline_styles():
    html = to_html("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert '<td class="align-right">2</td>' in html
    assert "style=" not in html


def test_headings_of_a_message_stand_below_those_of_the_page():
    assert to_html("# a\n\n###### b") == "<h3>a</h3>\n<h6>b</h6>\n"


def test_single_line_breaks_are_kept():
    assert to_html("one\ntwo") == "<p>one<br />\ntwo</p>\n"
