"""Files that came with messages, or that a tool showed, as this machine keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from core.contracts.ids import ConversationId


class LeftOut(StrEnum):
    """Why models are not given an image of their conversation any more, for good."""

    GONE = "gone"
    """Its file is no longer kept."""
    TOO_LARGE = "too_large"
    """A request was too large with it."""
    REFUSED = "refused"
    """The model's provider did not take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttachment:
    """One file of a message, in the message's order of files; without `inbox_id`, an image that a tool showed.

    `path` is absolute, inside the conversation's own folder; empty when the file was not taken,
    and then `refusal` says why, for its sender and for the model. Retention may have deleted it.
    """

    id: str
    conversation_id: ConversationId
    inbox_id: int | None
    position: int
    name: str
    media_type: str
    size_bytes: int
    path: str
    created_at: datetime
    refusal: str = ""
    transcript: str = ""
    """What was said in a recording, masked."""
    unheard: str = ""
    """Why a recording has no transcript, for its sender and for the model. Neither: not listened to yet."""
    left_out: LeftOut | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingImage:
    """An image that cannot be sent. `recorded`: the store knows, so that earlier requests did without it too."""

    why: LeftOut
    recorded: bool


class AttachmentStore(Protocol):
    """Attachments, mostly by the inbox row they came with. One transaction each; see `core.contracts.store`."""

    async def add_attachments(self, attachments: Sequence[StoredAttachment]) -> None:
        """Store them; one with a known (inbox id, position) is left as it is."""
        ...

    async def attachments_of(self, inbox_ids: Sequence[int]) -> tuple[StoredAttachment, ...]:
        """Return the attachments of messages, by message and position."""
        ...

    async def attachments(self, attachment_ids: Sequence[str]) -> tuple[StoredAttachment, ...]:
        """Return those of these ids that exist, by id."""
        ...

    async def set_transcript(self, attachment_id: str, *, transcript: str = "", unheard: str = "") -> None:
        """Record what was heard in a recording, or why nothing was; done once, it stays."""
        ...

    async def leave_out(self, attachment_ids: Sequence[str], why: LeftOut) -> None:
        """Record that these images are not sent any more; one that was left out before stays as it is."""
        ...


class ImageShelf(Protocol):
    """The images that messages hold, by attachment id. May be used concurrently.

    Every operation may raise `StoreUnavailable`, see `core.contracts.store`.
    """

    async def read(self, attachment_id: str) -> bytes | None:
        """Return an image, the same bytes every time; None where its file is no longer kept."""
        ...

    async def missing(self, attachment_ids: Sequence[str]) -> Mapping[str, MissingImage]:
        """Return those of these images that cannot be sent, by id."""
        ...

    async def leave_out(self, attachment_ids: Sequence[str], why: LeftOut) -> None:
        """See `AttachmentStore.leave_out`; may raise `StorageFull` too."""
        ...
