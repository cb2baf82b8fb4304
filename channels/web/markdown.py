"""Markdown to HTML that can be shown whoever wrote it: no raw HTML, no scripts, no loads, no inline styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

_SCHEMES = frozenset({"http", "https", "mailto"})
_BARE_URL = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,:;!?)\]}*_~]")
_HEADING_SHIFT = 2
"""A page's own headings are h1 and h2; those of a message come below them."""
_DEEPEST_HEADING = 6


def to_html(text: str) -> Markup:
    """Return `text`, CommonMark with tables and strikethrough, as an HTML fragment.

    Raw HTML is shown as text. Links go to http, https and mailto only, with `rel="noopener"`;
    an image becomes a link to it, so that showing an answer fetches nothing. Single line breaks
    are kept, as people write in chats.
    """
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - made safe by the parser; raw HTML is off


def is_safe_link(url: str) -> bool:
    """Return whether a link may be shown as one."""
    try:
        return urlsplit(url.strip()).scheme.lower() in _SCHEMES
    except ValueError:
        return False


class _ChatMarkdown(MarkdownIt):
    """The parser with our idea of a safe link; links it refuses stay text."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return is_safe_link(url)


def _build() -> MarkdownIt:
    markdown = _ChatMarkdown("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    markdown.core.ruler.push("lodger", _settle_tokens)
    return markdown


def _settle_tokens(state: StateCore) -> None:
    """Bring parsed tokens to what the page can show."""
    for token in state.tokens:
        if token.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            token.tag = f"h{min(int(token.tag[1]) + _HEADING_SHIFT, _DEEPEST_HEADING)}"
        elif token.tag in {"th", "td"}:
            _name_alignment(token)
        elif token.type == "inline":
            token.children = list(_settle_inline(token.children or []))


def _name_alignment(cell: Token) -> None:
    # The page's policy forbids style attributes, which is how the parser says it.
    style = cell.attrs.pop("style", None)
    if isinstance(style, str):
        cell.attrs["class"] = style.replace("text-align:", "align-")


def _settle_inline(children: list[Token]) -> Iterator[Token]:
    depth = 0
    for child in children:
        depth += child.nesting if child.type in {"link_open", "link_close"} else 0
        if child.type == "link_open":
            _mark_foreign(child)
            yield child
        elif child.type == "image":
            yield from _image_as_link(child, inside_link=depth > 0)
        elif child.type == "text" and depth == 0:
            yield from _link_bare_urls(child)
        else:
            yield child


def _mark_foreign(link: Token) -> None:
    link.attrs["rel"] = "noopener noreferrer nofollow"
    link.attrs["target"] = "_blank"


def _image_as_link(image: Token, *, inside_link: bool) -> Iterator[Token]:
    url = str(image.attrs.get("src", ""))
    label = image.content or url
    yield from [_text(label)] if inside_link else _link(url, label)


def _link_bare_urls(text: Token) -> Iterator[Token]:
    end = 0
    for url in _BARE_URL.finditer(text.content):
        if is_safe_link(url[0]):
            yield _text(text.content[end : url.start()])
            yield from _link(url[0], url[0])
            end = url.end()
    yield _text(text.content[end:])


def _link(url: str, label: str) -> Iterator[Token]:
    opened = Token("link_open", "a", 1, attrs={"href": url})
    _mark_foreign(opened)
    yield opened
    yield _text(label)
    yield Token("link_close", "a", -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


_MARKDOWN = _build()
