"""JSON of what people do on Telegram, as the Bot API sends it (core.telegram.org/bots/api, read 2026-11-30)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

BOT: Json = {"id": 900, "is_bot": True, "first_name": "Lodger", "username": "lodger_bot"}
ALICE: Json = {"id": 111, "is_bot": False, "first_name": "Alice", "last_name": "Smith"}
BOB: Json = {"id": 222, "is_bot": False, "first_name": "Bob"}
OTHER_BOT: Json = {"id": 333, "is_bot": True, "first_name": "Peer", "username": "peer_bot"}
ANONYMOUS: Json = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}

PRIVATE: Json = {"id": 111, "type": "private", "first_name": "Alice"}
GROUP: Json = {"id": -1001000000001, "type": "supergroup", "title": "Team"}
FORUM: Json = {**GROUP, "is_forum": True}
CHANNEL: Json = {"id": -1002000000002, "type": "channel", "title": "News"}

SENT_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
DATE = int(SENT_AT.timestamp())


def message(sender: Json | None = ALICE, chat: Json = PRIVATE, **fields: Any) -> Json:
    """Return a message; a field that is None is left out. Without a text it needs another content."""
    base: Json = {"message_id": 7, "from": sender, "chat": chat, "date": DATE, "text": "hello"}
    return {name: value for name, value in (base | fields).items() if value is not None}


def in_group(text: str | None = "hello", sender: Json | None = BOB, **fields: Any) -> Json:
    """Return a message of a group."""
    return message(sender, **{"chat": GROUP, "text": text, **fields})


def press(sender: Json = ALICE, data: str = "tok", **card: Any) -> Json:
    """Return a callback query on a message of the bot."""
    shown = message(BOT, **{"message_id": 9, "text": "Run?", **card})
    return {"id": "42", "from": sender, "message": shown, "data": data, "chat_instance": "1"}


def reaction(*new: Json, chat: Json = PRIVATE, **fields: Any) -> Json:
    """Return a change of Alice's reactions to message 9."""
    base: Json = {
        "chat": chat,
        "message_id": 9,
        "user": ALICE,
        "date": DATE,
        "old_reaction": [],
        "new_reaction": list(new),
    }
    return {name: value for name, value in (base | fields).items() if value is not None}


def emoji(character: str) -> Json:
    """Return a reaction with a plain emoji."""
    return {"type": "emoji", "emoji": character}


def membership(old: str, new: str, *, chat: Json = GROUP, sender: Json = ALICE, **new_fields: Any) -> Json:
    """Return a change of the bot's own membership."""
    return {
        "chat": chat,
        "from": sender,
        "date": DATE,
        "old_chat_member": {"user": BOT, "status": old},
        "new_chat_member": {"user": BOT, "status": new, **new_fields},
    }
