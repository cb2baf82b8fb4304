"""Delivery: the outbox rows of one chat, in order, each to exactly one visible message."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from channels.chunking import split_text
from channels.contract import Capabilities, Channel
from core.contracts.addresses import Address, CardContent, OutboundContent, OutboundItem, TextContent
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, OutboxRow, OutboxState
from core.contracts.engine import Again
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendUnknown, TextTooLong

logger = logging.getLogger(__name__)

MAX_UNKNOWN = 2
"""Sends with an unknown outcome before a row is left as unknown: a text may have doubled once then."""
ELSEWHERE = Again(wait=timedelta(hours=1))
"""For a channel that this host has not: the doorbell stays stored, and a host that has it answers."""
LET_END = timedelta(seconds=10)
"""How long a send that is under way may go on when the host stops: cut off, it would be made again."""
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
        let_end: timedelta = LET_END,
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._card_failed = card_failed
        self._mask = mask
        self._let_end = let_end
        self._unknown: Counter[str] = Counter()
        self._unrecorded: dict[str, tuple[str, OutboundContent]] = {}
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def deliver_chat(self, key: str) -> Again | None:
        """Deliver what waits for one chat; stops at the first row that has to wait."""
        if key.partition("/")[0] not in self._channels:
            return ELSEWHERE
        self._active += 1
        self._idle.clear()
        try:
            # Read again for each: a row that was split has others behind it now.
            while rows := await self._store.outgoing(key):
                if not await _to_its_end(self._deliver(rows[0]), self._let_end):
                    return None
        finally:
            self._active -= 1
            if self._active == 0:
                self._idle.set()
        return None

    async def drain(self, patience: timedelta) -> None:
        """Wait until nothing is under way, `patience` at most; what is left is sent after the next start."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                await self._idle.wait()

    async def give_up(self, key: str, error: str) -> None:
        """Fail the row that a chat cannot get past, so that those behind it go on."""
        for row in (await self._store.outgoing(key))[:1]:
            await self._give_up(row, OutboxState.FAILED, error)

    async def _deliver(self, row: OutboxRow) -> bool:
        """Deliver one row; False when the chat has to wait (the store rings it again then)."""
        item = row.item
        channel = self._channels[item.address.channel]
        if item.id in self._unrecorded:
            # It is visible already and only the record is missing: sending again would double it.
            await self._record(row, *self._unrecorded[item.id])
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
        try:
            external_id = await channel.deliver(masked(row.item, self._mask))
        except ChannelError as error:
            return await self._follow_up(channel, row, error)
        await self._record(row, external_id, row.item.content)
        return True

    async def _record(self, row: OutboxRow, external_id: str, content: OutboundContent) -> None:
        self._unrecorded[row.item.id] = (external_id, content)
        await self._store.mark_sent(row.item.id, external_id, content=content)
        del self._unrecorded[row.item.id]
        self._unknown.pop(row.item.id, None)

    async def _follow_up(self, channel: Channel, row: OutboxRow, error: ChannelError) -> bool:
        """Do what a failed delivery asks for; False when the chat has to wait."""
        match error:
            case TextTooLong():
                return await self._split(channel.capabilities, row, str(error))
            case SendLimited(retry_after=wait):
                await self._store.defer(row.item.id, self._clock.now() + wait, str(error))
                return False
            case SendUnknown() if row.item.external_id is None:
                return await self._look_before_resending(channel, row, str(error))
            case SendUnknown() | ChannelDown():
                # An edit may be repeated, whatever became of it.
                await self._count(channel, row)
                wait = min(_DOWN_BASE * 2 ** min(row.item.attempts, 10), _DOWN_LONGEST)
                await self._store.defer(row.item.id, self._clock.now() + wait, str(error))
                return False
            case _:
                await self._give_up(row, OutboxState.FAILED, str(error))
                return True

    async def _look_before_resending(self, channel: Channel, row: OutboxRow, error: str) -> bool:
        found = await channel.find(row.item)
        if found is not None:
            await self._store.mark_sent(row.item.id, found, content=row.item.content)
            return True
        await self._count(channel, row)
        self._unknown[row.item.id] += 1
        if self._unknown[row.item.id] >= MAX_UNKNOWN:
            await self._give_up(row, OutboxState.UNKNOWN, error)
            return True
        await self._store.defer(row.item.id, self._clock.now() + _DOWN_BASE, error)
        return False

    async def _count(self, channel: Channel, row: OutboxRow) -> None:
        """Count a try that failed, unless it was counted before it began."""
        if row.item.external_id is not None or not channel.capabilities.lookup:
            await self._store.mark_attempted(row.item.id)

    async def _split(self, capabilities: Capabilities, row: OutboxRow, error: str) -> bool:
        """Split a text that the platform counts as too long into halves and go on with those."""
        match row.item.content:
            case TextContent(markdown=raw) if len(text := self._mask(raw)) > 1:
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


async def _to_its_end(job: Coroutine[None, None, bool], patience: timedelta) -> bool:
    """Await a delivery; when the host stops meanwhile, let it end before that is passed on."""
    task = asyncio.create_task(job, name="delivery")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait({task}, timeout=patience.total_seconds())
        finally:
            # Also when told to stop a second time: no delivery goes on without an owner.
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        raise


def masked(item: OutboundItem, mask: Callable[[str], str]) -> OutboundItem:
    """Return the item as it may leave the host: no secret value in any text of it."""
    return replace(item, content=masked_content(item.content, mask))


def masked_content(content: OutboundContent, mask: Callable[[str], str]) -> OutboundContent:
    """Return content without secret values; an approval stays bound to what it really is about."""
    match content:
        case TextContent(markdown=text):
            return replace(content, markdown=mask(text))
        case CardContent(text=text, code=code, rows=rows):
            # A button may show the rule that it would add, verbatim.
            masked_rows = tuple(tuple(replace(button, label=mask(button.label)) for button in row) for row in rows)
            return replace(content, text=mask(text), code=mask(code), rows=masked_rows)


def text_items(
    first: OutboundItem, markdown: str, capabilities: Capabilities, *, limit: int | None = None
) -> tuple[OutboundItem, ...]:
    """Return a text as items that fit the channel; the first takes the place of `first`."""
    parts = split_text(markdown, limit or capabilities.text_limit, capabilities.text_unit)
    silent = isinstance(first.content, TextContent) and first.content.silent
    # A row may be split again and again, each time smaller: the limit keeps the ids apart.
    mark = "." if limit is None else f".{limit}-"
    return tuple(
        replace(
            first,
            id=first.id if number == 1 else f"{first.id}{mark}{number}",
            content=TextContent(markdown=part, silent=silent),
            external_id=first.external_id if number == 1 else None,
        )
        for number, part in enumerate(parts, start=1)
    )


def notice(item_id: str, address: Address, markdown: str, *, silent: bool = False) -> OutboundItem:
    """Return a text of the host itself as one item."""
    return OutboundItem(id=item_id, address=address, content=TextContent(markdown=markdown, silent=silent))
