"""Text that every database, provider and platform accepts: no NUL, no lone surrogates."""

from __future__ import annotations

_REPLACEMENT = "\ufffd"
_FIRST_HIGH, _LAST_HIGH = "\ud800", "\udbff"


def clean_text(text: str) -> str:
    """Return `text` with surrogate pairs joined; lone halves and NULs become U+FFFD."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", _REPLACEMENT) if "\0" in text else text


class SurrogateJoiner:
    """Cleans a stream of pieces, so that a pair cut between two pieces becomes one character."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown now; a trailing first half waits for the next piece."""
        text = self._held + piece
        self._held = ""
        if text and _FIRST_HIGH <= text[-1] <= _LAST_HIGH:
            self._held = text[-1]
            text = text[:-1]
        return clean_text(text)

    def finish(self) -> str:
        """Return the replacement of a half that never found its other one."""
        rest, self._held = self._held, ""
        return clean_text(rest)
