"""The one Markdown parser: CommonMark with tables and strikethrough; raw HTML is text."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

_SCHEMES = frozenset({"http", "https", "mailto"})
_HEAD_OF_TABLE = re.compile(r"^[ \t>]*[|:-][|: \t-]*$", re.MULTILINE)
_SPARE_CELLS = 20_000
"""So many more cells than characters may a text have; each row is filled up to the width of its table."""


def tokens(text: str) -> list[Token]:
    """Return the parser's tokens of `text`, those of inline content as children of their blocks.

    Takes time in proportion to the text, whatever it holds; blocks nest at most 20 deep, inline
    content as deep as it likes.
    """
    return _parser_for(text).parse(text)


def block_tokens(text: str) -> list[Token]:
    """Return the tokens of the blocks alone, which is faster. Lines end with LF, CR LF or CR."""
    found: list[Token] = []
    env: dict[str, Any] = {}
    parser = _parser_for(text)
    parser.block.parse(text.replace("\r\n", "\n").replace("\r", "\n"), parser, env, found)
    return found


def is_safe_link(url: str) -> bool:
    """Return whether a link may be shown as one: to the web or to a mail address."""
    try:
        return urlsplit(url.strip()).scheme.lower() in _SCHEMES
    except ValueError:
        return False


class _ChatMarkdown(MarkdownIt):
    """The parser with our idea of a safe link; links it refuses stay text."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return is_safe_link(url)


def _parser_for(text: str) -> MarkdownIt:
    """Return the parser; without tables for a text that would make thousands of empty cells of few characters."""
    columns = max((head[0].count("|") + 1 for head in _HEAD_OF_TABLE.finditer(text)), default=0)
    return _PARSER if columns * text.count("\n") <= len(text) + _SPARE_CELLS else _WITHOUT_TABLES


_WITHOUT_TABLES = _ChatMarkdown("commonmark", {"html": False}).enable("strikethrough")
_PARSER = _ChatMarkdown("commonmark", {"html": False}).enable(["strikethrough", "table"])
