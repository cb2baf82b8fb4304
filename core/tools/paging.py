"""Long texts in pages: bounded by lines, by characters a line and in all. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from core.contracts.errors import ToolError

_FOOTER_ROOM_CHARS = 160
"""More than the longest footer or line mark takes; a test holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How much one page shows; a longer line is cut with a mark that says how to read on."""

    lines: int
    line_chars: int
    chars: int
    numbered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a page begins: a line and a character in it, both counted from 1."""

    line: int = 1
    column: int = 1


def page(text: str, limits: PageLimits, *, start: Start | None = None, lines: int | None = None) -> str:
    """Return the page of `text` from `start`, with a last line that says how to read on.

    Args:
        text: Any text; lines end with a line feed, a carriage return before it is not shown.
        limits: Bounds of the result, marks and footer included.
        start: Where to begin; the beginning if not given.
        lines: How many lines at most, below what `limits` allows.

    Raises:
        ToolError: `start` lies behind the end.
    """
    start = start or Start()
    all_lines = split_lines(text)
    if not all_lines:
        return "(empty)"
    if start.line > len(all_lines):
        raise ToolError(f"offset {start.line} is behind the end: there are {len(all_lines)} lines.")
    wanted = min(limits.lines, lines or limits.lines)
    return _Page(all_lines, limits, start).filled(last=min(len(all_lines), start.line - 1 + wanted))


def split_lines(text: str) -> list[str]:
    """Return the lines as editors and grep count them: by line feeds alone."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


class _Page:
    """One page while it fills."""

    def __init__(self, lines: list[str], limits: PageLimits, start: Start) -> None:
        self._lines = lines
        self._limits = limits
        self._start = start
        self._shown: list[str] = []
        self._room = limits.chars - _FOOTER_ROOM_CHARS

    def filled(self, *, last: int) -> str:
        """Return the page with lines up to number `last`, or as far as there is room."""
        for number in range(self._start.line, last + 1):
            if not self._add(number):
                return self._ended(number - 1)
        return self._ended(last)

    def _add(self, number: int) -> bool:
        """Show a line, cut where it is too long; return whether there may be room for another."""
        line, label = self._lines[number - 1], f"{number}\t" if self._limits.numbered else ""
        is_first = not self._shown
        begin = self._start.column - 1 if is_first else 0
        # A line that is read on from its middle gets the whole page: that is why it was asked for.
        most = self._limits.chars if begin else self._limits.line_chars
        end = min(len(line), begin + most)
        room = self._room - len(label) - 1
        if end - begin + self._mark_room(end, line) > room:
            if not is_first:
                return False
            end = begin + max(1, room - _FOOTER_ROOM_CHARS)
        shown = label + line[begin:end]
        if end < len(line):
            shown += (
                f" [cut: characters {begin + 1:,} to {end:,} of {len(line):,}; "
                f"read on with offset={number} column={end + 1}]"
            )
        self._shown.append(shown)
        self._room -= len(shown) + 1
        return True

    def _mark_room(self, end: int, line: str) -> int:
        return _FOOTER_ROOM_CHARS if end < len(line) else 0

    def _ended(self, last: int) -> str:
        body = "\n".join(self._shown)
        if last >= len(self._lines):
            return body
        first, total = self._start.line, len(self._lines)
        return f"{body}\n[lines {first:,} to {last:,} of {total:,}; read on with offset={last + 1}]"
