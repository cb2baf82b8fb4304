"""The channel of this machine: chats that live on the web console, in a terminal, or headless.

The same contract as any platform, so that everything can be tried without a token. What a
platform would show is handed to whoever subscribes to a chat; nobody listening is no failure,
because the history is read back from the inbox and outbox.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

from channels.contract import Capabilities, Channel, Form, Probe, Reply, SentCallback, Sink, TextUnit
from core.contracts.addresses import (
    Address,
    Attachment,
    CardContent,
    CommandBody,
    DeleteBody,
    EditBody,
    FileContent,
    InboundBody,
    InboundEvent,
    MessageBody,
    OutboundContent,
    OutboundItem,
    PressBody,
    Privacy,
    ReactionContent,
    Removal,
    Sender,
    TextContent,
)
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, DownloadFailed, DownloadRefused, SendRejected, TextTooLong
from core.contracts.ids import new_id

ACCOUNT = "local"
_QUEUE_LIMIT = 1_000
_TEXT_LIMIT_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A person said something, or changed what they had said under that key; seen by every viewer."""

    key: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message was posted or edited, or a reaction was set; `external_id` says which."""

    external_id: str
    content: OutboundContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was shown or said under that id is there no more."""

    external_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """The answer so far; the message of the same `external_id` replaces it."""

    external_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSet:
    """What the agent is doing; empty when it is idle."""

    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """A short answer to a press."""

    text: str


FeedEvent: TypeAlias = Said | Shown | Removed | Previewed | StatusSet | Noticed


class FeedChannel:
    """One local channel. Chats are any names; a person on this machine is always direct."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._sink: Sink | None = None
        self._running = asyncio.Event()
        self._subscribers: dict[str, set[asyncio.Queue[FeedEvent]]] = {}
        self._presses: dict[str, str] = {}
        self._numbers = itertools.count(1)

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            text_limit=_TEXT_LIMIT_CHARS,
            text_unit=TextUnit.CHARS,
            edits=True,
            buttons=True,
            edit_interval=timedelta(milliseconds=50),
            code_limit=_TEXT_LIMIT_CHARS,
            files=True,
            reactions=True,
            removals=True,
        )

    def address(self, chat: str) -> Address:
        """Return the address of one chat of this channel."""
        return Address(channel=self._name, account=ACCOUNT, chat=chat)

    async def run(self, sink: Sink) -> None:
        self._sink = sink
        self._running.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._running.clear()
            self._sink = None

    async def say(
        self,
        chat: str,
        sender: Sender,
        text: str,
        *,
        key: str | None = None,
        attachments: tuple[Attachment, ...] = (),
    ) -> None:
        """Hand in a person's message; returns when it is durable.

        Args:
            chat: Name of the chat.
            sender: Who speaks.
            text: What is said.
            key: The client's own id of the message: sent twice, it counts once.
            attachments: Files of this machine; the handle of each is its absolute path.

        Raises:
            StoreError: It was not stored; the client keeps it.
        """
        event_key = key or new_id("say")
        await self._accept(chat, sender, event_key, MessageBody(text=text, attachments=attachments))
        self._publish(self.address(chat).key, Said(key=event_key, name=sender.name, text=text))

    async def edit(self, chat: str, sender: Sender, key: str, text: str) -> None:
        """Hand in another text for the message of that key; see `say`."""
        await self._accept(chat, sender, new_id("edit"), EditBody(message_key=key, text=text))
        self._publish(self.address(chat).key, Said(key=key, name=sender.name, text=text))

    async def withdraw(self, chat: str, sender: Sender, key: str) -> None:
        """Hand in that the message of that key is taken back; see `say`."""
        await self._accept(chat, sender, new_id("withdraw"), DeleteBody(message_key=key))
        self._publish(self.address(chat).key, Removed(external_id=key))

    async def press(self, chat: str, sender: Sender, token: str, card: str) -> None:
        """Hand in a button press; its answer is published as `Noticed`."""
        press_id = new_id("press")
        self._presses[press_id] = self.address(chat).key
        try:
            await self._accept(chat, sender, press_id, PressBody(token=token, card=card, acknowledge=press_id))
        except BaseException:
            self._presses.pop(press_id, None)
            raise

    @asynccontextmanager
    async def subscribe(self, chat: str) -> AsyncIterator[asyncio.Queue[FeedEvent]]:
        """Give a queue of everything that happens in the chat from now on.

        A viewer that leaves as many events unread as its queue holds is dropped from the feed: a
        full queue gets no more. Its viewer subscribes again and reads the history.
        """
        queue: asyncio.Queue[FeedEvent] = asyncio.Queue(maxsize=_QUEUE_LIMIT)
        key = self.address(chat).key
        self._subscribers.setdefault(key, set()).add(queue)
        try:
            yield queue
        finally:
            self._drop(key, queue)

    def reply(self, address: Address, on_sent: SentCallback) -> AbstractAsyncContextManager[Reply]:
        return self._reply(address, on_sent)

    @asynccontextmanager
    async def _reply(self, address: Address, on_sent: SentCallback) -> AsyncIterator[Reply]:
        self._publish(address.key, StatusSet(status="thinking"))
        try:
            yield _FeedReply(self, address, on_sent)
        finally:
            self._publish(address.key, StatusSet(status=""))

    async def deliver(self, item: OutboundItem) -> str:
        event = await _event(item)
        self._publish(item.address.key, event)
        return event.external_id

    async def find(self, item: OutboundItem) -> str | None:
        # Showing an item again under the same id doubles nothing, so nobody needs to look.
        del item
        return None

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        return await asyncio.to_thread(_copy, Path(attachment.handle), into, limit_bytes)

    async def leave(self, address: Address) -> None:
        del address  # nobody can be put out of a chat of this machine

    async def acknowledge(self, asked: PressBody | CommandBody, text: str) -> None:
        if not text:
            # An acknowledgement without words may be followed by one with them.
            return
        key = self._presses.pop(asked.acknowledge or "", None)
        if key is not None:
            self._publish(key, Noticed(text=text))

    async def open_form(self, press: PressBody, form: Form) -> None:
        del press
        raise SendRejected(f"{form.title}: this chat has no forms")

    async def probe(self) -> Probe:
        running = self._running.is_set()
        return Probe(healthy=running, detail="serving" if running else "not started")

    async def _accept(self, chat: str, sender: Sender, key: str, body: InboundBody) -> None:
        if self._sink is None:
            msg = f"{self._name} is not running"
            raise ChannelDown(msg)
        await self._sink.accept(
            InboundEvent(
                address=self.address(chat),
                key=key,
                sender=sender,
                body=body,
                privacy=Privacy.DIRECT,
                sent_at=self._clock.now(),
            )
        )

    def new_external_id(self) -> str:
        """Return an id for a preview's message."""
        return f"live-{next(self._numbers)}-{new_id('m')}"

    def _publish(self, key: str, event: FeedEvent) -> None:
        for queue in tuple(self._subscribers.get(key, ())):
            queue.put_nowait(event)
            if queue.full():
                self._drop(key, queue)

    def _drop(self, key: str, queue: asyncio.Queue[FeedEvent]) -> None:
        viewers = self._subscribers.get(key, set())
        viewers.discard(queue)
        if not viewers:
            self._subscribers.pop(key, None)

    def preview(self, address: Address, event: FeedEvent) -> None:
        """Show something that is not stored."""
        self._publish(address.key, event)


async def _event(item: OutboundItem) -> Shown | Removed:
    """Return what viewers see of a delivery.

    Raises:
        SendRejected: It names no message, or a file that is not there.
        TextTooLong: It is longer than anything a viewer should be given.
    """
    match item.content:
        case TextContent(markdown=text) | CardContent(text=text):
            if len(text) > _TEXT_LIMIT_CHARS:
                msg = f"longer than {_TEXT_LIMIT_CHARS} characters"
                raise TextTooLong(msg)
        case FileContent(path=path):
            if not await asyncio.to_thread(Path(path).is_file):
                raise SendRejected("there is no such file")
        case ReactionContent(emoji=emoji):
            return _reaction(item, emoji)
        case Removal():
            if item.external_id is None:
                raise SendRejected("a removal needs a message to take away")
            return Removed(external_id=item.external_id)
        case _:
            assert_never(item.content)
    return Shown(external_id=item.external_id or item.id, content=_without_forms(item.content))


def _without_forms(content: OutboundContent) -> OutboundContent:
    """Return content as it is shown here, where no button can open a form."""
    if not isinstance(content, CardContent):
        return content
    rows = (tuple(button for button in row if not button.opens_form) for row in content.rows)
    return replace(content, rows=tuple(row for row in rows if row))


def _reaction(item: OutboundItem, emoji: str) -> Shown | Removed:
    if item.reply_to is None:
        raise SendRejected("a reaction needs a message to stand on")
    external_id = f"reaction/{item.reply_to}"
    return Shown(external_id=external_id, content=item.content) if emoji else Removed(external_id=external_id)


def _copy(source: Path, into: Path, limit_bytes: int) -> int:
    """Copy a file of this machine, unless it is larger than the limit, and return its size."""
    try:
        with source.open("rb") as file:
            data = file.read(limit_bytes + 1)
    except (OSError, ValueError) as error:
        raise DownloadRefused(f"the file cannot be read: {type(error).__name__}") from error
    if len(data) > limit_bytes:
        raise DownloadRefused(f"it is larger than {limit_bytes} bytes")
    try:
        return into.write_bytes(data)
    except OSError as error:
        into.unlink(missing_ok=True)
        raise DownloadFailed(f"the file cannot be kept: {type(error).__name__}") from error


class _FeedReply:
    """Previews go straight to the viewers; the first one reports its id."""

    def __init__(self, channel: FeedChannel, address: Address, on_sent: SentCallback) -> None:
        self._channel = channel
        self._address = address
        self._on_sent = on_sent
        self._external_id = ""

    async def show(self, text: str) -> None:
        if not text.strip():
            return
        if not self._external_id:
            self._external_id = self._channel.new_external_id()
            await self._on_sent(self._external_id)
        self._channel.preview(self._address, Previewed(external_id=self._external_id, text=text))

    async def set_status(self, status: str) -> None:
        self._channel.preview(self._address, StatusSet(status=status))


if TYPE_CHECKING:
    _conforms: type[Channel] = FeedChannel
    _reply_conforms: type[Reply] = _FeedReply
