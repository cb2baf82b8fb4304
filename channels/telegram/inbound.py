"""From a Bot API update, as JSON, to the event it means; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from channels.telegram.inbound_files import attachments
from channels.telegram.inbound_json import Json, MalformedUpdate, field, id_if_any, id_of, instant, label, part, parts
from channels.telegram.inbound_message import is_private, message_body, text_of
from channels.telegram.inbound_senders import BotAccount, is_in_name_of_chat, sender_of, user_as_sender
from channels.telegram.limits import GENERAL_TOPIC
from core.contracts.addresses import (
    Address,
    EditBody,
    InboundBody,
    InboundEvent,
    MembershipBody,
    MigrationBody,
    PressBody,
    Privacy,
    ReactionBody,
    Sender,
)

_PRESENT = frozenset({"creator", "administrator", "member"})


def parse_update(update: object, account: BotAccount, received_at: datetime) -> InboundEvent | None:
    """Return what happened, or None for what this channel does not listen to.

    Messages are keyed by chat and message id, so that an edit can name the message it changes; a
    migration by both ids of the chat, because it is told in both; everything else by an id that
    Telegram gives once. What this bot itself does is not listened to, nor are posts of channels.

    Args:
        update: One element of the result of getUpdates, or what a webhook was called with.
        account: Whose update it is.
        received_at: Stands for the time of presses, which carry none.

    Raises:
        MalformedUpdate: Something is missing or of the wrong kind.
    """
    if not isinstance(update, dict):
        raise MalformedUpdate("no JSON object")
    for kind, parse in _PARSERS.items():
        if kind in update:
            return parse(update, account, received_at)
    return None


def update_id_of(update: object) -> int | None:
    """Return an update's number, None where it has none: they rise by one with each update of a bot."""
    return id_if_any(update, "update_id") if isinstance(update, dict) else None


def _parse_message(update: Json, account: BotAccount, _received_at: datetime) -> InboundEvent | None:
    message = field(update, "message", dict)
    if "migrate_to_chat_id" in message or "migrate_from_chat_id" in message:
        return _migration(message, account)
    body = message_body(message, account)
    return None if body is None else _spoken(_message_key(message), message, body, account)


def _parse_edit(update: Json, account: BotAccount, _received_at: datetime) -> InboundEvent | None:
    message = field(update, "edited_message", dict)
    text = text_of(message, account)
    if text is None or not (text or attachments(message)):
        return None  # a live location that moved, a poll that was voted in
    body = EditBody(message_key=_message_key(message), text=text)
    return _spoken(_update_key(update), message, body, account, "edit_date" if "edit_date" in message else "date")


def _parse_press(update: Json, account: BotAccount, received_at: datetime) -> InboundEvent | None:
    query = field(update, "callback_query", dict)
    if "data" not in query or "message" not in query:
        return None  # a game, or a message sent through another chat's inline mode
    message = field(query, "message", dict)
    sender = user_as_sender(field(query, "from", dict), part(message, "chat"), account)
    if sender is None or sender.is_bot or is_in_name_of_chat(query):
        return None  # only a person's press can decide anything
    query_id = field(query, "id", str)
    body = PressBody(token=field(query, "data", str), card=str(id_of(message, "message_id")), acknowledge=query_id)
    return _event(f"press/{query_id}", message, sender, body, account, received_at)


def _parse_reaction(update: Json, account: BotAccount, _received_at: datetime) -> InboundEvent | None:
    reaction = field(update, "message_reaction", dict)
    if "user" not in reaction:
        return None  # in the name of a chat: nobody's
    sender = user_as_sender(field(reaction, "user", dict), part(reaction, "chat"), account)
    field(reaction, "new_reaction", list)
    emoji = tuple(_emoji(one) for one in parts(reaction, "new_reaction"))
    body = ReactionBody(message=str(id_of(reaction, "message_id")), emoji=emoji)
    if sender is None:
        return None
    return _event(_update_key(update), reaction, sender, body, account, instant(reaction))


def _parse_membership(update: Json, account: BotAccount, _received_at: datetime) -> InboundEvent | None:
    change = field(update, "my_chat_member", dict)
    chat = field(change, "chat", dict)
    sender = user_as_sender(field(change, "from", dict), chat, account)
    present = _is_present(field(change, "new_chat_member", dict))
    if present is None:
        raise MalformedUpdate("'new_chat_member' has no status")
    if sender is None or present is _is_present(part(change, "old_chat_member")) or chat.get("type") == "channel":
        return None  # its own doing, other rights in a chat it was and is in, or no chat to talk in
    body = MembershipBody(present=present)
    return _event(_update_key(update), change, sender, body, account, instant(change))


_PARSERS: Mapping[str, Callable[[Json, BotAccount, datetime], InboundEvent | None]] = {
    "message": _parse_message,
    "edited_message": _parse_edit,
    "callback_query": _parse_press,
    "message_reaction": _parse_reaction,
    "my_chat_member": _parse_membership,
}


def _migration(message: Json, account: BotAccount) -> InboundEvent:
    """Return that a group goes on under another id; both chats tell it, and it is the same event."""
    chat = field(message, "chat", dict)
    here = id_of(chat, "id")
    moved = "migrate_to_chat_id" in message
    old, new = (here, id_of(message, "migrate_to_chat_id")) if moved else (id_of(message, "migrate_from_chat_id"), here)
    nobody = Sender(identity=f"{account.channel}:{old}", name=label(chat.get("title")) or str(old))
    return InboundEvent(
        address=Address(channel=account.channel, account=str(account.id), chat=str(old)),
        key=f"migration/{old}/{new}",
        sender=sender_of(message, chat, account) or nobody,
        body=MigrationBody(chat=str(new)),
        privacy=_privacy(chat),
        sent_at=instant(message),
    )


def _spoken(
    key: str, message: Json, body: InboundBody, account: BotAccount, dated: str = "date"
) -> InboundEvent | None:
    """Return the event of a message, unless it is from nobody or from the bot itself."""
    sender = sender_of(message, field(message, "chat", dict), account)
    return None if sender is None else _event(key, message, sender, body, account, instant(message, dated))


def _event(
    key: str, place: Json, sender: Sender, body: InboundBody, account: BotAccount, sent_at: datetime
) -> InboundEvent:
    """Build the event; `place` holds the chat, and the message's id if it is about a message."""
    chat = field(place, "chat", dict)
    return InboundEvent(
        address=Address(
            channel=account.channel, account=str(account.id), chat=str(id_of(chat, "id")), thread=_thread(place)
        ),
        key=key,
        sender=sender,
        body=body,
        privacy=_privacy(chat),
        sent_at=sent_at,
        external_id=str(id_of(place, "message_id")) if "message_id" in place else None,
    )


def _message_key(message: Json) -> str:
    return f"message/{id_of(field(message, 'chat', dict), 'id')}/{id_of(message, 'message_id')}"


def _update_key(update: Json) -> str:
    return f"update/{id_of(update, 'update_id')}"


def _thread(message: Json) -> str | None:
    """Return the topic; a plain reply also carries a thread id, but nothing can be sent there."""
    if message.get("is_topic_message") is not True:
        return None
    thread = id_of(message, "message_thread_id")
    return None if thread == GENERAL_TOPIC else str(thread)


def _privacy(chat: Json) -> Privacy:
    if is_private(chat):
        return Privacy.DIRECT
    return Privacy.PUBLIC if chat.get("username") else Privacy.PRIVATE_GROUP


def _is_present(member: Json) -> bool | None:
    """Return whether the bot is in the chat in that state; None where no state is given."""
    status = member.get("status")
    if not isinstance(status, str):
        return None
    return status in _PRESENT or (status == "restricted" and member.get("is_member") is True)


def _emoji(reaction: Json) -> str:
    """Return a reaction as text; emoji that somebody drew have a number only."""
    match reaction.get("type"):
        case "emoji":
            return label(reaction.get("emoji"))
        case "custom_emoji":
            return f"custom emoji {label(reaction.get('custom_emoji_id'))}"
        case "paid":
            return "\N{WHITE MEDIUM STAR}"
        case _:
            return "another reaction"
