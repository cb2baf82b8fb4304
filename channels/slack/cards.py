"""Cards as Block Kit draws them, within its limits; pure.

A card's text is plain and its code verbatim: both go out as escaped mrkdwn, so that nothing in them
is a mention, a link or a mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from channels.chunking import fitting, is_safe_cut, measure, safe_end
from channels.contract import TextUnit
from channels.slack.limits import (
    BLOCKS_LIMIT,
    BLOCKS_LIMIT_CHARS,
    BUTTON_LABEL_LIMIT_CHARS,
    BUTTON_VALUE_LIMIT_CHARS,
    BUTTONS_IN_ROW,
    CARD_CODE_LIMIT_BYTES,
    NOTICE_LIMIT_BYTES,
    SECTION_LIMIT_CHARS,
)
from channels.slack.mrkdwn import FENCE, code_block, defused, encodable, literal
from core.contracts.addresses import Button, ButtonStyle, CardContent
from core.contracts.errors import SendRejected

Json = dict[str, Any]

_ELLIPSIS = "…"
_CUT_MARK = "… (cut: {missing:,} more characters)"
_FENCES_CHARS = 2 * len(FENCE) + 2
_LEAST_TEXT_CHARS = 300
"""What the text of a card keeps, however much its code and its buttons take."""

_STYLES = {ButtonStyle.GOOD: "primary", ButtonStyle.DANGER: "danger"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCard:
    """A card: its blocks, and the mrkdwn that stands for them in notifications."""

    blocks: tuple[Json, ...]
    notice: str


def draw_card(card: CardContent) -> DrawnCard:
    """Return a card as one message.

    Code up to `CARD_CODE_LIMIT_BYTES` is shown whole, whatever it holds; longer code and a text that
    has no room beside it are cut with a mark that says so. A card without rows has no buttons.

    Raises:
        SendRejected: It holds nothing, or has more rows, or a button carries more, than Slack takes.
    """
    text, code = encodable(card.text).strip(), _cut_code(encodable(card.code).rstrip())
    codes = [section(piece) for piece in _code_pieces(code)]
    buttons = [_actions(row, first) for row, first in _numbered_rows(card)]
    taken = sum(map(_size, (*codes, *buttons)))
    room = min(SECTION_LIMIT_CHARS, max(BLOCKS_LIMIT_CHARS - taken, _LEAST_TEXT_CHARS))
    texts = [section(cut_escaped(text, room, literal))] if text else []
    blocks = (*texts, *codes, *buttons)
    if not 0 < len(blocks) <= BLOCKS_LIMIT:
        raise SendRejected(f"a card takes 1 to {BLOCKS_LIMIT} blocks on Slack, not {len(blocks)}")
    return DrawnCard(blocks=blocks, notice=_notice(text, code))


def section(mrkdwn: str) -> Json:
    """Return a section of mrkdwn, in which Slack makes no links of its own."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn, "verbatim": True}}


def cut_escaped(text: str, limit_chars: int, escaped: Callable[[str], str]) -> str:
    """Return `escaped(text)`, or that of as much of `text` as fits, with a mark that says how much is missing."""
    if len(text) <= limit_chars and len(whole := escaped(text)) <= limit_chars:
        return whole
    room = limit_chars - len(_CUT_MARK.format(missing=len(text)))
    least, most = 0, min(len(text), room)
    while least < most:
        middle = (least + most + 1) // 2
        if len(escaped(text[:middle])) <= room:
            least = middle
        else:
            most = middle - 1
    end = next((index for index in range(least, 0, -1) if is_safe_cut(text, index)), least)
    return escaped(text[:end]) + _CUT_MARK.format(missing=len(text) - end)


def plain(text: str, limit_chars: int) -> Json:
    """Return a text object without any marks; one that is too long ends in an ellipsis."""
    shown = defused(text).strip() or _ELLIPSIS
    if len(shown) > limit_chars:
        shown = shown[: safe_end(shown, limit_chars - 1, TextUnit.CHARS)] + _ELLIPSIS
    return {"type": "plain_text", "text": shown, "emoji": False}


def _cut_code(code: str) -> str:
    """Return code, or its beginning and a mark that says how much is missing."""
    if measure(code, TextUnit.BYTES) <= CARD_CODE_LIMIT_BYTES:
        return code
    mark_bytes = measure(_CUT_MARK.format(missing=len(code)), TextUnit.BYTES)
    end = safe_end(code, CARD_CODE_LIMIT_BYTES - mark_bytes, TextUnit.BYTES)
    return code[:end] + _CUT_MARK.format(missing=len(code) - end)


def _code_pieces(code: str) -> Iterator[str]:
    """Yield blocks of code that fit in a section each; more than one only where much had to be escaped."""
    start = 0
    while start < len(code):
        end = _end_of_piece(code, start)
        yield code_block(code[start:end].removesuffix("\n"))
        start = end


def _end_of_piece(code: str, start: int) -> int:
    """Return where a piece ends: at the end of the code, else behind a line, else between two characters."""
    room = SECTION_LIMIT_CHARS - _FENCES_CHARS
    least, most = start + 1, min(len(code), start + room)
    while least < most:
        middle = (least + most + 1) // 2
        if len(code_block(code[start:middle])) <= SECTION_LIMIT_CHARS:
            least = middle
        else:
            most = middle - 1
    if least == len(code):
        return least
    line_end = code.rfind("\n", start, least) + 1
    return line_end or next((end for end in range(least, start, -1) if is_safe_cut(code, end)), least)


def _numbered_rows(card: CardContent) -> Iterator[tuple[tuple[Button, ...], int]]:
    """Yield rows that fit in a block each, with the number of the first button in them."""
    number = 0
    for row in card.rows:
        for start in range(0, len(row), BUTTONS_IN_ROW):
            piece = row[start : start + BUTTONS_IN_ROW]
            yield piece, number
            number += len(piece)


def _actions(row: tuple[Button, ...], first: int) -> Json:
    return {"type": "actions", "elements": [_button(button, first + place) for place, button in enumerate(row)]}


def _button(button: Button, number: int) -> Json:
    if not 0 < len(button.token) <= BUTTON_VALUE_LIMIT_CHARS:
        raise SendRejected(f"a button carries 1 to {BUTTON_VALUE_LIMIT_CHARS} characters, not {button.token!r}")
    shown = {
        "type": "button",
        "action_id": f"press_{number}",
        "value": button.token,
        "text": plain(button.label, BUTTON_LABEL_LIMIT_CHARS),
    }
    return shown | ({"style": _STYLES[button.style]} if button.style in _STYLES else {})


def _size(block: Json) -> int:
    """Return how many characters of a block people read."""
    elements = block.get("elements", ())
    return len(block["text"]["text"]) if "text" in block else sum(len(button["text"]["text"]) for button in elements)


def _notice(text: str, code: str) -> str:
    """Return what a notification says of a card."""
    whole = "\n".join(filter(None, (text, code)))
    shown = literal(whole[: fitting(whole, 0, NOTICE_LIMIT_BYTES, TextUnit.BYTES)])
    if measure(shown, TextUnit.BYTES) <= NOTICE_LIMIT_BYTES:
        return shown
    return cut_escaped(whole, NOTICE_LIMIT_BYTES // 4, literal)
