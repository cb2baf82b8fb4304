"""Who acted: people, bots, and chats in whose name somebody writes; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from channels.telegram.inbound_json import Json, id_of, label, part
from core.contracts.addresses import Sender

_GROUP_ANONYMOUS_BOT = 1087968824
"""The user that stands for anonymous administrators; telegram.constants.ChatID.ANONYMOUS_ADMIN, 22.8."""

_ANONYMOUS_ADMIN = "anonymous admin"

OWNER = "owner"
ADMINISTRATOR = "administrator"
"""Roles of people in a group, behind the channel's name; an owner is an administrator, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotAccount:
    """The bot itself, under the channel's name."""

    channel: str
    id: int
    username: str


def sender_of(message: Json, chat: Json, account: BotAccount) -> Sender | None:
    """Return who a message is from, or None: nobody, or the bot itself.

    An anonymous administrator is the group and no person. Telegram alone can say that somebody is
    one, by both the group as `sender_chat` and GroupAnonymousBot as the user; whoever has both is
    an administrator, and never the owner, though it may be them. No other chat in whose name
    something is written has a role, and the roles of people are not in a message: see
    `channels.telegram.administrators`.

    Raises:
        MalformedUpdate: The sender has no id.
    """
    if in_name_of := part(message, "sender_chat"):
        sender = _chat_as_sender(in_name_of, chat, account)
        is_group = id_of(in_name_of, "id") == chat.get("id")
        if is_group and part(message, "from").get("id") == _GROUP_ANONYMOUS_BOT:
            return replace(sender, roles=(f"{account.channel}:{ADMINISTRATOR}",))
        return sender
    return user_as_sender(part(message, "from"), chat, account) if message.get("from") is not None else None


def user_as_sender(user: Json, chat: Json, account: BotAccount) -> Sender | None:
    """Return a user of the platform as a sender, None for the bot itself.

    Raises:
        MalformedUpdate: The user has no id.
    """
    user_id = id_of(user, "id")
    if user_id == account.id:
        return None
    if user_id == _GROUP_ANONYMOUS_BOT:
        return _chat_as_sender(chat, chat, account)
    return Sender(
        identity=f"{account.channel}:{user_id}",
        name=name_of_user(user) or str(user_id),
        is_bot=user.get("is_bot") is True,
    )


def is_in_name_of_chat(message: Json) -> bool:
    """Whether nobody knows which person wrote it: an anonymous administrator, or a channel."""
    return bool(part(message, "sender_chat")) or part(message, "from").get("id") == _GROUP_ANONYMOUS_BOT


def name_of_user(user: Json) -> str:
    """Return how a person or bot is called."""
    return label(f"{label(user.get('first_name'))} {label(user.get('last_name'))}")


def name_of_chat(chat: Json) -> str:
    """Return how a chat is called."""
    return label(chat.get("title")) or label(chat.get("username")) or name_of_user(chat)


def _chat_as_sender(sender_chat: Json, chat: Json, account: BotAccount) -> Sender:
    """Return the chat in whose name something was done; no person's rights may go with it, so its id is negative."""
    chat_id = id_of(sender_chat, "id")
    name = _ANONYMOUS_ADMIN if chat_id == chat.get("id") else name_of_chat(sender_chat) or str(chat_id)
    return Sender(identity=f"{account.channel}:{-abs(chat_id)}", name=name)
