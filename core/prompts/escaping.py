"""Keeps text that is not the host's from closing, or posing as, what the host says."""

from __future__ import annotations

import re

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
_BETWEEN = rf"[{_INVISIBLE}]*"
_GAP = rf"[\s{_INVISIBLE}_\-\u2010-\u2015\u2212/\\\uff0f\u2215]*"
"""What may stand in front of a tag's words and between them."""
_OPENING = "[<\uff1c\ufe64]"

HOST_TAGS = (("system", "reminder"), ("system", "alert"), ("task", "notification"))
"""The elements that are the host's voice, as their words."""

PROMPT_TAGS = (("memory",), ("skills",), ("self",))
"""How the names of the elements begin that the compiled prompt is made of."""


def _spelled(words: tuple[str, ...]) -> str:
    """Return a pattern for a tag's name, however its letters are spaced by what nobody sees."""
    return _GAP.join(_BETWEEN.join(word) for word in words)


def _opening_of(tags: tuple[tuple[str, ...], ...]) -> re.Pattern[str]:
    names = "|".join(_spelled(words) for words in tags)
    return re.compile(rf"{_OPENING}(?={_GAP}(?:{names}))", re.IGNORECASE)


_HOST = _opening_of(HOST_TAGS)
_PROMPT = _opening_of((*HOST_TAGS, *PROMPT_TAGS))
_LINE_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def escape_user_text(text: str) -> str:
    """Return text of a person, page, file or tool with every host delimiter made harmless.

    The `<` of a delimiter, in any case and spacing, becomes `&lt;`; nothing else changes. Doing
    it again changes nothing. Text without a `<` costs one scan.
    """
    if "<" not in text and "\uff1c" not in text and "\ufe64" not in text:
        return text
    return _HOST.sub("&lt;", text)


def escape_body(text: str) -> str:
    """Return text that may stand inside an element of the compiled prompt."""
    return _PROMPT.sub("&lt;", text)


def escape_attribute(text: str) -> str:
    """Return text for a quoted attribute: one line, no quote or angle bracket."""
    line = _LINE_BREAKS.sub(" ", text).strip()
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def one_line(text: str, limit_chars: int = 200) -> str:
    """Return foreign text as one line of bounded length that no delimiter survives in."""
    line = _LINE_BREAKS.sub(" ", text).strip()
    return escape_user_text(line if len(line) <= limit_chars else line[: limit_chars - 1] + "…")
