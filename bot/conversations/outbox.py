"""Delivery: the outbox rows of one chat, in order, each to exactly one visible message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from channels.chunking import split_text
from channels.contract import Capabilities, Channel
from core.contracts.addresses import (
    Address,
    CardContent,
    FileContent,
    OutboundContent,
    OutboundItem,
    ReactionContent,
    Removal,
    TextContent,
)
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, OutboxRow, OutboxState
from core.contracts.engine import Again
from core.contracts.errors import (
    ChannelDown,
    ChannelError,
    ChatMoved,
    NotFound,
    SendLimited,
    SendUnknown,
    TextTooLong,
)
from core.contracts.ids import TurnId

logger = logging.getLogger(__name__)

MAX_UNKNOWN = 2
"""Sends with an unknown outcome before a text is left as unknown: it may have doubled once then."""
_MAX_UNKNOWN_ASIDE = 5
ANSWER_IN_DOUBT = "I was cut off each time I sent my answer. If you do not see it, ask me to repeat it."
_FATE_OF_TURN = "/fate"
"""The same for what may be repeated, but is not worth more."""
ELSEWHERE = Again(wait=timedelta(hours=1), over_restart=False)
"""For a channel that this host has not: the doorbell stays stored, and a host that has it answers."""
LET_END = timedelta(seconds=10)
"""How long a send that is under way may go on when the host stops: cut off, it would be made again."""
_DOWN_BASE = timedelta(seconds=5)
_DOWN_LONGEST = timedelta(minutes=5)

CardFailed = Callable[[OutboundItem, str], Awaitable[None]]
"""Called when a card can never be shown, so that what it asks about does not wait for ever."""
FileDone = Callable[[FileContent], Awaitable[None]]
"""Called when a file was sent, or never will be: nobody reads it any more."""


async def _keep_file(content: FileContent) -> None:
    """Leave a file where it is."""


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
        file_done: FileDone = _keep_file,
        let_end: timedelta = LET_END,
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._card_failed = card_failed
        self._mask = mask
        self._file_done = file_done
        self._let_end = let_end
        self._born = clock.now()
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
        channel = self._channels[row.item.address.channel]
        if row.item.id in self._unrecorded:
            # It is visible already and only the record is missing: sending again would double it.
            await self._record(row, *self._unrecorded[row.item.id])
            return True
        if not await self._is_wanted(channel.capabilities, row):
            await self._do_without(channel.capabilities, row)
            return True
        if not is_new_message(row.item):
            return await self._send(channel, row, counted=False)
        if row.state is OutboxState.ATTEMPTED and await self._ended_with_its_host(channel, row):
            return True
        return await self._send(channel, row, counted=await self._mark(channel, row))

    async def _is_wanted(self, capabilities: Capabilities, row: OutboxRow) -> bool:
        """Whether the channel takes such a content, and there is still a point in it."""
        match row.item.content:
            case TextContent() | CardContent():
                return True
            case FileContent():
                return capabilities.files
            case ReactionContent():
                return capabilities.reactions
            case Removal():
                return capabilities.removals and row.item.external_id is not None and await self._is_replaced(row)

    async def _is_replaced(self, row: OutboxRow) -> bool:
        """Whether what a progress message makes room for is visible: until then it is all that people have."""
        if row.turn_id is None:
            return True
        try:
            final = await self._store.outbox_row(final_id(row.turn_id))
        except NotFound:
            return True
        return final.state is OutboxState.SENT

    async def _do_without(self, capabilities: Capabilities, row: OutboxRow) -> None:
        """Name a file that the channel cannot show; what else it cannot do is no news to anybody."""
        match row.item.content:
            case FileContent(name=name, caption=caption, silent=silent) as content:
                told = self._mask("\n\n".join(filter(None, (f"(A file that I cannot send here: {name})", caption))))
                first = replace(row.item, content=TextContent(markdown="", silent=silent))
                await self._store.split(row.item.id, text_items(first, told, capabilities))
                await self._file_done(content)
            case _:
                await self._store.fail(row.item.id, OutboxState.FAILED, "not possible here")

    async def _mark(self, channel: Channel, row: OutboxRow) -> bool:
        """Put on record that a send begins, so that no crash lets it be made too often; False where that is left out.

        It is left out, for speed, for the first send of a text where nobody can look. So a text of an
        earlier process that was never tried on record may have been sent once without a trace.
        """
        on_record = channel.capabilities.lookup or isinstance(row.item.content, FileContent)
        untried = row.item.attempts == 0 and not row.error
        if untried and not on_record and row.created_at >= self._born:
            return False
        await self._store.mark_attempted(row.item.id)
        if untried and not on_record:
            await self._store.count_unknown(row.item.id)
        return True

    async def _ended_with_its_host(self, channel: Channel, row: OutboxRow) -> bool:
        """Settle a send that an earlier process had begun; False where it is to be made again."""
        if await self._was_found(channel, row):
            return True
        if channel.capabilities.lookup and not isinstance(row.item.content, FileContent):
            # The platform can tell, and says that it was not sent.
            return False
        return await self._is_left_unknown(row, "the host ended while it was sent", timedelta(0))

    async def _was_found(self, channel: Channel, row: OutboxRow) -> bool:
        external_id = await channel.find(row.item)
        if external_id is not None:
            await self._record(row, external_id, row.item.content)
        return external_id is not None

    async def _is_left_unknown(self, row: OutboxRow, error: str, wait: timedelta) -> bool:
        """Give up where there may be no other unknown outcome; otherwise have it sent again after `wait`.

        Counted and put off at once: a crash between the two would count this outcome again.
        """
        limit, until = unknown_limit(row.item), self._clock.now() + wait
        if limit is None:
            await self._store.defer(row.item.id, until, error)
            return False
        if await self._store.count_unknown(row.item.id, limit=limit, until=until, error=error) < limit:
            return False
        await self._give_up(row, OutboxState.UNKNOWN, error)
        return True

    async def _send(self, channel: Channel, row: OutboxRow, *, counted: bool) -> bool:
        try:
            external_id = await channel.deliver(masked(row.item, self._mask))
        except (SendUnknown, ChannelDown) as error:
            if not counted:
                await self._store.mark_attempted(row.item.id)
            return await self._try_later(channel, row, error)
        except ChannelError as error:
            return await self._follow_up(channel, row, error)
        await self._record(row, external_id, row.item.content)
        return True

    async def _record(self, row: OutboxRow, external_id: str, content: OutboundContent) -> None:
        self._unrecorded[row.item.id] = (external_id, content)
        await self._store.mark_sent(row.item.id, external_id, content=content)
        del self._unrecorded[row.item.id]
        if isinstance(content, FileContent):
            await self._file_done(content)

    async def _try_later(self, channel: Channel, row: OutboxRow, error: SendUnknown | ChannelDown) -> bool:
        wait = min(_DOWN_BASE * 2 ** min(row.item.attempts, 10), _DOWN_LONGEST)
        if isinstance(error, SendUnknown):
            if is_new_message(row.item):
                if await self._was_found(channel, row):
                    return True
                wait = _DOWN_BASE
            return await self._is_left_unknown(row, str(error), wait)
        await self._store.defer(row.item.id, self._clock.now() + wait, str(error))
        return False

    async def _follow_up(self, channel: Channel, row: OutboxRow, error: ChannelError) -> bool:
        """Do what a platform asks for that sent nothing; False when the chat has to wait."""
        item = row.item
        match error, item.content:
            case TextTooLong(), _:
                await self._split(channel.capabilities, row, str(error))
                return True
            case SendLimited(retry_after=wait), _:
                await self._store.defer(item.id, self._clock.now() + wait, str(error))
                return False
            case ChatMoved(chat=chat), _:
                # That nothing was sent has to be on record before the row is another chat's.
                await self._store.defer(item.id, self._clock.now(), str(error))
                await self._store.migrate_chat(item.address, chat)
                return False
            case _, Removal():
                # The platform takes nothing away any more, or it is gone: either way, as good as done.
                await self._record(row, item.external_id or "", item.content)
                return True
            case _:
                await self._give_up(row, OutboxState.FAILED, str(error))
                return True

    async def _split(self, capabilities: Capabilities, row: OutboxRow, error: str) -> None:
        """Go on with the halves of a text that the platform counts as too long; a caption becomes a text."""
        match row.item.content:
            case TextContent(markdown=raw) if len(text := self._mask(raw)) > 1:
                smaller = max(1, min(capabilities.text_limit, len(text)) // 2)
                await self._store.split(row.item.id, text_items(row.item, text, capabilities, limit=smaller))
            case FileContent(caption=caption, silent=silent) as content if caption:
                bare = replace(row.item, content=replace(content, caption=""))
                below = notice(f"{row.item.id}/caption", row.item.address, "", silent=silent)
                await self._store.split(row.item.id, (bare, *text_items(below, self._mask(caption), capabilities)))
            case _:
                await self._give_up(row, OutboxState.FAILED, error)

    async def _give_up(self, row: OutboxRow, state: OutboxState, error: str) -> None:
        item = row.item
        logger.error("outbox_row_failed", extra={"item_id": item.id, "state": state, "error": error})
        fate = _fate(row, state)
        if fate is not None:
            await self._store.post([fate], turn_id=row.turn_id)
        await self._store.fail(item.id, state, error)
        match item.content:
            case CardContent(rows=buttons) if buttons:
                await self._card_failed(item, error)
            case FileContent() as content:
                await self._file_done(content)
            case _:
                pass


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


def is_new_message(item: OutboundItem) -> bool:
    """Whether delivering the item makes a message: an edit, a reaction and a removal may be repeated."""
    match item.content:
        case TextContent() | CardContent() | FileContent():
            return item.external_id is None
        case ReactionContent() | Removal():
            return False


def unknown_limit(item: OutboundItem) -> int | None:
    """Return how many deliveries may end with an unknown outcome before the item is left; None: any number."""
    match item.content:
        case FileContent():
            return 1
        case TextContent() | CardContent():
            return MAX_UNKNOWN if item.external_id is None else None
        case ReactionContent() | Removal():
            # Nobody's messages should wait for them for long.
            return _MAX_UNKNOWN_ASIDE


def final_id(turn_id: TurnId) -> str:
    """Return the outbox id of an answer that is a message of its own and takes no preview's place."""
    return f"{turn_id}/end"


def _fate(row: OutboxRow, state: OutboxState) -> OutboundItem | None:
    """Return what people are told of a file, or of what a turn said, that is given up; of an answer once a turn."""
    item, is_open = row.item, state is OutboxState.UNKNOWN
    match item.content:
        case FileContent(name=name):
            told = f"It is not known whether {name} arrived." if is_open else f"{name} could not be sent."
            return notice(f"{item.id}/fate", item.address, told)
        case TextContent() if row.turn_id is not None and not item.id.endswith(_FATE_OF_TURN):
            told = ANSWER_IN_DOUBT if is_open else "My answer could not be sent here. My operator can see why."
            return notice(f"{row.turn_id}{_FATE_OF_TURN}", item.address, told)
        case _:
            return None


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
        case FileContent(name=name, caption=caption):
            return replace(content, name=mask(name), caption=mask(caption))
        case ReactionContent() | Removal():
            return content


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
