"""Cards: plain text, code verbatim, and rows of buttons; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from channels.chunking import measure, safe_end
from channels.contract import TextUnit
from channels.discord.limits import (
    BUTTON_LABEL_LIMIT_CHARS,
    BUTTON_ROWS,
    BUTTONS_IN_ROW,
    CARD_CODE_LIMIT_UTF16,
    CUSTOM_ID_LIMIT_CHARS,
    TEXT_LIMIT_UTF16,
)
from channels.discord.rendering import encodable, escaped, fenced
from core.contracts.addresses import Button, ButtonStyle, CardContent
from core.contracts.errors import SendRejected

_UNIT = TextUnit.UTF16
_ELLIPSIS = "…"
_CUT_MARK = "… (cut: {missing:,} more characters)"
_BETWEEN = "\n"
_CODE_SHARE_UTF16 = 1000
"""What a card's code may take when its text alone would fill the message."""

_ROW = 1
_BUTTON = 2
_STYLES = {ButtonStyle.NORMAL: 2, ButtonStyle.GOOD: 3, ButtonStyle.DANGER: 4}


def card_text(card: CardContent) -> str:
    """Return the card as one text within the limit: nothing of it is interpreted, what is cut has a mark."""
    text = encodable(card.text).strip()
    code = encodable(card.code).strip("\n").rstrip()
    if not code.strip():
        return _cut(text, TEXT_LIMIT_UTF16, escaped)
    room = TEXT_LIMIT_UTF16 - measure(_BETWEEN, _UNIT)
    longest = CARD_CODE_LIMIT_UTF16 + measure(fenced(""), _UNIT)
    code_room = min(longest, max(_CODE_SHARE_UTF16, room - measure(escaped(text), _UNIT)))
    block = _cut(code, code_room, fenced)
    return _cut(text, room - measure(block, _UNIT), escaped) + _BETWEEN + block if text else block


def card_components(rows: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """Return the buttons of a card; a row of more than Discord draws beside each other becomes several.

    Raises:
        SendRejected: There are more than fit, or one carries what Discord does not take.
    """
    drawn = [
        {"type": _ROW, "components": [_button(button) for button in row[start : start + BUTTONS_IN_ROW]]}
        for row in rows
        for start in range(0, len(row), BUTTONS_IN_ROW)
    ]
    if len(drawn) > BUTTON_ROWS:
        raise SendRejected(f"a message has at most {BUTTON_ROWS} rows of buttons, not {len(drawn)}")
    return drawn


def _button(button: Button) -> dict[str, Any]:
    if not 0 < len(button.token) <= CUSTOM_ID_LIMIT_CHARS:
        raise SendRejected(f"a button carries 1 to {CUSTOM_ID_LIMIT_CHARS} characters, not {button.token!r}")
    label = encodable(button.label).strip() or _ELLIPSIS
    if measure(label, _UNIT) > BUTTON_LABEL_LIMIT_CHARS:
        label = label[: safe_end(label, BUTTON_LABEL_LIMIT_CHARS - len(_ELLIPSIS), _UNIT)] + _ELLIPSIS
    return {"type": _BUTTON, "style": _STYLES[button.style], "label": label, "custom_id": button.token}


def _cut(text: str, room: int, draw: Callable[[str], str]) -> str:
    """Return `text` as it is drawn, or its beginning and a mark that says how much is missing."""
    if len(text) <= room and measure(drawn := draw(text), _UNIT) <= room:
        return drawn
    shortest, longest = 0, min(len(text), room)
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if measure(draw(_marked(text, middle)), _UNIT) <= room:
            shortest = middle
        else:
            longest = middle - 1
    return draw(_marked(text, shortest))


def _marked(text: str, limit: int) -> str:
    end = safe_end(text, limit, _UNIT)
    return text[:end] + _CUT_MARK.format(missing=len(text) - end)
