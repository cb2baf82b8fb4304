"""From an item of the outbox to what Discord is asked to show; pure.

Mentions: see `channels.discord.quiet`, which every payload passes on its way out.
"""

from __future__ import annotations

import hashlib
from typing import Any, assert_never

from channels.chunking import cut_text, measure, split_text
from channels.contract import TextUnit
from channels.discord.cards import card_components, card_text
from channels.discord.limits import NONCE_LIMIT_CHARS, TEXT_LIMIT_UTF16
from channels.discord.quiet import EPHEMERAL, SUPPRESS_NOTIFICATIONS
from channels.discord.rendering import FENCE, encodable, escaped, render_blocks
from channels.markdown import parse
from core.contracts.addresses import CardContent, FileContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected, TextTooLong

Payload = dict[str, Any]

SURELY_FITS_UTF16 = 64
"""A text of up to so many units always fits in one message, however it grows as it is drawn."""

_UNIT = TextUnit.UTF16
_ELLIPSIS = "…"
_BEGINNINGS = (TEXT_LIMIT_UTF16, 1500, 1000, 500, 250, 125, SURELY_FITS_UTF16)
"""How much of a text that is too long is tried to be shown, most first: some grow as they are drawn."""


def nonce_of(key: str) -> str:
    """Return the nonce of what `key` names: the same for the same key, on every host."""
    return hashlib.sha256(key.encode()).hexdigest()[:NONCE_LIMIT_CHARS]


def shown(content: TextContent | CardContent) -> Payload:
    """Return what a message of that content looks like, as a create or an edit of it says it.

    A card has its buttons, a settled one and a text have none; what an edit finds there is taken away.

    Raises:
        TextTooLong: The text does not fit in one message as it is shown, or as it is written.
        SendRejected: A button carries more than Discord takes.
    """
    match content:
        case TextContent(markdown=markdown):
            return {"content": _whole(encodable(markdown)), "components": []}
        case CardContent(rows=rows):
            return {"content": card_text(content), "components": card_components(rows)}
        case _:
            assert_never(content)


def new_message(item: OutboundItem, *, nonce: str, silent: bool, in_thread: bool) -> Payload:
    """Return what a new message has beside its content.

    One that answers a message in a thread's parent, because there is no thread, refers to the
    thread's first message; `in_thread` says that it stands where its address wants it.

    Raises:
        SendRejected: The message to answer is none of Discord's.
    """
    payload: Payload = {"nonce": nonce, "enforce_nonce": True}
    if silent:
        payload["flags"] = SUPPRESS_NOTIFICATIONS
    answered = item.reply_to if in_thread else item.reply_to or item.address.thread
    if answered is not None and not (in_thread and answered == item.address.thread):
        payload["message_reference"] = {"message_id": snowflake(answered), "fail_if_not_exists": False}
    return payload


def caption(content: FileContent) -> Payload:
    """Return the text under a file, which is plain.

    Raises:
        TextTooLong: It does not fit.
    """
    text = escaped(encodable(content.caption).strip())
    if measure(text, _UNIT) > TEXT_LIMIT_UTF16:
        raise TextTooLong(f"a caption of more than {TEXT_LIMIT_UTF16} UTF-16 units")
    return {"content": text}


def preview(text: str) -> Payload:
    """Return what a preview of `text`, Markdown that may end anywhere and is not empty, looks like.

    A text that is too long shows its beginning: that is what the final's first part will be, so
    nothing that people are reading moves away from them.
    """
    source = encodable(text)
    whole = _drawn(source) if measure(source, _UNIT) <= TEXT_LIMIT_UTF16 else ""
    if whole and measure(whole, _UNIT) <= TEXT_LIMIT_UTF16:
        return {"content": whole}
    return {"content": next(filter(None, (_beginning(source, room) for room in _BEGINNINGS)), _ELLIPSIS)}


def notices(markdown: str) -> tuple[Payload, ...]:
    """Return the messages that answer an interaction so that only whoever gave it sees them; none for ""."""
    parts: list[str] = []
    waiting = [*reversed(split_text(encodable(markdown).strip(), TEXT_LIMIT_UTF16, _UNIT))]
    while waiting:
        source = waiting.pop()
        try:
            parts.append(_whole(source))
        except TextTooLong:
            waiting += reversed(split_text(source, measure(source, _UNIT) // 2, _UNIT))
    return tuple({"content": part, "flags": EPHEMERAL} for part in parts)


def snowflake(text: str) -> str:
    """Return an id as the API takes it.

    Raises:
        SendRejected: It is none of Discord's.
    """
    if not (text.isascii() and text.isdecimal()):
        raise SendRejected(f"{text!r} is no id of Discord")
    return text


def _whole(source: str) -> str:
    """Return how a text looks that has to fit in one message, shown or written."""
    if measure(source, _UNIT) > TEXT_LIMIT_UTF16:
        raise TextTooLong(f"longer than {TEXT_LIMIT_UTF16} UTF-16 units")
    drawn = _drawn(source)
    if measure(drawn, _UNIT) > TEXT_LIMIT_UTF16:
        raise TextTooLong(f"as it is shown, longer than {TEXT_LIMIT_UTF16} UTF-16 units")
    return drawn


def _drawn(source: str) -> str:
    """Return the text in Discord's marks; one that would show nothing, such as an open fence, as it is written."""
    return render_blocks(parse(source)) or escaped(source)


def _beginning(source: str, room: int) -> str:
    """Return as much of a text as `room` units of it show, with a mark that it goes on; empty if that is too long."""
    first = next(cut_text(source[: 2 * room], room, _UNIT)).text
    drawn = _drawn(first)
    marked = f"{drawn}\n{_ELLIPSIS}" if drawn.endswith(FENCE) else drawn + _ELLIPSIS
    return marked if measure(marked, _UNIT) <= TEXT_LIMIT_UTF16 else ""
