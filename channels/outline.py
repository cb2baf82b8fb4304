"""Which blocks of a Markdown text a cut would break, and what mends them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from markdown_it.token import Token

from channels.commonmark import block_tokens

_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_BLOCK_MARK = re.compile(r"[-+*>#|=~`]|\d{1,9}[.)]")
_LIST_MARK = re.compile(r"[^>\s]")
_INDENTATION = re.compile(r"^ +|(?<=> ) +")
_PARTS_OF_BLOCKS = frozenset({"inline", "thead_open", "tbody_open", "tr_open"})

_LONGEST_MARKER = 16
"""A longer run of backticks is decoration, and repeating it would leave no room for text."""
_LONGEST_LANGUAGE = 24
_CODE_INDENT = 4
"""So many blanks make code of a line, outside of a list."""

_WHOLE = re.compile(
    r"!?\[(?:[^\[\]\\\n]|\\.){0,1000}+\]"  # a link: its label
    r"\((?:[^()\s\\]|\\.|\([^()\s]{0,500}+\)){0,2000}+(?:\s\"[^\"\n]{0,500}+\")?\)"  # its target and title
    r"|<https?://[^\s<>]{1,2000}+>"
    r"|https?://[!-~]{1,2000}+"
    r"|(?<!`)`[^`\n]{1,500}+`(?!`)"  # code in a line
)
"""What reads as one thing in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    """A fenced block: open from behind its first marker up to `end`; `closing` closes it, `head` opens it again."""

    first_line: int
    last_line: int
    start: int
    end: int
    is_closed: bool
    closing: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table: `head` is its first two lines, which end at `body`."""

    start: int
    body: int
    end: int
    head: str


class Outline:
    """Where the lines and blocks of a text are, as the parser of all platforms reads it.

    Indices are those of the text; a cut at one stands before that character.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        ends = (found.end() for found in _LINE_END.finditer(text))
        self._line_starts = [0, *(end for end in ends if end < len(text))]
        self._fences: list[_Fence] = []
        self._tables: list[_Table] = []
        self._block_lines: set[int] = set()
        for token in block_tokens(f"{text}\n"):  # the parser does not count a last line of mere blanks
            if token.map is not None and token.type not in _PARTS_OF_BLOCKS:
                self._read(token, *token.map)
        self._fence_lines = [fence.first_line for fence in self._fences]
        self._whole = [found.span() for found in _WHOLE.finditer(text)]

    def lines_between(self, first: int, last: int) -> tuple[int, ...]:
        """Return the lines that begin at `first` or later and at `last` at the latest."""
        return tuple(range(bisect_left(self._line_starts, first), bisect_right(self._line_starts, last)))

    def line_start(self, line: int) -> int:
        """Return where a line begins; the end of the text for one behind the last."""
        return self._line_starts[line] if line < len(self._line_starts) else len(self._text)

    def line_quality(self, line: int) -> int:
        """Return how well a part may begin with a line: 0 is best, 4 worst.

        Best begins a block behind an empty line, then any block, then any line behind an empty
        one, then any line. Indented lines come last: without what they belong to they would be
        read otherwise, and Telegram takes the indentation of a message's first line away.
        """
        start = self.line_start(line)
        if self._text[start : start + 1].isspace():
            return 4
        is_apart = line > 0 and self._text[self.line_start(line - 1) : start].isspace()
        return (0 if line in self._block_lines else 2) + (0 if is_apart else 1)

    def begins_block(self, index: int) -> bool:
        """Return whether the rest of a line could be read as a block if it began a part."""
        return _BLOCK_MARK.match(self._text, index) is not None

    def is_safe_cut(self, index: int) -> bool:
        """Return whether a cut leaves fence lines, the head of a table and links in one piece.

        And makes no fence of what is none, and no empty block.
        """
        if self._is_inside_whole(index) or self._is_inside_table_head(index):
            return False
        line = self._line_at(index)
        is_line_start = index == self.line_start(line)
        fence = self._fence_of(line)
        if fence is None:
            return is_line_start or not _FENCE.match(self._text, index)
        closing_line = fence.last_line if fence.is_closed else -1
        if is_line_start:
            return line not in {fence.first_line + 1, closing_line}
        if line == closing_line or self._text[index] in "\r\n":  # the latter: as well cut behind it
            return False
        return index > fence.start if line == fence.first_line else not _FENCE.match(self._text, index)

    def closing_at(self, index: int) -> str:
        """Return what a part must end with that is cut at `index`; empty where nothing is open."""
        fence = self._open_fence(index)
        if fence is None:
            return ""
        return fence.closing if self._text.endswith("\n", 0, index) else f"\n{fence.closing}"

    def reopening_at(self, index: int) -> str:
        """Return what the next part must begin with: an opening fence, or the head of a table."""
        fence = self._open_fence(index)
        if fence is not None and index < fence.end:
            return fence.head
        return next((table.head for table in self._tables if table.body <= index < table.end), "")

    def longest_closing(self, end: int) -> int:
        """Return the length of the longest closing that a cut up to `end` may need."""
        return max((len(fence.closing) + 1 for fence in self._fences if fence.start <= end), default=0)

    def _read(self, token: Token, first: int, last: int) -> None:
        self._block_lines.add(first)
        if token.type == "fence" and len(token.markup) <= _LONGEST_MARKER:
            self._fences.append(self._fence(token, first, last))
        elif token.type == "table_open":
            start, body = self.line_start(first), self.line_start(first + 2)
            head = self._text[start:body]
            self._tables.append(_Table(start=start, body=body, end=self.line_start(last), head=head))

    def _fence(self, token: Token, first: int, last: int) -> _Fence:
        start = self.line_start(first)
        line = self._text[start : self.line_start(first + 1)]
        marker_at = line.index(token.markup)
        container = _LIST_MARK.sub(" ", line[:marker_at]).expandtabs(_CODE_INDENT)
        return _Fence(
            first_line=first,
            last_line=last - 1,
            start=start + marker_at + len(token.markup),
            end=self.line_start(last),
            is_closed=self._is_closed(token, first, last),
            closing=(container if token.level else "") + token.markup,
            head=f"{_reopened(container)}{token.markup}{_language(token.info)}\n",
        )

    def _is_closed(self, token: Token, first: int, last: int) -> bool:
        """Return whether a block has a closing line; the parser ends others with their container, or the text."""
        content_lines = token.content.removesuffix("\n").count("\n") + 1 if token.content else 0
        last_line = self._text[self.line_start(last - 1) : self.line_start(last)].strip("> \t\r\n")
        return last - first == content_lines + 2 and last_line.startswith(token.markup)

    def _line_at(self, index: int) -> int:
        return bisect_right(self._line_starts, index) - 1

    def _fence_of(self, line: int) -> _Fence | None:
        number = bisect_right(self._fence_lines, line) - 1
        return self._fences[number] if number >= 0 and line <= self._fences[number].last_line else None

    def _open_fence(self, index: int) -> _Fence | None:
        """Return the fenced block that is open at a cut, or ends there without having been closed."""
        number = bisect_right(self._fence_lines, self._line_at(index)) - 1
        for fence in self._fences[max(0, number - 1) : number + 1]:
            if fence.start <= index and (index < fence.end or (index == fence.end and not fence.is_closed)):
                return fence
        return None

    def _is_inside_whole(self, index: int) -> bool:
        number = bisect_left(self._whole, (index, 0)) - 1
        return number >= 0 and index < self._whole[number][1]

    def _is_inside_table_head(self, index: int) -> bool:
        return any(table.start < index <= table.body and index < table.end for table in self._tables)


def _language(info: str) -> str:
    language = next(iter(info.split()), "")
    return language if len(language) <= _LONGEST_LANGUAGE and language.isascii() else ""


def _reopened(container: str) -> str:
    """Return what makes a fence of a line stand as deep, in a text of its own, as behind `container`.

    Quote marks stay. A deep indentation, which outside of its list would make code of any line,
    becomes a list.
    """
    return _INDENTATION.sub(lambda found: _indented(len(found[0])), container)


def _indented(width: int) -> str:
    if width < _CODE_INDENT:
        return " " * width
    outer = (width - _CODE_INDENT) // 2
    return "- " * outer + "-".ljust(width - 2 * outer)
