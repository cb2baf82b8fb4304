"""What a message says, to whom, and what it refers to; pure."""

from __future__ import annotations

import re

from channels.telegram.inbound_files import attachments, in_words, unsupported
from channels.telegram.inbound_json import Json, clean, field, id_if_any, label, part, parts
from channels.telegram.inbound_senders import BotAccount, is_in_name_of_chat, name_of_chat, name_of_user
from core.contracts.addresses import MessageBody, Quote

_NAMED_COMMAND = re.compile(r"/(?P<name>[A-Za-z0-9_]{1,32})@(?P<bot>[A-Za-z0-9_]+)")
_COMMAND = re.compile(r"/[A-Za-z0-9_]{1,32}(?=\s|$)")


def message_body(message: Json, account: BotAccount) -> MessageBody | None:
    """Return what a message says; None for another bot's command and for service messages.

    Talk in a group is addressed to the bot by its name, by a reply to it, or by a command; never
    when it is written in the name of a chat, because then nobody's rights can be looked at.

    Raises:
        MalformedUpdate: Something is of the wrong kind.
    """
    text = text_of(message, account)
    files = attachments(message)
    other = unsupported(message)
    if text is None or not (text or files or other):
        return None
    return MessageBody(
        text=text,
        attachments=files,
        addressed=_is_addressed(message, text, account),
        quote=_quote(message, account),
        album=label(message.get("media_group_id")) or None,
        forwarded_from=_origin(part(message, "forward_origin")),
        unsupported=other,
    )


def text_of(message: Json, account: BotAccount) -> str | None:
    """Return text or caption, with "/cmd@bot" as "/cmd"; None when it is a command for another bot.

    Raises:
        MalformedUpdate: It is no text.
    """
    text = _written(message)
    command = _NAMED_COMMAND.match(text)
    if command is None:
        return text
    if command["bot"].lower() != account.username.lower():
        return None
    return f"/{command['name']}{text[command.end() :]}"


def is_private(chat: Json) -> bool:
    """Whether a chat is one person's with the bot."""
    return chat.get("type") == "private"


def _written(message: Json) -> str:
    return clean(field(message, "text" if "text" in message else "caption", str, ""))


def _is_addressed(message: Json, text: str, account: BotAccount) -> bool:
    if is_in_name_of_chat(message):
        return False
    is_command = "forward_origin" not in message and _COMMAND.match(text)
    if is_private(part(message, "chat")) or is_command:
        return True
    return _replies_to_bot(message, account) or _mentions_bot(message, text, account)


def _replies_to_bot(message: Json, account: BotAccount) -> bool:
    replied = _replied(message)
    return part(replied, "from").get("id") == account.id


def _mentions_bot(message: Json, text: str, account: BotAccount) -> bool:
    """Whether the bot is named: by "@name", by "/cmd@name" anywhere, or by a mention that holds its id."""
    if any(
        entity.get("type") == "text_mention" and part(entity, "user").get("id") == account.id
        for entity in (*parts(message, "entities"), *parts(message, "caption_entities"))
    ):
        return True
    named = rf"(?:(?<!\w)|(?<!\w)/\w{{1,32}})@{re.escape(account.username)}\b"
    return bool(account.username) and re.search(named, text, re.IGNORECASE) is not None


def _replied(message: Json) -> Json:
    """Return the message that is replied to; empty for none.

    What is written in a topic without replying to anything comes as a reply to the topic's creation.
    """
    replied = part(message, "reply_to_message")
    opened_topic = message.get("is_topic_message") is True and replied.get("message_id") == message.get(
        "message_thread_id"
    )
    return {} if opened_topic or "forum_topic_created" in replied else replied


def _quote(message: Json, account: BotAccount) -> Quote | None:
    """Return what a message replies to: the marked part if there is one, else all of it."""
    marked = part(message, "quote").get("text")
    if replied := _replied(message):
        author = part(replied, "sender_chat")
        return _quoted(
            marked,
            replied,
            author=name_of_chat(author) if author else name_of_user(part(replied, "from")),
            by_agent=part(replied, "from").get("id") == account.id,
            message_id=id_if_any(replied, "message_id"),
        )
    if elsewhere := part(message, "external_reply"):
        origin = part(elsewhere, "origin")
        by_agent = part(origin, "sender_user").get("id") == account.id
        return _quoted(marked, elsewhere, author=_origin(origin), by_agent=by_agent, message_id=None)
    return None


def _quoted(marked: object, source: Json, *, author: str, by_agent: bool, message_id: int | None) -> Quote | None:
    said = marked if isinstance(marked, str) else source.get("text", source.get("caption"))
    text = clean(said) if isinstance(said, str) and said else in_words(source)
    external_id = None if message_id is None else str(message_id)
    return Quote(text=text, author=author, by_agent=by_agent, external_id=external_id) if text else None


def _origin(origin: Json) -> str:
    """Return in words where a message that was passed on comes from; empty where it was not passed on."""
    match origin.get("type"):
        case "user":
            return name_of_user(part(origin, "sender_user")) or "somebody"
        case "hidden_user":
            return label(origin.get("sender_user_name")) or "somebody"
        case "chat":
            return f"the group {name_of_chat(part(origin, 'sender_chat'))}".rstrip()
        case "channel":
            return f"the channel {name_of_chat(part(origin, 'chat'))}".rstrip()
        case None:
            return ""
        case _:
            return "somebody"
