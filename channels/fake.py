"""A channel in memory: the contract without a platform, and with failures on demand."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

from channels.chunking import measure
from channels.contract import (
    Capabilities,
    Channel,
    Form,
    HomeScreen,
    HomeSection,
    Probe,
    Reply,
    SentCallback,
    Sink,
    TextUnit,
)
from core.contracts.addresses import (
    Address,
    Attachment,
    CardContent,
    CommandBody,
    FileContent,
    InboundEvent,
    OutboundItem,
    PressBody,
    ReactionContent,
    Removal,
    TextContent,
)
from core.contracts.clock import Clock, SystemClock
from core.contracts.errors import (
    ChannelDown,
    ChannelError,
    DownloadRefused,
    SendLimited,
    SendRejected,
    SendUnknown,
    StoreError,
    TextTooLong,
)

FAKE_CAPABILITIES = Capabilities(
    text_limit=2000,
    text_unit=TextUnit.CHARS,
    edits=True,
    buttons=True,
    edit_interval=timedelta(0),
    code_limit=1000,
    files=True,
    reactions=True,
    removals=True,
)

_RETRY_ACCEPT = timedelta(seconds=1)


FakeContent: TypeAlias = TextContent | CardContent | FileContent
"""What is a message of its own."""


@dataclass(slots=True)
class FakeMessage:
    """A message as people see it now; `versions` are the contents it had, oldest first.

    `data` is what its file held when it was sent.
    """

    external_id: str
    address: Address
    content: FakeContent
    item_id: str = ""
    versions: list[FakeContent] = field(default_factory=list)
    data: bytes = b""

    @property
    def text(self) -> str:
        """What can be read: a card's code and a file's name included."""
        match self.content:
            case TextContent(markdown=markdown):
                return markdown
            case CardContent(text=text, code=code):
                return f"{text}\n\n{code}" if code else text
            case FileContent(name=name, caption=caption):
                return f"{name}\n\n{caption}" if caption else name

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and tokens of the buttons, in their order."""
        rows = self.content.rows if isinstance(self.content, CardContent) else ()
        return {button.label: button.token for row in rows for button in row}


class FakeChannel:
    """Keeps everything it is given.

    `messages` is what people see, `reactions` the agent's by the message they stand on,
    `deliveries` what the outbox sent, `previews` and `statuses` what replies showed,
    `acknowledgements` the texts that pressers saw, `accepted` the keys of events that were durable
    before they were dropped here, `left` the groups that were left, `forms` what was opened, `homes`
    the screens by person. `files` holds, by handle, what `download` gives.
    """

    def __init__(
        self, name: str = "fake", *, capabilities: Capabilities = FAKE_CAPABILITIES, clock: Clock | None = None
    ) -> None:
        self.messages: dict[str, FakeMessage] = {}
        self.reactions: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self.left: list[Address] = []
        self.deliveries: list[OutboundItem] = []
        self.previews: list[str] = []
        self.statuses: list[str] = []
        self.acknowledgements: list[tuple[PressBody | CommandBody, str]] = []
        self.forms: list[tuple[PressBody, Form]] = []
        self.homes: dict[str, tuple[HomeSection, ...]] = {}
        self.accepted: list[str] = []
        self._name = name
        self._capabilities = capabilities
        self._clock: Clock = clock or SystemClock()
        self._events: deque[InboundEvent] = deque()
        self._arrived = asyncio.Event()
        self._failures: deque[ChannelError] = deque()
        self._download_failures: deque[ChannelError] = deque()
        self._leave_failures: deque[ChannelError] = deque()
        self._loses_next = False
        self._refusal: ChannelDown | None = None
        self._running = False
        self._ids = itertools.count(1)

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def push(self, event: InboundEvent) -> None:
        """Let an event arrive; it is offered until the sink accepts it."""
        self._events.append(event)
        self._arrived.set()

    def fail_next(self, *errors: ChannelError) -> None:
        """Let the next sends, edits and previews fail, each with one of `errors`, without effect."""
        self._failures.extend(errors)

    def fail_next_download(self, *errors: ChannelError) -> None:
        """Let the next downloads fail, each with one of `errors`."""
        self._download_failures.extend(errors)

    def fail_next_leave(self, *errors: ChannelError) -> None:
        """Let the next attempts to leave a group fail, each with one of `errors`."""
        self._leave_failures.extend(errors)

    def lose_next_answer(self) -> None:
        """Let the next send take effect and raise `SendUnknown`."""
        self._loses_next = True

    def refuse_token(self, detail: str = "the token is refused") -> None:
        """Let `run` and every later call raise `ChannelDown`."""
        self._refusal = ChannelDown(detail)
        self._arrived.set()

    def delete(self, external_id: str) -> None:
        """Delete a message, as a person can."""
        del self.messages[external_id]

    async def run(self, sink: Sink) -> None:
        self._running = True
        try:
            while True:
                self._raise_if_refused()
                if self._events:
                    await self._offer(self._events[0], sink)
                else:
                    self._arrived.clear()
                    await self._arrived.wait()
        finally:
            self._running = False

    async def _offer(self, event: InboundEvent, sink: Sink) -> None:
        try:
            await sink.accept(event)
        except StoreError:
            await self._clock.sleep(_RETRY_ACCEPT)
        else:
            self._events.popleft()
            self.accepted.append(event.key)

    def reply(self, address: Address, on_sent: SentCallback) -> AbstractAsyncContextManager[Reply]:
        return self._reply(address, on_sent)

    @asynccontextmanager
    async def _reply(self, address: Address, on_sent: SentCallback) -> AsyncIterator[Reply]:
        yield _FakeReply(self, address, on_sent)

    async def deliver(self, item: OutboundItem) -> str:
        external_id = await self._carry_out(item)
        self.deliveries.append(item)
        if self._loses_next:
            self._loses_next = False
            raise SendUnknown("the answer was lost")
        return external_id

    async def _carry_out(self, item: OutboundItem) -> str:
        match item.content:
            case TextContent() | CardContent():
                return self.put(item, item.content)
            case FileContent(path=path):
                data = await asyncio.to_thread(_read, Path(path))
                external_id = self.put(item, item.content)
                self.messages[external_id].data = data
                return external_id
            case ReactionContent(emoji=emoji):
                self._raise_if_scripted()
                return self._react(item.reply_to, emoji)
            case Removal():
                self._raise_if_scripted()
                return self._remove(item.external_id)
            case _:
                assert_never(item.content)

    def put(self, item: OutboundItem, content: FakeContent) -> str:
        """Make an item visible and return its message's id; raises what was scripted."""
        self._raise_if_scripted()
        content = self._fitted(content)
        message = self.messages.get(item.external_id or "")
        if message is None:
            external_id = str(next(self._ids))
            message = FakeMessage(external_id=external_id, address=item.address, content=content)
            self.messages[external_id] = message
        message.content, message.item_id = content, item.id
        message.versions.append(content)
        return message.external_id

    def _react(self, message: str | None, emoji: str) -> str:
        if message is None:
            raise SendRejected("a reaction needs a message to stand on")
        self.reactions.pop(message, None)
        if emoji:
            self.reactions[message] = emoji
        return f"reaction/{message}"

    def _remove(self, external_id: str | None) -> str:
        if external_id is None:
            raise SendRejected("a removal needs a message to take away")
        self.messages.pop(external_id, None)
        return external_id

    async def find(self, item: OutboundItem) -> str | None:
        return next((message.external_id for message in self.messages.values() if message.item_id == item.id), None)

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        self._raise_if_refused()
        if self._download_failures:
            raise self._download_failures.popleft()
        data = self.files.get(attachment.handle)
        if data is None:
            raise DownloadRefused("there is no such file")
        if len(data) > limit_bytes:
            raise DownloadRefused(f"it is larger than {limit_bytes} bytes")
        return await asyncio.to_thread(into.write_bytes, data)

    async def leave(self, address: Address) -> None:
        self._raise_if_refused()
        if self._leave_failures:
            raise self._leave_failures.popleft()
        self.left.append(address)

    async def acknowledge(self, asked: PressBody | CommandBody, text: str) -> None:
        self.acknowledgements.append((asked, text))

    async def open_form(self, press: PressBody, form: Form) -> None:
        if not self._capabilities.forms:
            raise SendRejected("no forms here")
        self.forms.append((press, form))

    async def show_home(self, person: str, sections: tuple[HomeSection, ...]) -> None:
        self.homes[person] = sections

    async def probe(self) -> Probe:
        detail = "running" if self._running else "not running"
        return Probe(healthy=self._running, detail=detail)

    def _fitted(self, content: FakeContent) -> FakeContent:
        limits = self._capabilities
        if isinstance(content, CardContent) and len(content.code) > limits.code_limit:
            content = replace(content, code=content.code[: limits.code_limit] + "… (cut)")
        if isinstance(content, CardContent) and not limits.forms:
            rows = (tuple(button for button in row if not button.opens_form) for row in content.rows)
            content = replace(content, rows=tuple(row for row in rows if row))
        match content:
            case TextContent(markdown=text) | CardContent(text=text):
                if measure(text, limits.text_unit) > limits.text_limit:
                    raise TextTooLong(f"longer than {limits.text_limit} {limits.text_unit}")
            case FileContent():
                pass
        return content

    def _raise_if_scripted(self) -> None:
        self._raise_if_refused()
        if self._failures:
            raise self._failures.popleft()

    def _raise_if_refused(self) -> None:
        if self._refusal is not None:
            raise self._refusal


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SendRejected(f"the file cannot be read: {type(error).__name__}") from error


class _FakeReply:
    """Shows at once; a failure that was scripted ends the previews as an unknown post does."""

    def __init__(self, channel: FakeChannel, address: Address, on_sent: SentCallback) -> None:
        self._channel = channel
        self._address = address
        self._on_sent = on_sent
        self._external_id: str | None = None
        self._ended = False

    async def show(self, text: str) -> None:
        if self._ended or not text.strip():
            return
        shown = text[: self._channel.capabilities.text_limit]
        content = TextContent(markdown=shown)
        item = OutboundItem(id="", address=self._address, content=content, external_id=self._external_id)
        try:
            external_id = self._channel.put(item, content)
        except SendLimited:
            return
        except ChannelError:
            self._ended = True
            return
        self._channel.previews.append(shown)
        if self._external_id is None:
            self._external_id = external_id
            await self._on_sent(external_id)

    async def set_status(self, status: str) -> None:
        self._channel.statuses.append(status)


if TYPE_CHECKING:
    _conforms: type[Channel] = FakeChannel
    _has_homes: type[HomeScreen] = FakeChannel
