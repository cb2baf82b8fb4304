"""Markdown as Telegram shows it: characters, and entities that say how some of them look; pure.

Entities need no escaping and cannot unbalance a message, which the platform's own markup can.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import urlsplit

from channels.markdown import (
    Block,
    Break,
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
    plain_text,
)
from channels.tables import draw_table, links_of
from channels.telegram.formatted import Entity, Formatted, Kind, settled

_BULLET = "•"
_RULE = "─" * 10
_INDENT = "  "
_INNER_QUOTE = "> "
_DEEPEST_INDENT = 8
"""So that no line grows without bound, however deeply its list is nested."""
_TAB_CHARS = 4
_LONGEST_LANGUAGE = 32
_LEADING_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_NO_HOST = re.compile(r"[\s\"#<>?@\[\\\]^`{|}:]")

_CLEANED = {
    **dict.fromkeys(range(0x20), " "),
    ord("\n"): "\n",
    ord("\r"): None,
    **dict.fromkeys(range(0x2028, 0x202F)),
}
"""What Telegram does to a text before it looks at the entities (tdlib, clean_input_string)."""

_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


def format_blocks(blocks: Sequence[Block]) -> Formatted:
    """Return what a parsed Markdown text looks like on Telegram; empty where there is nothing to see.

    Lists have bullets and numbers, headings are bold, tables stand as aligned code with their
    links below, images are links, and a link that Telegram would refuse is followed by its target.
    """
    drawing = _Drawing()
    drawing.draw(blocks, apart=True)
    formatted = settled(drawing.text, drawing.entities)
    return formatted if is_visible(formatted.text.replace(_RULE, "")) else Formatted(text="")


def is_visible(text: str) -> bool:
    """Return whether a message of `text` would show anything."""
    return any(unicodedata.category(char) not in _INVISIBLE for char in text)


@dataclass(slots=True, kw_only=True)
class _Mark:
    """An entity to be; it starts with the first character that is drawn in it."""

    kind: Kind
    detail: str
    start: int | None = None


class _Drawing:
    """The text so far. Line ends wait for what follows, so that what draws nothing leaves no gap."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._pieces: list[str] = []
        self._length = 0
        self._line_ends = 0
        self._is_line_begun = False
        self._indents: list[str] = []
        self._marks: list[_Mark] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def draw(self, blocks: Sequence[Block], *, apart: bool) -> None:
        """Draw blocks below each other, with an empty line between them where they stand apart."""
        for number, block in enumerate(blocks):
            if number:
                self._end_line(2 if apart else 1)
            self._block(block)

    def _block(self, block: Block) -> None:
        match block:
            case Paragraph(children=children):
                self._inlines(children)
            case Heading(children=children):
                self._marked_inlines(Kind.BOLD, children)
            case CodeBlock(language=language, text=text):
                self._verbatim(_shown_code(text), language)
            case Quote(blocks=blocks):
                self._quote(blocks)
            case List():
                self._list(block)
            case Table():
                self._table(block)
            case Rule():
                self._write(_RULE)
            case _:
                assert_never(block)

    def _quote(self, blocks: Sequence[Block]) -> None:
        self._end_line(1)
        if self._is_within(Kind.QUOTE):
            with self._indented(_INNER_QUOTE):
                self.draw(blocks, apart=True)
        else:
            outer, self._indents = self._indents, []
            with self._marked(Kind.QUOTE):
                self.draw(blocks, apart=True)
            self._indents = outer

    def _list(self, block: List) -> None:
        for number, item in enumerate(block.items):
            if number:
                self._end_line(1 if block.tight else 2)
            self._write(f"{block.start + number}. " if block.ordered else f"{_BULLET} ")
            with self._indented(_INDENT):
                self.draw(item, apart=not block.tight)

    def _table(self, table: Table) -> None:
        self._verbatim(draw_table(table).translate(_CLEANED))
        self._end_line(1)
        for number, link in enumerate(links_of(table)):
            if number:
                self._write(" · ")
            self._link(link.url, link.children)

    def _verbatim(self, text: str, language: str = "") -> None:
        if is_visible(text):
            self._end_line(1)
            with self._marked(Kind.PRE, language if len(language) <= _LONGEST_LANGUAGE else ""):
                self._begin_line(indent="")
                self._add(text)

    def _inlines(self, children: Sequence[Inline]) -> None:
        for inline in children:
            self._inline(inline)

    def _inline(self, inline: Inline) -> None:
        match inline:
            case Text(text=text):
                self._write(text)
            case Strong(children=children):
                self._marked_inlines(Kind.BOLD, children)
            case Emphasis(children=children):
                self._marked_inlines(Kind.ITALIC, children)
            case Strike(children=children):
                self._marked_inlines(Kind.STRIKE, children)
            case Code(text=text):
                self._marked_inlines(Kind.CODE, (Text(text=text),))
            case Link(url=url, children=children):
                self._link(url, children)
            case Image(url=url, label=label):
                self._link(url, (Text(text=label),))
            case Break():
                self._end_line(1)
            case _:
                assert_never(inline)

    def _link(self, url: str, children: Sequence[Inline]) -> None:
        shown = url.removeprefix("mailto:")
        label = plain_text(children).strip()
        if label in {url, shown}:
            self._inlines(children)  # Telegram makes links of addresses itself
        elif not is_visible(label):
            self._write(shown)
        elif _is_linkable(url):
            self._marked_inlines(Kind.LINK, children, url)
        else:
            self._inlines(children)
            self._write(f" ({shown})")

    def _marked_inlines(self, kind: Kind, children: Sequence[Inline], detail: str = "") -> None:
        if self._is_within(kind) or (kind is Kind.CODE and self._is_within(Kind.LINK)):
            self._inlines(children)
        else:
            with self._marked(kind, detail):
                self._inlines(children)

    def _is_within(self, kind: Kind) -> bool:
        return any(mark.kind is kind for mark in self._marks)

    @contextmanager
    def _marked(self, kind: Kind, detail: str = "") -> Iterator[None]:
        mark = _Mark(kind=kind, detail=detail)
        self._marks.append(mark)
        yield
        self._marks.pop()
        if mark.start is not None:
            self.entities.append(Entity(kind=kind, start=mark.start, end=self._length, detail=detail))

    @contextmanager
    def _indented(self, indent: str) -> Iterator[None]:
        self._indents.append(indent)
        yield
        self._indents.pop()

    def _write(self, text: str) -> None:
        self._begin_line(indent="".join(self._indents[:_DEEPEST_INDENT]))
        self._add(text.translate(_CLEANED))

    def _end_line(self, count: int) -> None:
        """End the line, if anything stands on it, and leave `count` - 1 lines empty before the next."""
        if self._is_line_begun:
            self._line_ends = max(self._line_ends, count)

    def _begin_line(self, *, indent: str) -> None:
        """Go to where the next character stands: on the line that is begun, or behind the indentation of a new one."""
        if self._line_ends:
            self._put("\n" * self._line_ends)
            self._line_ends = 0
            self._is_line_begun = False
        if not self._is_line_begun:
            self._start_marks(of=(Kind.QUOTE,))  # the sign of an inner quote stands in the outer one
            self._put(indent)
            self._is_line_begun = True

    def _add(self, text: str) -> None:
        self._start_marks(of=tuple(Kind))
        self._put(text)

    def _start_marks(self, *, of: Sequence[Kind]) -> None:
        for mark in self._marks:
            if mark.start is None and mark.kind in of:
                mark.start = self._length

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)


def _shown_code(text: str) -> str:
    """Return code with its first line where Telegram, which takes blanks away there, leaves it."""
    code = _LEADING_BLANK_LINES.sub("", text.expandtabs(_TAB_CHARS)).rstrip()
    return (textwrap.dedent(code) if code[:1].isspace() else code).translate(_CLEANED)


def _is_linkable(url: str) -> bool:
    """Return whether Telegram takes the target (tdlib, check_link_impl); one that it refuses costs the message."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_host = "." in host.strip(".") and not _NO_HOST.search(host)
    return parts.scheme in {"http", "https"} and is_host and port != 0
