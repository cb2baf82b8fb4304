"""Markdown as a tree, the same for every platform: what a renderer draws, and nothing of how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, assert_never

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from channels.commonmark import is_safe_link, tokens

LONGEST_TEXT_CHARS = 100_000
"""A longer text is shown as it is written: the parser takes up to 70 µs for a malicious character."""

DEEPEST_INLINE = 8
"""Formatting that is nested deeper is left out and its text kept, so that renderers may recurse."""

_BARE_URL = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,:;!?)\]}*_~]")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Characters that mean themselves; no line breaks."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strong:
    """Bold."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Emphasis:
    """Italic."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """Struck through."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Verbatim characters in a line."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link to the web or to a mail address. It holds no other link and no image; it may hold nothing."""

    url: str
    children: tuple[Inline, ...]
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image on the web; nothing fetches it. `label` is never empty."""

    url: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The end of a line; in chats every line break counts."""


Inline: TypeAlias = Text | Strong | Emphasis | Strike | Code | Link | Image | Break


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Lines of text."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    """Verbatim lines; each of them ends with a line break. `language` is the author's word, or empty."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What somebody else said."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """Items with bullets, or with numbers from `start`; `tight` ones stand without blank lines."""

    ordered: bool
    start: int
    tight: bool
    items: tuple[tuple[Block, ...], ...]


class Alignment(StrEnum):
    """How the cells of a column stand, where the author says so."""

    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


Cell: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; every row has a cell for each column."""

    alignments: tuple[Alignment | None, ...]
    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line across."""


Block: TypeAlias = Paragraph | Heading | CodeBlock | Quote | List | Table | Rule


def parse(markdown: str) -> tuple[Block, ...]:
    """Return the blocks of a text.

    Any text parses: what is no Markdown is text, and so are raw HTML and links to anything but
    http, https and mailto. A block of code that is not closed goes on to the end. Bare addresses
    of the web become links to themselves. Blocks nest at most 20 deep, inline content
    `DEEPEST_INLINE`. A text of more than `LONGEST_TEXT_CHARS` is one paragraph, as it is written.
    """
    if len(markdown) > LONGEST_TEXT_CHARS:
        return (Paragraph(children=tuple(_verbatim(markdown))),)
    return _Reader(tokens(markdown)).blocks()


def plain_text(children: Sequence[Inline]) -> str:
    """Return inline content without any formatting; line breaks are blanks."""
    return "".join(map(_plain, children))


def _plain(inline: Inline) -> str:
    match inline:
        case Text(text=text) | Code(text=text) | Image(label=text):
            return text
        case Strong() | Emphasis() | Strike() | Link():
            return plain_text(inline.children)
        case Break():
            return " "
        case _:
            assert_never(inline)


def _verbatim(text: str) -> Iterator[Inline]:
    for number, line in enumerate(_LINE_END.split(text)):
        if number:
            yield Break()
        yield Text(text=line)


class _Reader:
    """Reads the blocks of a parsed text, one token after the other."""

    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = iter(found)
        self._spaced_levels: set[int] = set()
        """Where the parser has seen paragraphs that stand apart, as those of a loose list do."""

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks up to the end of the one that is being read."""
        return tuple(self._block(token) for token in self._within())

    def _within(self) -> Iterator[Token]:
        """Yield what begins inside the block that is being read, up to its end."""
        for token in self._tokens:
            if token.nesting < 0:
                return
            yield token

    def _block(self, token: Token) -> Block:
        block: Block
        match token.type:
            case "paragraph_open":
                if not token.hidden:
                    self._spaced_levels.add(token.level)
                block = Paragraph(children=self._content())
            case "heading_open":
                block = Heading(level=int(token.tag[1]), children=self._content())
            case "fence" | "code_block":
                block = CodeBlock(language=_language(token.info), text=_ended(token.content))
            case "blockquote_open":
                block = Quote(blocks=self.blocks())
            case "bullet_list_open" | "ordered_list_open":
                block = self._list(token)
            case "table_open":
                block = self._table()
            case "hr":
                block = Rule()
            case unknown:
                raise AssertionError(f"the parser knows no block {unknown!r}")
        return block

    def _content(self) -> tuple[Inline, ...]:
        """Return the inline content of the block that has just begun, and read its end."""
        content = next(self._tokens)
        next(self._tokens)
        return _inlines(content.children or [])

    def _list(self, opened: Token) -> List:
        level = opened.level + 2  # behind the list and its item
        self._spaced_levels.discard(level)
        items = tuple(self.blocks() for _ in self._within())
        return List(
            ordered=opened.type == "ordered_list_open",
            start=int(opened.attrs.get("start", 1)),
            tight=level not in self._spaced_levels,
            items=items,
        )

    def _table(self) -> Table:
        alignments: list[Alignment | None] = []
        rows: list[tuple[Cell, ...]] = []
        for _section in self._within():
            for _row in self._within():
                cells: list[Cell] = []
                for cell in self._within():
                    alignments.append(_alignment(cell))
                    cells.append(self._content())
                rows.append(tuple(cells))
        header, *body = rows
        return Table(alignments=tuple(alignments[: len(header)]), header=header, rows=tuple(body))


def _language(info: str) -> str:
    return next(iter(unescapeAll(info).split()), "")


def _ended(code: str) -> str:
    return code if not code or code.endswith("\n") else f"{code}\n"


def _alignment(cell: Token) -> Alignment | None:
    style = str(cell.attrs.get("style", ""))
    return Alignment(style.removeprefix("text-align:")) if style else None


def _inlines(found: Sequence[Token]) -> tuple[Inline, ...]:
    """Return inline tokens as a tree; without recursion, as nothing limits how deep they nest."""
    opened: list[Token] = []
    contents: list[list[Inline]] = [[]]
    for token in found:
        if token.nesting > 0:
            opened.append(token)
            if len(opened) <= DEEPEST_INLINE:
                contents.append([])
        elif token.nesting < 0:
            opening = opened.pop()
            if len(opened) < DEEPEST_INLINE:
                children = tuple(contents.pop())
                contents[-1].extend(_wrapped(opening, children))
        else:
            in_link = any(outer.type == "link_open" for outer in opened[:DEEPEST_INLINE])
            contents[-1].extend(_leaves(token, in_link=in_link))
    (content,) = contents
    return tuple(content)


def _wrapped(opening: Token, children: tuple[Inline, ...]) -> tuple[Inline, ...]:
    """Return inline content with its formatting; without, for a link to nowhere, such as `[text]()`."""
    match opening.type:
        case "strong_open":
            return (Strong(children=children),)
        case "em_open":
            return (Emphasis(children=children),)
        case "s_open":
            return (Strike(children=children),)
        case "link_open":
            url, title = str(opening.attrs["href"]), str(opening.attrs.get("title", ""))
            return (Link(url=url, title=title, children=children),) if is_safe_link(url) else children
        case unknown:
            raise AssertionError(f"the parser knows no formatting {unknown!r}")


def _leaves(token: Token, *, in_link: bool) -> Iterator[Inline]:
    match token.type:
        case "text":
            text = _LINE_END.sub(" ", token.content)  # a line break from an entity is none
            yield from [Text(text=text)] if in_link and text else _with_bare_urls(text)
        case "code_inline":
            yield Code(text=token.content)
        case "softbreak" | "hardbreak":
            yield Break()
        case "image":
            yield from _image(str(token.attrs["src"]), token.content, in_link=in_link)
        case unknown:
            raise AssertionError(f"the parser knows no inline content {unknown!r}")


def _image(url: str, label: str, *, in_link: bool) -> Iterator[Inline]:
    if is_safe_link(url) and not in_link:
        yield Image(url=url, label=label or url)
    elif label or url:
        yield Text(text=label or url)


def _with_bare_urls(text: str) -> Iterator[Inline]:
    end = 0
    for found in _BARE_URL.finditer(text):
        if is_safe_link(found[0]):
            if found.start() > end:
                yield Text(text=text[end : found.start()])
            yield Link(url=found[0], children=(Text(text=found[0]),))
            end = found.end()
    if end < len(text):
        yield Text(text=text[end:])
