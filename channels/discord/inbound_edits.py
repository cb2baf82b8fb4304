"""Changes of messages that are there: edits by people, and deletions; pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from channels.discord.inbound_json import Json, id_if_any, id_of, ids, instant_if_any
from channels.discord.inbound_senders import author_of
from channels.discord.inbound_text import Names, written
from channels.discord.places import BotAccount, Place
from core.contracts.addresses import DeleteBody, EditBody, Sender

STALE_AFTER = timedelta(hours=1)
"""Ours. What tells of an edit so old tells of something else: a pin, an embed, a thread at a message of long ago."""


def message_key(message_id: str) -> str:
    """Return the key of a new message."""
    return f"m/{message_id}"


def edit_of(
    message: Json, place: Place, account: BotAccount, names: Names, received_at: datetime
) -> tuple[EditBody, Sender, datetime] | None:
    """Return what somebody made of their message, who, and when; None for every other update of one.

    Embeds that unfold, pins and threads come as updates, too, without a time of an edit or with that of
    an earlier one, whose event has the same key. What bots change is no correction but how they write.

    Raises:
        MalformedEvent: The message, or its author, has no id.
    """
    edited_at = instant_if_any(message, "edited_timestamp")
    if edited_at is None or received_at - edited_at > STALE_AFTER:
        return None
    if not isinstance(message.get("content"), str) or not message.get("author"):
        return None
    sender = author_of(message, account)
    if sender is None or sender.is_bot:
        return None
    text = written(message, account, place.guild, names)
    return EditBody(message_key=message_key(id_of(message)), text=text), sender, edited_at


def edit_key(message_id: str, edited_at: datetime) -> str:
    """Return the key of an edit: a message is edited once at a time."""
    return f"e/{message_id}/{round(edited_at.timestamp() * 1_000_000)}"


def deletions_in(update: Json) -> tuple[tuple[str, DeleteBody], ...]:
    """Return the keys of deletions, one or many, and what was deleted."""
    single = id_if_any(update, "id")
    deleted = ids(update, "ids") if single is None else (single,)
    return tuple((f"d/{message_id}", DeleteBody(message_key=message_key(message_id))) for message_id in deleted)
