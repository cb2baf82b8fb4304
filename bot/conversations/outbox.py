"""Delivery: the outbox rows of one chat, in order, each to exactly one visible message."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from channels.chunking import split_text
from channels.contract import Capabilities, Channel
from core.contracts.addresses import Address, CardContent, OutboundContent, OutboundItem, TextContent
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, OutboxRow, OutboxState
from core.contracts.engine import Again
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, TextTooLong

logger = logging.getLogger(__name__)

MAX_UNKNOWN = 3
"""Sends with an unknown outcome before a row is left as unknown: a text may then have doubled."""
_DOWN_BASE = timedelta(seconds=5)
_DOWN_LONGEST = timedelta(minutes=5)

CardFailed = Callable[[OutboundItem, str], Awaitable[None]]
"""Called when a card can never be shown, so that what it asks about does not wait for ever."""


class Deliverer:
    """The handler of the outbox queue; one chat at a time, chats beside each other."""

    def __init__(
        self,
        *,
        store: DeliveryStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        card_failed: CardFailed,
        mask: Callable[[str], str],
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._card_failed = card_failed
        self._mask = mask

    async def deliver_chat(self, key: str) -> Again | None:
        """Deliver what waits for one chat; stops at the first row that has to wait."""
        while rows := await self._store.outgoing(key):
            for row in rows:
                if not await self._deliver(row):
                    return None
        return None

    async def _deliver(self, row: OutboxRow) -> bool:
        """Deliver one row; False when the chat has to wait (the store rings it again then)."""
        item = row.item
        channel = self._channels.get(item.address.channel)
        if channel is None:
            await self._give_up(row, OutboxState.FAILED, f"no channel {item.address.channel!r} is configured")
            return True
        if row.state is OutboxState.ATTEMPTED and item.external_id is None:
            found = await channel.find(item)
            if found is not None:
                await self._store.mark_sent(item.id, found, content=item.content)
                return True
        if item.external_id is None and channel.capabilities.lookup:
            # A send may not be repeated blindly, so that it is begun must be known before it is.
            # An edit may be; and where nobody can look, the mark would change nothing.
            await self._store.mark_attempted(item.id)
        return await self._send(channel, row)

    async def _send(self, channel: Channel, row: OutboxRow) -> bool:
        item = row.item
        try:
            external_id = await channel.deliver(masked(item, self._mask))
        except TextTooLong as error:
            return await self._split(channel.capabilities, row, str(error))
        except SendLimited as error:
            await self._store.defer(item.id, self._clock.now() + error.retry_after, str(error))
            return False
        except SendUnknown as error:
            return await self._look_before_resending(channel, row, str(error))
        except SendRejected as error:
            await self._give_up(row, OutboxState.FAILED, str(error))
            return True
        except ChannelDown as error:
            wait = min(_DOWN_BASE * 2 ** min(item.attempts, 10), _DOWN_LONGEST)
            await self._store.defer(item.id, self._clock.now() + wait, str(error))
            return False
        await self._store.mark_sent(item.id, external_id, content=item.content)
        return True

    async def _look_before_resending(self, channel: Channel, row: OutboxRow, error: str) -> bool:
        found = await channel.find(row.item)
        if found is not None:
            await self._store.mark_sent(row.item.id, found, content=row.item.content)
            return True
        await self._store.mark_attempted(row.item.id)
        if row.item.attempts + 1 >= MAX_UNKNOWN:
            await self._give_up(row, OutboxState.UNKNOWN, error)
            return True
        await self._store.defer(row.item.id, self._clock.now() + _DOWN_BASE, error)
        return False

    async def _split(self, capabilities: Capabilities, row: OutboxRow, error: str) -> bool:
        """Split a text that the platform counts as too long into halves and go on with those."""
        match row.item.content:
            case TextContent(markdown=text) if len(text) > 1:
                smaller = max(1, min(capabilities.text_limit, len(text)) // 2)
                await self._store.split(row.item.id, text_items(row.item, text, capabilities, limit=smaller))
            case _:
                await self._give_up(row, OutboxState.FAILED, error)
        return True

    async def _give_up(self, row: OutboxRow, state: OutboxState, error: str) -> None:
        logger.error("outbox_row_failed", extra={"item_id": row.item.id, "state": state, "error": error})
        await self._store.fail(row.item.id, state, error)
        if isinstance(row.item.content, CardContent) and row.item.content.rows:
            await self._card_failed(row.item, error)


def masked(item: OutboundItem, mask: Callable[[str], str]) -> OutboundItem:
    """Return the item as it may leave the host: no secret value in any text of it."""
    return replace(item, content=masked_content(item.content, mask))


def masked_content(content: OutboundContent, mask: Callable[[str], str]) -> OutboundContent:
    """Return content without secret values; an approval stays bound to what it really is about."""
    match content:
        case TextContent(markdown=text):
            return replace(content, markdown=mask(text))
        case CardContent(text=text, code=code):
            return replace(content, text=mask(text), code=mask(code))


def text_items(
    first: OutboundItem, markdown: str, capabilities: Capabilities, *, limit: int | None = None
) -> tuple[OutboundItem, ...]:
    """Return a text as items that fit the channel; the first takes the place of `first`."""
    parts = split_text(markdown, limit or capabilities.text_limit, capabilities.text_unit)
    silent = isinstance(first.content, TextContent) and first.content.silent
    return tuple(
        replace(
            first,
            id=first.id if number == 1 else f"{first.id}.{number}",
            content=TextContent(markdown=part, silent=silent),
            external_id=first.external_id if number == 1 else None,
        )
        for number, part in enumerate(parts, start=1)
    )


def notice(item_id: str, address: Address, markdown: str, *, silent: bool = False) -> OutboundItem:
    """Return a text of the host itself as one item."""
    return OutboundItem(id=item_id, address=address, content=TextContent(markdown=markdown, silent=silent))
