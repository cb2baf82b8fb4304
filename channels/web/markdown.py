"""Markdown to HTML that can be shown whoever wrote it: no raw HTML, no scripts, no loads, no inline styles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from markupsafe import Markup, escape

from channels.commonmark import is_safe_link
from channels.markdown import (
    Alignment,
    Block,
    Break,
    Cell,
    Code,
    CodeBlock,
    Emphasis,
    Heading,
    Image,
    Inline,
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
)

__all__ = ["is_safe_link", "to_html"]

_HEADING_SHIFT = 2
"""A page's own headings are h1 and h2; those of a message come below them."""
_DEEPEST_HEADING = 6


def to_html(text: str) -> Markup:
    """Return `text`, CommonMark with tables and strikethrough, as an HTML fragment.

    Raw HTML is shown as text. Links go to http, https and mailto only, with `rel="noopener"`;
    an image becomes a link to it, so that showing an answer fetches nothing. Single line breaks
    are kept, as people write in chats.
    """
    return Markup(_blocks(parse(text)))  # noqa: S704 - made of escaped text alone, below


def _blocks(blocks: Sequence[Block]) -> str:
    return "".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Paragraph(children=children):
            html = f"<p>{_inlines(children)}</p>"
        case Heading(level=level, children=children):
            tag = f"h{min(level + _HEADING_SHIFT, _DEEPEST_HEADING)}"
            html = f"<{tag}>{_inlines(children)}</{tag}>"
        case CodeBlock(language=language, text=text):
            css_class = f' class="language-{escape(language)}"' if language else ""
            html = f"<pre><code{css_class}>{escape(text)}</code></pre>"
        case Quote(blocks=blocks):
            html = f"<blockquote>\n{_blocks(blocks)}</blockquote>"
        case List():
            html = _list(block)
        case Table():
            html = _table(block)
        case Rule():
            html = "<hr />"
        case _:
            assert_never(block)
    return f"{html}\n"


def _list(block: List) -> str:
    tag = "ol" if block.ordered else "ul"
    start = f' start="{block.start}"' if block.ordered and block.start != 1 else ""
    items = "".join(f"<li>{_item(item, tight=block.tight)}</li>\n" for item in block.items)
    return f"<{tag}{start}>\n{items}</{tag}>"


def _item(blocks: Sequence[Block], *, tight: bool) -> str:
    """Return the content of an item; in a tight list paragraphs are lines."""
    if not tight:
        return f"\n{_blocks(blocks)}"
    return "\n".join(_inlines(b.children) if isinstance(b, Paragraph) else _block(b) for b in blocks)


def _table(table: Table) -> str:
    head = f"<thead>\n{_row(table.header, 'th', table.alignments)}</thead>\n"
    rows = "".join(_row(row, "td", table.alignments) for row in table.rows)
    body = f"<tbody>\n{rows}</tbody>\n" if rows else ""
    return f"<table>\n{head}{body}</table>"


def _row(cells: Sequence[Cell], tag: str, alignments: Sequence[Alignment | None]) -> str:
    # A class, because the page's policy forbids style attributes.
    drawn = (
        f'<{tag} class="align-{alignment}">{_inlines(cell)}</{tag}>\n'
        if alignment
        else f"<{tag}>{_inlines(cell)}</{tag}>\n"
        for cell, alignment in zip(cells, alignments, strict=True)
    )
    return f"<tr>\n{''.join(drawn)}</tr>\n"


def _inlines(children: Sequence[Inline]) -> str:
    return "".join(map(_inline, children))


def _inline(inline: Inline) -> str:
    match inline:
        case Text(text=text):
            html: str = escape(text)
        case Strong(children=children):
            html = f"<strong>{_inlines(children)}</strong>"
        case Emphasis(children=children):
            html = f"<em>{_inlines(children)}</em>"
        case Strike(children=children):
            html = f"<s>{_inlines(children)}</s>"
        case Code(text=text):
            html = f"<code>{escape(text)}</code>"
        case Link(url=url, title=title, children=children):
            html = _link(url, _inlines(children), title)
        case Image(url=url, label=label):
            html = _link(url, escape(label))
        case Break():
            html = "<br />\n"
        case _:
            assert_never(inline)
    return html


def _link(url: str, label: str, title: str = "") -> str:
    named = f' title="{escape(title)}"' if title else ""
    return f'<a href="{escape(url)}"{named} rel="noopener noreferrer nofollow" target="_blank">{label}</a>'
