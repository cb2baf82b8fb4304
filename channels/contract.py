"""What every channel promises; adapters draw and decide nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from core.contracts.addresses import (
    Address,
    Attachment,
    CardContent,
    CommandBody,
    InboundEvent,
    OutboundItem,
    PressBody,
)


class TextUnit(StrEnum):
    """What a platform counts when it limits a text."""

    CHARS = "chars"
    UTF16 = "utf16"
    BYTES = "bytes"
    """Of UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do, as data.

    `text_limit` counts `text_unit`s of one message. `edits` false: no previews, no card updates.
    `edit_interval` is the shortest time between two edits in one chat. `code_limit` bounds the
    verbatim block of a card; longer code is cut there with a visible mark. `lookup` says whether
    `find` can tell if a send of unknown outcome took effect. `files`, `reactions` and `removals`
    say which contents `deliver` takes beside text and cards.
    """

    text_limit: int
    text_unit: TextUnit
    edits: bool
    buttons: bool
    edit_interval: timedelta
    code_limit: int
    lookup: bool = False
    files: bool = False
    reactions: bool = False
    removals: bool = False
    forms: bool = False
    is_installed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """When the newest event of an address that was accepted was sent."""

    address: Address
    sent_at: datetime


class Sink(Protocol):
    """Where a channel hands its events. May be called concurrently."""

    async def accept(self, event: InboundEvent) -> None:
        """Commit the event; when this returns it is durable and the platform may be told so.

        An event with a known key is accepted again without any effect.

        Raises:
            StoreError: It could not be stored; do not acknowledge it.
        """
        ...

    async def marks(self, channel: str, account: str) -> tuple[Mark, ...]:
        """Return where each address of an account stands; a channel that was away asks its platform for what followed.

        Raises:
            StoreError: They could not be read.
        """
        ...


class Reply(Protocol):
    """The preview of one answer while a turn runs. One writer; the latest text wins."""

    async def show(self, text: str) -> None:
        """Make `text` (Markdown, the whole preview so far) the visible one soon.

        Returns without waiting for the platform; texts that come too fast are skipped. Never
        raises for a platform failure: the final text is delivered by the outbox.
        """
        ...

    async def set_status(self, status: str) -> None:
        """Show what the agent does (`typing` where a platform knows no more); empty clears it."""
        ...


SentCallback: TypeAlias = Callable[[str], Awaitable[None]]
"""Called once with the external id of a preview, right after its first send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Whether a channel is really receiving. `detail` says what is wrong and what to do; no token."""

    healthy: bool
    detail: str


class MenuScope(StrEnum):
    """Where a platform offers a menu of commands."""

    DIRECT = "direct"
    GROUP = "group"
    OWNERS = "owners"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandMenu:
    """The commands that a platform offers in one kind of place, as (name, help) without a slash.

    `identities` are the people that `OWNERS` means.
    """

    scope: MenuScope
    commands: tuple[tuple[str, str], ...]
    identities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One text of a form. `value` is what stands there at first; `lines` is how high it is drawn."""

    name: str
    label: str
    value: str = ""
    lines: int = 1
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Texts that somebody is asked for after a press; sent, they come back as a `PressBody` with `token`.

    At most 5 fields; `title` has at most 24 characters, a label 45.
    """

    token: str
    title: str
    fields: tuple[FormField, ...]
    send_label: str = "Send"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeSection:
    """One part of a home screen: a heading, and cards below it; `text` in Markdown says what there is."""

    title: str
    text: str = ""
    cards: tuple[CardContent, ...] = ()


class HomeScreen(Protocol):
    """A channel where each person has a screen of the agent's own."""

    async def show_home(self, person: str, sections: tuple[HomeSection, ...]) -> None:
        """Draw the screen of one person, by the platform's id of theirs; what is too much is left out with a mark.

        Raises:
            ChannelError: It could not be drawn.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was tried for real. `detail` says what was seen, `fix` what to do; no token."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


class Diagnosable(Protocol):
    """A channel that can prove itself end to end."""

    async def diagnose(self) -> tuple[Finding, ...]:
        """Try everything the channel needs; takes a few seconds, changes nothing, never raises."""
        ...


Asgi: TypeAlias = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]
"""An ASGI application."""


class Webhook(Protocol):
    """A channel that its platform calls."""

    @property
    def webhook(self) -> Asgi | None:
        """Return what answers the platform's calls while `run` runs; None: the channel fetches itself."""
        ...


class Channel(Protocol):
    """One connection to one platform account."""

    @property
    def name(self) -> str:
        """Return the channel's name as in addresses and the configuration."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Return what the platform can do; the same value every time."""
        ...

    async def run(self, sink: Sink) -> None:
        """Connect and hand events to `sink` until cancelled; recovers from every outage itself.

        An event is acknowledged to the platform only after `sink.accept` returned. Own messages
        are never handed over.

        Raises:
            ChannelDown: The platform refuses the token: trying again cannot help.
        """
        ...

    def reply(self, address: Address, on_sent: SentCallback) -> AbstractAsyncContextManager[Reply]:
        """Open the preview of one answer; typing or status is bound to the block.

        After the block no preview call of it is under way or will start, so that a delivery
        of the final text cannot be overtaken. A preview that was posted stays.
        """
        ...

    async def deliver(self, item: OutboundItem) -> str:
        """Send or edit and return the external id. Waits for the chat's pace.

        "Not modified" counts as delivered. An edit of a message that is gone is a new send.

        Raises:
            TextTooLong, SendRejected, SendLimited, SendUnknown, ChatMoved, ChannelDown: see
                `core.contracts.errors`. Only `SendUnknown` leaves the outcome open.
        """
        ...

    async def find(self, item: OutboundItem) -> str | None:
        """Look for an item whose outcome is unknown; None where it is not there or cannot be known."""
        ...

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        """Write a file that came with a message to `into`, which is new, and return its size.

        It is streamed; what fails leaves no file. No token is sent to another host than the platform's.

        Raises:
            DownloadRefused: It cannot be had: larger than `limit_bytes`, gone, not what it says it is.
            DownloadFailed: It could not be had now.
        """
        ...

    async def leave(self, address: Address) -> None:
        """Leave the group of that address; being out of it already is no failure.

        Raises:
            ChannelError: It could not be left.
        """
        ...

    async def acknowledge(self, asked: PressBody | CommandBody, text: str) -> None:
        """Answer a press or a command with a notice that only whoever gave it sees; never raises.

        The first call ends the platform's waiting; an empty text says nothing. What a command
        answers may be long Markdown.
        """
        ...

    async def open_form(self, press: PressBody, form: Form) -> None:
        """Answer a press with a form; it is acknowledged by that. See `Capabilities.forms`.

        Raises:
            ChannelError: It could not be shown: too late, or this platform has no forms.
        """
        ...

    async def probe(self) -> Probe:
        """Return whether the channel is really receiving now."""
        ...
