"""From an item of the outbox to the call that shows it; pure.

Mentions, on every path (previews, finals, edits, cards, notices): what an agent writes goes out as
text and mentions nobody. In mrkdwn `&`, `<` and `>` are escaped once and names are never looked up
(`link_names` is off); in Markdown that Slack draws itself the openings of mentions are taken apart
(`channels.slack.streams`). Links are never shown as previews.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from channels.chunking import cut_text, measure
from channels.contract import TextUnit
from channels.slack.cards import draw_card
from channels.slack.limits import RESPONSE_USES, TEXT_LIMIT_BYTES
from channels.slack.message_ids import root_and_ts, thread_of
from channels.slack.mrkdwn import FENCE, encodable, is_visible, literal, render
from core.contracts.addresses import Address, CardContent, FileContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected, TextTooLong

_ELLIPSIS = "…"
_NOTICE_CUT_MARK = "_… (cut: it is longer than Slack shows here)_"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCall:
    """chat.postMessage, or chat.update where `ts` is set; `text` is mrkdwn, escaped.

    `item_id` is written into the message's metadata, by which an earlier send can be found again.
    """

    channel: str
    text: str
    thread: str | None = None
    ts: str | None = None
    blocks: tuple[dict[str, Any], ...] = ()
    item_id: str = ""


def render_message(item: OutboundItem, content: TextContent | CardContent) -> MessageCall:
    """Return the call that delivers `content`, which is the item's.

    A text that would show nothing, such as an empty block of code, is sent as it is written. Cards
    are plain and are cut to one message, visibly.

    Raises:
        TextTooLong: The text does not fit in one message as it is shown. A text of up to 190 bytes
            always fits.
        SendRejected: A message id is not one of Slack's, or the card cannot be drawn.
    """
    blocks: tuple[dict[str, Any], ...] = ()
    match content:
        case TextContent(markdown=markdown):
            text = _shown_whole(markdown)
        case CardContent():
            card = draw_card(content)
            text, blocks = card.notice, card.blocks
        case _:
            assert_never(content)
    if item.external_id is None:
        return MessageCall(channel=item.address.chat, text=text, thread=thread_of(item), blocks=blocks, item_id=item.id)
    _, ts = root_and_ts(item.external_id)
    return MessageCall(channel=item.address.chat, text=text, ts=ts, blocks=blocks, item_id=item.id)


def preview(address: Address, text: str, external_id: str | None) -> MessageCall:
    """Return the call that shows `text`, Markdown that may end anywhere, as a preview.

    A text that is too long shows its beginning: that is what the final's first part will be, so
    nothing that people are reading moves away from them.

    Raises:
        SendRejected: The message id is not one of Slack's.
    """
    ts = None if external_id is None else root_and_ts(external_id)[1]
    return MessageCall(channel=address.chat, text=_shown_beginning(text), thread=address.thread, ts=ts)


def render_caption(content: FileContent) -> str:
    """Return what stands above a file.

    Raises:
        TextTooLong: It does not fit there.
    """
    shown = literal(content.caption)
    if measure(shown, TextUnit.BYTES) > TEXT_LIMIT_BYTES:
        raise TextTooLong(f"the caption is longer than {TEXT_LIMIT_BYTES} bytes")
    return shown if is_visible(shown) else ""


def render_notices(markdown: str) -> tuple[str, ...]:
    """Return the answer to an act as mrkdwn, in as many messages as Slack takes; a mark says that there is more."""
    shown = list(_parts(markdown, TEXT_LIMIT_BYTES))
    if len(shown) > RESPONSE_USES:
        shown = [*shown[: RESPONSE_USES - 1], _NOTICE_CUT_MARK]
    return tuple(shown)


def _parts(markdown: str, limit: int) -> Iterator[str]:
    for part in cut_text(encodable(markdown), limit, TextUnit.BYTES):
        shown = _shown(part.text)
        if measure(shown, TextUnit.BYTES) <= TEXT_LIMIT_BYTES:
            if is_visible(shown):
                yield shown
        else:
            yield from _parts(part.text, limit // 2)


def _shown(source: str) -> str:
    return render(source) or literal(source)


def _shown_whole(markdown: str) -> str:
    """Return how a text looks that has to fit in one message."""
    source = encodable(markdown)
    shown = "" if measure(source, TextUnit.BYTES) > TEXT_LIMIT_BYTES else _shown(source)
    if not is_visible(source):
        raise SendRejected("the text is empty")
    if not shown or measure(shown, TextUnit.BYTES) > TEXT_LIMIT_BYTES:
        raise TextTooLong(f"longer than {TEXT_LIMIT_BYTES} bytes as it is shown")
    return shown


def _shown_beginning(markdown: str) -> str:
    """Return how the text looks, or as much of it as fits, with a mark that it goes on."""
    source = encodable(markdown)
    limit = TEXT_LIMIT_BYTES
    while True:
        first = next(cut_text(source, limit, TextUnit.BYTES), None)
        shown = "" if first is None else _shown(first.text)
        if first is not None and len(first.content) < len(source):
            shown += f"\n{_ELLIPSIS}" if shown.endswith(FENCE) else _ELLIPSIS
        excess = measure(shown, TextUnit.BYTES) - TEXT_LIMIT_BYTES
        if excess <= 0:
            return shown
        limit -= min(excess, limit // 4)
