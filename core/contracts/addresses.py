"""Where messages come from and go to, and what arrives there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias


class Privacy(StrEnum):
    """Who can read an address, as its adapter states it."""

    DIRECT = "direct"
    PRIVATE_GROUP = "private_group"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One place where one conversation is held.

    `channel` is the adapter's name (`telegram`), `account` the bot account on it, `chat` the
    platform's chat id, `thread` a thread or topic inside it. The four together are the key.
    `space` is the server or workspace that the chat belongs to, where a platform admits whole ones.
    """

    channel: str
    account: str
    chat: str
    thread: str | None = None
    space: str | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Return the address as one string, unique over all platforms."""
        place = f"{self.channel}/{self.account}/{self.chat}"
        return place if self.thread is None else f"{place}/{self.thread}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who acted, as the platform says. `identity` is `<channel>:<platform id>`.

    `is_guest`: somebody of another organisation, or with less than a member's rights in this one.
    `roles` are the platform's own roles of theirs where they acted, each `<channel>:<role>`:
    `telegram:administrator`, `discord:<role id>`, `slack:<user group id>`.
    """

    identity: str
    name: str
    is_bot: bool = False
    is_guest: bool = False
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message; `handle` is what the adapter's `download` takes."""

    handle: str
    name: str
    media_type: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a message replies to: an earlier message, or the part of it that was marked."""

    text: str
    author: str
    by_agent: bool = False
    external_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody:
    """A new message."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    addressed: bool = True
    """False for group talk that is not meant for the agent."""
    quote: Quote | None = None
    album: str | None = None
    """Messages of one address with the same album were sent as one."""
    forwarded_from: str = ""
    unsupported: str = ""
    """What came with the message and cannot be taken in, in words for its sender: "a sticker"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditBody:
    """The text of an earlier message changed; `message_key` is that message's event key."""

    message_key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteBody:
    """An earlier message was deleted; `message_key` is that message's event key."""

    message_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionBody:
    """Somebody's reactions to a message changed; `message` is its external id.

    `emoji` holds all their reactions as they are now; empty: they took the last one back.
    """

    message: str
    emoji: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipBody:
    """The agent itself was let into the chat (`present`) or removed from it, by the sender."""

    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationBody:
    """The chat goes on under another id, `chat`; nothing can be sent to the old one any more."""

    chat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PressBody:
    """A button was pressed, or the form it opened was sent.

    `token` is what the button carried, `card` the message's external id; empty on a home screen.
    """

    token: str
    card: str
    acknowledge: str | None = None
    """What the adapter needs to answer the press, such as a callback query id."""
    values: tuple[tuple[str, str], ...] = ()
    """What was written into the form, as (field, text); empty for a press."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandBody:
    """A command by the platform's own means, answered to its giver alone; `text` is as it would be typed: `/status`."""

    text: str
    acknowledge: str | None = None
    """What the adapter needs to answer the command, as in `PressBody`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeBody:
    """The sender opened the agent's home screen."""


InboundBody: TypeAlias = (
    MessageBody
    | EditBody
    | DeleteBody
    | ReactionBody
    | PressBody
    | CommandBody
    | HomeBody
    | MembershipBody
    | MigrationBody
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundEvent:
    """One event of a platform, normalised.

    (`address.channel`, `address.account`, `key`) is the dedupe key: the same event delivered
    again, before or after a restart, has the same key.
    """

    address: Address
    key: str
    sender: Sender
    body: InboundBody
    privacy: Privacy
    sent_at: datetime
    external_id: str | None = None
    """The platform's id of the message itself, for replies and reactions."""


class ButtonStyle(StrEnum):
    """How a choice looks where the platform can show it."""

    NORMAL = "normal"
    GOOD = "good"
    DANGER = "danger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One choice of a card; `token` is short and opaque (at most 40 ASCII characters).

    A button that `opens_form` is left out where the platform has no forms.
    """

    token: str
    label: str
    style: ButtonStyle = ButtonStyle.NORMAL
    opens_form: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextContent:
    """Text in Markdown. `silent` posts without a notification where the platform can."""

    markdown: str
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CardContent:
    """Text with buttons: an approval, a question, a commit line.

    `text` is plain; `code` is shown verbatim in a fixed-width block and never interpreted.
    A card without buttons is a settled one.
    """

    text: str
    code: str = ""
    rows: tuple[tuple[Button, ...], ...] = ()
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file of this machine, by absolute path, with a plain caption. It is read when it is sent."""

    path: str
    name: str
    media_type: str
    caption: str = ""
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionContent:
    """The agent's one reaction to the message that the item's `reply_to` names; empty takes it back."""

    emoji: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Takes the message of the item's `external_id` away; one that is gone is taken away already."""


OutboundContent: TypeAlias = TextContent | CardContent | FileContent | ReactionContent | Removal


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundItem:
    """One message on its way out: a row of the outbox.

    With `external_id` set the delivery is an edit of that message, otherwise a new message.
    `id` is deterministic (`<turn>/<n>`), so that a platform that can deduplicate does.
    """

    id: str
    address: Address
    content: OutboundContent
    external_id: str | None = None
    reply_to: str | None = None
    attempts: int = field(default=0, compare=False)
