"""Files that came with messages, as this machine keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.contracts.ids import ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttachment:
    """One file of a message, in the message's order of files.

    `path` is absolute, inside the conversation's own folder; empty when the file was not taken,
    and then `refusal` says why, for its sender and for the model.
    """

    id: str
    conversation_id: ConversationId
    inbox_id: int
    position: int
    name: str
    media_type: str
    size_bytes: int
    path: str
    created_at: datetime
    refusal: str = ""


class AttachmentStore(Protocol):
    """Attachments by the inbox row they came with. One transaction each; see `core.contracts.store`."""

    async def add_attachments(self, attachments: Sequence[StoredAttachment]) -> None:
        """Store them; one with a known (inbox id, position) is left as it is."""
        ...

    async def attachments_of(self, inbox_ids: Sequence[int]) -> tuple[StoredAttachment, ...]:
        """Return the attachments of messages, by message and position."""
        ...
