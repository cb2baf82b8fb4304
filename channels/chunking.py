"""Cutting a long Markdown text into messages that each stand alone."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

from channels.contract import TextUnit

_FENCE = re.compile(r"[ \t]*(?P<marker>`{3,}|~{3,})(?P<info>[^\n]*)")
_ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,31};")
_ENTITY_CHARS = 34
_LONGEST_MARKER = 16
"""A longer run of backticks is decoration, and repeating it would leave no room for text."""
_LONGEST_LANGUAGE = 24

_PREFERRED_CUTS = (("\n\n", 0.5), ("\n", 0.3), (" ", 0.2))
"""Where to cut, best first, and what share of a part must at least be filled by it."""

_ZERO_WIDTH_JOINER = "\u200d"


def measure(text: str, unit: TextUnit) -> int:
    """Return the length of `text` as the platform counts it."""
    if unit is TextUnit.CHARS or text.isascii():
        return len(text)
    return len(text) + sum(char > "\uffff" for char in text)


def fitting(text: str, start: int, limit: int, unit: TextUnit) -> int:
    """Return the largest `end` for which `text[start:end]` measures at most `limit`."""
    window = text[start : start + max(limit, 0)]
    excess = measure(window, unit) - limit
    end = start + len(window)
    while excess > 0:
        end -= 1
        excess -= 2 if text[end] > "\uffff" else 1
    return end


def split_text(text: str, limit: int, unit: TextUnit) -> tuple[str, ...]:
    """Cut `text` into parts of at most `limit` units.

    A fenced block that is cut is closed at the end of its part and opened again, with its
    language, at the start of the next one; a block that the text never closes is closed at the
    end. Cuts prefer ends of paragraphs, lines and words, in this order, and never fall inside a
    surrogate pair, a joined emoji, a base with its combining marks, or an entity such as `&lt;`.
    A single one of these that is longer than a part is cut all the same.

    Args:
        text: Markdown.
        limit: At least 64, so that fences leave room for text.
        unit: What `limit` counts.

    Returns:
        The parts in order; without the added fence lines they join to `text`. Empty for "".
    """
    fences = _Fences(text)
    parts: list[str] = []
    start = 0
    while start < len(text):
        opened = fences.open_at(start)
        head = "" if opened is None else opened.head
        end = _part_end(text, start, limit - measure(head, unit), unit, fences)
        content = text[start:end]
        parts.append(head + content + _closing(content, fences.open_at(end)))
        start = end
    return tuple(parts)


def is_safe_cut(text: str, index: int) -> bool:
    """Return whether `text` may be cut before `index` without breaking a character or entity."""
    if not 0 < index < len(text):
        return True
    before, after = text[index - 1], text[index]
    if _ZERO_WIDTH_JOINER in (before, after) or _extends(after) or (before, after) == ("\r", "\n"):
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    if _is_regional(before) and _is_regional(after) and _regionals_before(text, index) % 2 == 1:
        return False
    ampersand = text.rfind("&", max(0, index - _ENTITY_CHARS), index)
    entity = _ENTITY.match(text, ampersand) if ampersand >= 0 else None
    return entity is None or entity.end() <= index


def _extends(char: str) -> bool:
    """Return whether `char` belongs to the one before it: marks, skin tones, flag tags."""
    if char.isascii():
        return False
    return (
        unicodedata.category(char) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regionals_before(text: str, index: int) -> int:
    first = index
    while first > 0 and _is_regional(text[first - 1]):
        first -= 1
    return index - first


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    """An open fenced block."""

    marker: str
    language: str

    @property
    def head(self) -> str:
        return f"{self.marker}{self.language}\n"

    def is_closed_by(self, line: re.Match[str]) -> bool:
        marker = line["marker"]
        return marker[0] == self.marker[0] and len(marker) >= len(self.marker) and not line["info"].strip()


class _Fences:
    """Which fenced block, if any, is open at each place of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._changes: list[int] = [0]
        self._states: list[_Fence | None] = [None]
        start = 0
        while start < len(text):
            line_end = text.find("\n", start)
            following = len(text) if line_end < 0 else line_end + 1
            self._read_line(start, following)
            start = following

    def _read_line(self, start: int, following: int) -> None:
        line = _FENCE.match(self._text, start)
        if line is None or len(line["marker"]) > _LONGEST_MARKER:
            return
        opened = self._states[-1]
        if opened is None:
            if "`" in line["marker"] and "`" in line["info"]:
                return  # CommonMark: inline code, no fence
            # Open from behind the marker, so that even a line of endless "info" can be cut.
            self._change(line.end("marker"), _Fence(marker=line["marker"], language=_language(line["info"])))
        elif opened.is_closed_by(line):
            self._change(following, None)

    def _change(self, index: int, state: _Fence | None) -> None:
        self._changes.append(index)
        self._states.append(state)

    def open_at(self, index: int) -> _Fence | None:
        """Return the block that a part which ends at `index` must close."""
        return self._states[self._change_before(index)]

    def longest_closing(self, start: int, end: int) -> int:
        """Return how many units closing any block that is open in the range may take."""
        states = self._states[self._change_before(start) : self._change_before(end) + 1]
        return max((len(state.marker) + 1 for state in states if state is not None), default=0)

    def is_safe_cut(self, index: int) -> bool:
        """Return whether neither side of a cut gains or loses a fence line, or is an empty block."""
        line_start = self._text.rfind("\n", 0, index) + 1
        here = _FENCE.match(self._text, index)
        opened = self.open_at(index)
        if line_start == index:
            closes_here = opened is not None and here is not None and opened.is_closed_by(here)
            return not closes_here and not self._opens_in_line_before(index)
        if here is not None or (opened is not None and self._text.startswith("\n", index)):
            return False  # the second: it could not be told from a cut behind that newline
        line = _FENCE.match(self._text, line_start)
        # Of a line that looks like a fence, only the "info" of a true opening line may be cut.
        return line is None or (index > line.end("marker") == self._changes[self._change_before(index)])

    def _opens_in_line_before(self, line_start: int) -> bool:
        change = self._change_before(line_start)
        return self._states[change] is not None and self._changes[change] > self._text.rfind("\n", 0, line_start - 1)

    def _change_before(self, index: int) -> int:
        return bisect_right(self._changes, index) - 1


def _language(info: str) -> str:
    words = info.split(maxsplit=1)
    return words[0] if words and len(words[0]) <= _LONGEST_LANGUAGE and words[0].isascii() else ""


def _closing(content: str, opened: _Fence | None) -> str:
    if opened is None:
        return ""
    return opened.marker if content.endswith("\n") else f"\n{opened.marker}"


def _part_end(text: str, start: int, room: int, unit: TextUnit, fences: _Fences) -> int:
    """Return where the part that begins at `start` ends; always behind `start`."""
    end = fitting(text, start, room, unit)
    if end == len(text) and measure(text[start:] + _closing(text[start:], fences.open_at(end)), unit) <= room:
        return end
    end = fitting(text, start, room - fences.longest_closing(start, end), unit)
    for separator, share in _PREFERRED_CUTS:
        floor = start + int((end - start) * share)
        index = text.rfind(separator, floor, end)
        while index > start:
            cut = index + len(separator)
            if cut <= end and fences.is_safe_cut(cut) and is_safe_cut(text, cut):
                return cut
            index = text.rfind(separator, floor, index)
    return _forced_cut(text, start, end, fences)


def _forced_cut(text: str, start: int, end: int, fences: _Fences) -> int:
    """Cut where nothing better is: between characters, else anywhere, but forward."""
    for index in range(end, start, -1):
        if is_safe_cut(text, index) and fences.is_safe_cut(index):
            return index
    for index in range(end, start, -1):
        if is_safe_cut(text, index):
            return index
    return max(end, start + 1)
