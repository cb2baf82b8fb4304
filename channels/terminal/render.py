"""Draws a chat's feed as lines of text: pure, without a terminal.

A terminal cannot edit what has scrolled by. A growing answer is printed as it grows; the final
text adds what is missing, or is printed again when the preview said something else. Buttons are
numbered, and `#2` presses the second: no other text ever decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What moves the cursor, turns the direction of writing, or shows nothing at all."""
_PRESS = re.compile(r"#(\d{1,3})")


class TerminalChat:
    """One viewer's screen. Feed it events; print what it returns, without adding line ends."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._growing = ""
        self._printed = ""
        self._open_line = False
        self._buttons: dict[int, tuple[str, str]] = {}
        self._numbers: dict[str, int] = {}
        self._cards: dict[str, str] = {}

    def draw(self, event: dict[str, Any]) -> str:
        """Return the text that shows one feed event (an object with a `type`)."""
        match event:
            case {"type": "preview", "external_id": str(message), "text": str(text)}:
                return self._grow(message, clean(text))
            case {"type": "shown", "external_id": str(message), "content": dict(content)}:
                return self._shown(message, content)
            case {"type": "notice", "text": str(text)}:
                return self._line(f"  ({clean(text)})")
            case _:
                return ""

    def _shown(self, message: str, content: dict[str, Any]) -> str:
        match content:
            case {"markdown": str(text)}:
                return self._final(message, clean(text))
            case {"text": str(text), "code": str(code), "rows": rows}:
                return self._card(message, clean(text), exact(code), rows)
            case {"path": str(path), "name": str(name), "caption": str(caption)}:
                return self._line(clean(f"{self._agent}: {name} ({path}) {caption}").rstrip())
            case {"emoji": str(emoji)}:
                return self._line(f"  ({self._agent} reacted with {clean(emoji)})")
            case _:
                return ""

    def press(self, text: str) -> tuple[str, str] | None:
        """Return (token, card) when `text` is exactly `#N` of a button that was shown."""
        found = _PRESS.fullmatch(text.strip())
        return self._buttons.get(int(found.group(1))) if found else None

    def is_press(self, text: str) -> bool:
        """Whether `text` looks like a press, so that a wrong number is not sent as a message."""
        return _PRESS.fullmatch(text.strip()) is not None

    def _grow(self, message: str, text: str) -> str:
        if message != self._growing:
            start = self._line(f"{self._agent}: ", end="")
            self._growing, self._printed, self._open_line = message, text, True
            return start + text
        if not text.startswith(self._printed):
            return ""
        added = text[len(self._printed) :]
        self._printed = text
        return added

    def _final(self, message: str, text: str) -> str:
        if message == self._growing and text.startswith(self._printed):
            added = text[len(self._printed) :]
            self._growing, self._printed, self._open_line = "", "", False
            return f"{added}\n"
        self._growing, self._printed = "", ""
        return self._line(f"{self._agent}: {text}")

    def _card(self, message: str, text: str, code: str, rows: Sequence[Sequence[Mapping[str, Any]]]) -> str:
        rows = _without_forms(rows)
        drawn = f"{text}\n{code}\n{rows}"
        if self._cards.get(message) == drawn:
            return ""
        self._cards[message] = drawn
        lines = [f"{self._agent}: {text}"]
        if rows:
            lines.extend(f"    {row}" for row in code.splitlines())
        lines.extend("  " + "  ".join(self._button(message, button) for button in row) for row in rows)
        return self._line("\n".join(lines))

    def _button(self, message: str, button: Mapping[str, Any]) -> str:
        token = str(button["token"])
        number = self._numbers.setdefault(token, len(self._numbers) + 1)
        self._buttons[number] = (token, message)
        return f"#{number} {clean(str(button['label']))}"

    def _line(self, text: str, *, end: str = "\n") -> str:
        start = "\n" if self._open_line else ""
        self._open_line = False
        return f"{start}{text}{end}"


def _without_forms(rows: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Mapping[str, Any]]]:
    """Return the buttons but for those that open a form: the history has them, a terminal has no forms."""
    drawn = [[button for button in row if not button.get("opens_form")] for row in rows]
    return [row for row in drawn if row]


def clean(text: str) -> str:
    """Return text without control characters: nothing a model says may move the cursor."""
    return _CONTROL.sub("", text)


def exact(text: str) -> str:
    """Return text of which nothing is hidden: what cannot be seen stands there as its escape.

    For what a person decides on, where a character that is left out could be the one that matters.
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
