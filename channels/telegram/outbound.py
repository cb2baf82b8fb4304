"""From an item of the outbox to the call that shows it; pure.

Mentions, on every path (previews, finals, edits, cards, notices): what an agent writes goes out as
text, and the host never makes a mention of it (no `text_mention` entity, no `tg:` link). Telegram has
no mention of a whole group. It makes links of public @usernames itself, for bots as for people,
which cannot be switched off; commands and hashtags likewise. Links are never shown as previews.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from channels.chunking import cut_text, measure, safe_end
from channels.contract import TextUnit
from channels.markdown import parse
from channels.telegram.entities import format_blocks
from channels.telegram.formatted import Entity, Formatted, Kind, settled
from channels.telegram.limits import CALLBACK_DATA_LIMIT_BYTES, CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16
from channels.telegram.places import new_message_options, number
from core.contracts.addresses import Address, Button, ButtonStyle, CardContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected, TextTooLong

_UNIT = TextUnit.UTF16
_ELLIPSIS = "…"
_CUT_MARK = "… (cut: {missing:,} more characters)"
_BETWEEN = "\n\n"
_CODE_SHARE_UTF16 = 2500
"""What a card's code may take when its text alone would fill the message."""

_STYLES = {ButtonStyle.GOOD: "success", ButtonStyle.DANGER: "danger"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCall:
    """sendMessage, or editMessageText where `message_id` is set; `options` are its other parameters.

    `source` is the text as it was written, and fits in one message as well.
    """

    chat_id: int
    text: str
    message_id: int | None
    options: Mapping[str, Any]
    source: str

    @property
    def plain(self) -> MessageCall:
        """Return the call that shows the source and no entities, for when Telegram refuses these."""
        options = {name: value for name, value in self.options.items() if name != "entities"}
        return replace(self, text=self.source, options=options)


def render_message(item: OutboundItem, content: TextContent | CardContent) -> MessageCall:
    """Return the call that delivers `content`, which is the item's.

    Markdown is shown by entities; a text that would show nothing, such as an empty block of code,
    is sent as it is written. Cards are plain and are cut to one message, visibly.

    Raises:
        TextTooLong: The text does not fit in one message as it is shown, or as it is written. A
            text of up to 200 units always fits.
        SendRejected: The address or the message id is not one of Telegram's, or a button carries
            more than Telegram takes.
    """
    match content:
        case TextContent(markdown=markdown):
            source = _encodable(markdown)
            shown = _shown_whole(source)
            keyboard: list[list[dict[str, str]]] = []
        case CardContent(rows=rows):
            shown = _shown_card(content)
            source = shown.text
            keyboard = _keyboard(rows)
        case _:
            assert_never(content)
    options: dict[str, Any] = {}
    if keyboard:
        # An edit without a keyboard takes the old one away, so a settled card needs no more.
        options["reply_markup"] = {"inline_keyboard": keyboard}
    if item.external_id is None:
        options |= new_message_options(item, silent=content.silent)
    return _call(item.address, item.external_id, shown, source, options)


def preview(address: Address, text: str, external_id: str | None) -> MessageCall:
    """Return the call that shows `text`, Markdown that may end anywhere, as a preview.

    A text that is too long shows its beginning: that is what the final's first part will be, so
    nothing that people are reading moves away from them.

    Raises:
        SendRejected: The address or the message id is not one of Telegram's.
    """
    item = OutboundItem(id="", address=address, content=TextContent(markdown=text), external_id=external_id)
    source = _encodable(text)
    shown = _shown_beginning(source)
    options = new_message_options(item, silent=False) if external_id is None else {}
    return _call(address, external_id, shown, _beginning(source), options)


def _call(
    address: Address, external_id: str | None, shown: Formatted, source: str, options: dict[str, Any]
) -> MessageCall:
    options = {"link_preview_options": {"is_disabled": True}} | options
    if entities := shown.as_parameter():
        options["entities"] = entities
    return MessageCall(
        chat_id=number(address.chat),
        text=shown.text,
        message_id=None if external_id is None else number(external_id),
        options=options,
        source=source,
    )


def _shown(source: str) -> Formatted:
    formatted = format_blocks(parse(source))
    return formatted if formatted.text else Formatted(text=source)


def _shown_whole(source: str) -> Formatted:
    """Return how a text looks that has to fit in one message, shown or written."""
    if measure(source, _UNIT) > TEXT_LIMIT_UTF16:
        raise TextTooLong(f"longer than {TEXT_LIMIT_UTF16} UTF-16 units")
    shown = _shown(source)
    if measure(shown.text, _UNIT) > TEXT_LIMIT_UTF16 or shown.loses_content:
        raise TextTooLong(f"as it is shown, longer than {TEXT_LIMIT_UTF16} UTF-16 units or too rich in links")
    return shown


def _shown_beginning(source: str) -> Formatted:
    """Return how the text looks, or as much of it as fits, with a mark that it goes on."""
    first = source
    if measure(source, _UNIT) > TEXT_LIMIT_UTF16:
        first = next(cut_text(source[: 2 * TEXT_LIMIT_UTF16], TEXT_LIMIT_UTF16, _UNIT)).text
    shown = _shown(first)
    if first == source and measure(shown.text, _UNIT) <= TEXT_LIMIT_UTF16:
        return shown
    beginning = shown.beginning(TEXT_LIMIT_UTF16 - measure(_ELLIPSIS, _UNIT))
    return replace(beginning, text=beginning.text + _ELLIPSIS)


def _beginning(text: str) -> str:
    if measure(text, _UNIT) <= TEXT_LIMIT_UTF16:
        return text
    return text[: safe_end(text, TEXT_LIMIT_UTF16 - measure(_ELLIPSIS, _UNIT), _UNIT)] + _ELLIPSIS


def _shown_card(card: CardContent) -> Formatted:
    """Return the card as one text within the limit, with its code verbatim."""
    text = _encodable(card.text).strip()
    if not card.code.strip():
        return Formatted(text=_cut(text, TEXT_LIMIT_UTF16))
    room = TEXT_LIMIT_UTF16 - measure(_BETWEEN, _UNIT)
    code_room = min(CARD_CODE_LIMIT_UTF16, max(_CODE_SHARE_UTF16, room - measure(text, _UNIT)))
    code = _cut(_encodable(card.code).rstrip(), code_room)
    before = _cut(text, room - measure(code, _UNIT)) + _BETWEEN if text else ""
    pre = Entity(kind=Kind.PRE, start=len(before), end=len(before) + len(code))
    return settled(before + code, (pre,))


def _cut(text: str, limit: int) -> str:
    """Return `text`, or its beginning and a mark that says how much is missing."""
    if measure(text, _UNIT) <= limit:
        return text
    longest_mark = _CUT_MARK.format(missing=len(text))
    end = safe_end(text, limit - measure(longest_mark, _UNIT), _UNIT)
    return text[:end] + _CUT_MARK.format(missing=len(text) - end)


def _keyboard(rows: Sequence[Sequence[Button]]) -> list[list[dict[str, str]]]:
    """Return the buttons of a card, but for those that open a form: Telegram has none."""
    drawn = [[_button(button) for button in row if not button.opens_form] for row in rows]
    return [row for row in drawn if row]


def _button(button: Button) -> dict[str, str]:
    if not 0 < len(button.token.encode()) <= CALLBACK_DATA_LIMIT_BYTES:
        raise SendRejected(f"a button carries 1 to {CALLBACK_DATA_LIMIT_BYTES} bytes, not {button.token!r}")
    shown = {"text": button.label, "callback_data": button.token}
    return shown | ({"style": _STYLES[button.style]} if button.style in _STYLES else {})


def _encodable(text: str) -> str:
    """Return `text` without lone surrogates, which no request can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
