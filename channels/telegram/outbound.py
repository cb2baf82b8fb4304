"""From an item of the outbox to the call that shows it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from channels.chunking import fitting, is_safe_cut, measure
from channels.contract import TextUnit
from channels.telegram.limits import CALLBACK_DATA_LIMIT_BYTES, CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16
from core.contracts.addresses import Address, Button, ButtonStyle, CardContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected

_UNIT = TextUnit.UTF16
_ELLIPSIS = "…"
_CUT_MARK = "… (cut: {missing:,} more characters)"
_BETWEEN = "\n\n"
_CODE_SHARE_UTF16 = 2500
"""What a card's code may take when its text alone would fill the message."""

_STYLES = {ButtonStyle.GOOD: "success", ButtonStyle.DANGER: "danger"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCall:
    """sendMessage, or editMessageText where `message_id` is set; `options` are its other parameters."""

    chat_id: int
    text: str
    message_id: int | None
    options: Mapping[str, Any]


def render(item: OutboundItem) -> MessageCall:
    """Return the call that delivers `item`.

    Text goes out as it is: it is the outbox that splits, by the channel's capabilities. Cards
    are cut to one message, visibly.

    Raises:
        SendRejected: The address or the message id is not one of Telegram's, or a button carries
            more than Telegram takes.
    """
    match item.content:
        case TextContent(markdown=text):
            entities: list[dict[str, Any]] = []
            keyboard: list[list[dict[str, str]]] = []
        case CardContent() as card:
            text, entities = _card_text(card)
            keyboard = [[_button(button) for button in row] for row in card.rows]
        case _:
            assert_never(item.content)
    options: dict[str, Any] = {"link_preview_options": {"is_disabled": True}}
    if entities:
        options["entities"] = entities
    if keyboard:
        # An edit without a keyboard takes the old one away, so a settled card needs no more.
        options["reply_markup"] = {"inline_keyboard": keyboard}
    if item.external_id is None:
        options |= _new_message_options(item)
    return MessageCall(
        chat_id=_number(item.address.chat),
        text=_encodable(text),
        message_id=None if item.external_id is None else _number(item.external_id),
        options=options,
    )


def preview(address: Address, text: str, external_id: str | None) -> MessageCall:
    """Return the call that shows `text` as a preview.

    A longer text shows its beginning: that is what the final's first part will be, so nothing
    that people are reading moves away from them.
    """
    if measure(text, _UNIT) > TEXT_LIMIT_UTF16:
        text = text[: _safe_end(text, TEXT_LIMIT_UTF16 - measure(_ELLIPSIS, _UNIT))] + _ELLIPSIS
    return render(OutboundItem(id="", address=address, content=TextContent(markdown=text), external_id=external_id))


def thread_id(address: Address) -> int | None:
    """Return the topic as the API takes it."""
    return None if address.thread is None else _number(address.thread)


def _new_message_options(item: OutboundItem) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if item.content.silent:
        options["disable_notification"] = True
    if item.address.thread is not None:
        options["message_thread_id"] = thread_id(item.address)
    if item.reply_to is not None:
        reply_to = _number(item.reply_to)
        options["reply_parameters"] = {"message_id": reply_to, "allow_sending_without_reply": True}
    return options


def _card_text(card: CardContent) -> tuple[str, list[dict[str, Any]]]:
    """Return the card as one text within the limit, and the entity that keeps its code verbatim."""
    text = card.text.strip()
    if not card.code.strip():
        return _cut(text, TEXT_LIMIT_UTF16), []
    room = TEXT_LIMIT_UTF16 - measure(_BETWEEN, _UNIT)
    code_room = min(CARD_CODE_LIMIT_UTF16, max(_CODE_SHARE_UTF16, room - measure(text, _UNIT)))
    code = _cut(card.code.rstrip(), code_room)
    before = _cut(text, room - measure(code, _UNIT)) + _BETWEEN if text else ""
    pre = {"type": "pre", "offset": measure(before, _UNIT), "length": measure(code, _UNIT)}
    return before + code, [pre]


def _cut(text: str, limit: int) -> str:
    """Return `text`, or its beginning and a mark that says how much is missing."""
    if measure(text, _UNIT) <= limit:
        return text
    longest_mark = _CUT_MARK.format(missing=len(text))
    end = _safe_end(text, limit - measure(longest_mark, _UNIT))
    return text[:end] + _CUT_MARK.format(missing=len(text) - end)


def _safe_end(text: str, limit: int) -> int:
    end = fitting(text, 0, limit, _UNIT)
    safe = end
    while safe > 0 and not is_safe_cut(text, safe):
        safe -= 1
    return safe or end


def _button(button: Button) -> dict[str, str]:
    if not 0 < len(button.token.encode()) <= CALLBACK_DATA_LIMIT_BYTES:
        raise SendRejected(f"a button carries 1 to {CALLBACK_DATA_LIMIT_BYTES} bytes, not {button.token!r}")
    shown = {"text": button.label, "callback_data": button.token}
    return shown | ({"style": _STYLES[button.style]} if button.style in _STYLES else {})


def _encodable(text: str) -> str:
    """Return `text` without lone surrogates, which no request can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SendRejected(f"{text!r} is no id of Telegram") from None
