import pytest

from channels.commonmark import block_tokens, is_safe_link, tokens


def kinds(found):
    return [token.type for token in found]


def test_tables_and_strikethrough_are_read_and_raw_html_is_not():
    assert kinds(tokens("|a|\n|-|"))[0] == "table_open"
    assert kinds(tokens("~~a~~")[1].children) == ["s_open", "text", "s_close"]
    assert kinds(tokens("<b>x</b>\n\n<div>")) == ["paragraph_open", "inline", "paragraph_close"] * 2


def test_blocks_alone_are_the_same_blocks_whatever_ends_their_lines():
    text = "# a\n\n- b\n  ```\n  c\n  ```\n\n|d|\n|-|\n"

    assert kinds(block_tokens(text)) == kinds(tokens(text))
    for end in ("\r\n", "\r"):
        assert [token.map for token in block_tokens(text.replace("\n", end))] == [token.map for token in tokens(text)]


def test_a_text_that_few_characters_would_make_huge_has_no_tables():
    head = "|" * 400 + "a|\n" + "|-" * 400 + "|\n"

    assert "table_open" not in kinds(tokens(head + "b\n" * 500))
    assert "table_open" not in kinds(block_tokens(head + "b\n" * 500))


@pytest.mark.parametrize("url", ["https://a.b", "HTTP://a.b", "mailto:a@b.c"])
def test_links_to_web_and_mail_are_safe(url):
    assert is_safe_link(url)


@pytest.mark.parametrize("url", ["javascript:x", "tg://user?id=1", "data:,x", "//a.b", "/x", "", "http://["])
def test_other_links_are_not(url):
    assert not is_safe_link(url)
