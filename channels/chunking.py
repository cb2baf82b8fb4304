"""Cutting a long Markdown text into messages that each stand alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from channels.contract import TextUnit
from channels.outline import Outline

_ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,31};")
_ENTITY_CHARS = 34
_LONGEST_LOOKAHEAD_CHARS = 512
"""How far behind a part is read, so that a link or the head of a table that begins in it is known."""

_LEAST_FILLED = (0.5, 0.4, 0.5, 0.3, 0.3)
"""By the quality of the line that follows, best first: what share of a part a cut must leave filled."""
_LEAST_FILLED_BY_WORDS = 0.2

_ZERO_WIDTH_JOINER = "\u200d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message. `content` is the text's own; `head` and `tail` are lines that were added around it.

    `head` opens a fenced block again that the part before had to close, or repeats the first two
    lines of a table; `tail` closes a fenced block.
    """

    head: str
    content: str
    tail: str

    @property
    def text(self) -> str:
        """Return the message."""
        return self.head + self.content + self.tail


def measure(text: str, unit: TextUnit) -> int:
    """Return the length of `text` as the platform counts it."""
    if unit is TextUnit.CHARS or text.isascii():
        return len(text)
    return sum(_width(char, unit) for char in text)


def fitting(text: str, start: int, limit: int, unit: TextUnit) -> int:
    """Return the largest `end` for which `text[start:end]` measures at most `limit`."""
    window = text[start : start + max(limit, 0)]
    excess = measure(window, unit) - limit
    end = start + len(window)
    while excess > 0:
        end -= 1
        excess -= _width(text[end], unit)
    return end


def _width(char: str, unit: TextUnit) -> int:
    match unit:
        case TextUnit.CHARS:
            return 1
        case TextUnit.UTF16:
            return 2 if char > "\uffff" else 1
        case TextUnit.BYTES:
            return len(char.encode(errors="surrogatepass"))


def safe_end(text: str, limit: int, unit: TextUnit) -> int:
    """Return the end of the longest beginning of `text` that fits and breaks no character."""
    end = fitting(text, 0, limit, unit)
    return next((index for index in range(end, 0, -1) if is_safe_cut(text, index)), end)


def split_text(text: str, limit: int, unit: TextUnit) -> tuple[str, ...]:
    """Return the messages of `cut_text`."""
    return tuple(part.text for part in cut_text(text, limit, unit))


def cut_text(text: str, limit: int, unit: TextUnit) -> Iterator[Part]:
    """Cut `text` into parts of at most `limit` units, one by one as they are asked for.

    A fenced block that is cut is closed at the end of its part and opened again, with its
    language, at the start of the next one; a block that the text never closes is closed at the
    end. A table that is cut between its rows repeats its head. So a part that is parsed alone has
    no open block. Cuts prefer the starts of blocks (paragraphs, items, headings), then lines, then
    words; they fall into a link, an address or code in a line only where nothing else is left,
    and never inside a surrogate pair, a joined emoji, a base with its combining marks, or an
    entity such as `&lt;`. A single one of these that is longer than a part is cut all the same.

    Args:
        text: Markdown.
        limit: From 64 on there is room for fences; below, blocks may be cut without.
        unit: What `limit` counts.

    Yields:
        The parts in order; their contents join to `text`. None for "".
    """
    start, head = 0, ""
    while start < len(text):
        behind = start + limit + min(limit, _LONGEST_LOOKAHEAD_CHARS)
        window = _Window(head, text[start:behind], limit, unit, is_last=behind >= len(text))
        part, head = window.cut()
        yield part
        start += len(part.content)


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


class _Window:
    """One part to be, and what follows it; read alone, as its readers will read it."""

    def __init__(self, head: str, rest: str, limit: int, unit: TextUnit, *, is_last: bool) -> None:
        self._text = head + rest
        self._start = len(head)
        self._limit = limit
        self._unit = unit
        self._is_last = is_last
        self._outline = Outline(self._text)

    def cut(self) -> tuple[Part, str]:
        """Return the part, and the head of the next one."""
        whole = self._part(len(self._text))
        if self._is_last and measure(whole.text, self._unit) <= self._limit:
            return whole, ""
        end = self._best_cut(self._furthest())
        head = self._outline.reopening_at(end)
        return self._part(end), head if 2 * measure(head, self._unit) <= self._limit else ""

    def _part(self, end: int) -> Part:
        closing = self._outline.closing_at(end) if self._room_for_closing() else ""
        return Part(head=self._text[: self._start], content=self._text[self._start : end], tail=closing)

    def _room_for_closing(self) -> int:
        """Return what a closing may take; nothing where it would take too much."""
        longest = self._outline.longest_closing(len(self._text))
        return longest if 3 * longest <= self._limit else 0

    def _furthest(self) -> int:
        """Return the last place where the part may end; always behind its start."""
        end = fitting(self._text, 0, self._limit - self._room_for_closing(), self._unit)
        last_visible = len(self._text.rstrip()) - 1
        if self._is_last and self._start < last_visible < end:
            end = last_visible  # a part of blanks would be no message
        return max(end, self._start + 1)

    def _best_cut(self, end: int) -> int:
        for quality, share in enumerate(_LEAST_FILLED):
            for line in reversed(self._outline.lines_between(self._filled(end, share), end)):
                cut = self._outline.line_start(line)
                if self._outline.line_quality(line) <= quality and self._is_safe(cut):
                    return cut
        floor = self._filled(end, _LEAST_FILLED_BY_WORDS)
        for cut in range(end, floor - 1, -1):
            if self._text[cut - 1] == " " and self._is_safe(cut) and not self._outline.begins_block(cut):
                return cut
        return self._forced_cut(end)

    def _filled(self, end: int, share: float) -> int:
        """Return the first place behind the start of the part that leaves it filled so much."""
        return self._start + max(1, int((end - self._start) * share))

    def _is_safe(self, cut: int) -> bool:
        return is_safe_cut(self._text, cut) and self._outline.is_safe_cut(cut)

    def _forced_cut(self, end: int) -> int:
        """Cut where nothing better is: between characters, else anywhere, but forward."""
        cuts = range(end, self._start, -1)
        anywhere = next((cut for cut in cuts if is_safe_cut(self._text, cut)), end)
        return next((cut for cut in cuts if self._is_safe(cut)), anywhere)
