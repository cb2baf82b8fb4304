"""From a Bot API update, as JSON, to the event it means; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from channels.telegram.limits import GENERAL_TOPIC
from core.contracts.addresses import (
    Address,
    Attachment,
    EditBody,
    InboundBody,
    InboundEvent,
    MessageBody,
    PressBody,
    Privacy,
    Sender,
)

_Json = Mapping[str, Any]
_T = TypeVar("_T")

_COMMAND = re.compile(r"/(?P<name>[A-Za-z0-9_]{1,32})@(?P<bot>[A-Za-z0-9_]+)")
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")

_FILE_KINDS = (
    ("document", "file", "application/octet-stream"),
    ("voice", "voice.ogg", "audio/ogg"),
    ("audio", "audio", "audio/mpeg"),
    ("video", "video.mp4", "video/mp4"),
    ("video_note", "video.mp4", "video/mp4"),
)
"""Field of a message, and name and media type where the platform gives none."""


class MalformedUpdate(ValueError):
    """An update that is not shaped as the Bot API documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotAccount:
    """The bot itself, under the channel's name."""

    channel: str
    id: int
    username: str


def parse_update(update: object, account: BotAccount, received_at: datetime) -> InboundEvent | None:
    """Return what happened, or None for what this channel does not listen to.

    Messages are keyed by chat and message id, so that an edit can name the message it changes;
    everything else by an id that Telegram gives once. Events of bots, of this bot itself, and
    posts in the name of a chat are not listened to.

    Args:
        update: One element of the result of getUpdates.
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


def _parse_message(update: _Json, account: BotAccount, _received_at: datetime) -> InboundEvent | None:
    message = _field(update, "message", dict)
    text = _own_command(_text(message), account)
    attachments = _attachments(message)
    if text is None or not (text or attachments):
        return None
    body = MessageBody(text=text, attachments=attachments, addressed=_is_addressed(message, text, account))
    return _event(_message_key(message), message, message, body, account)


def _parse_edit(update: _Json, account: BotAccount, _received_at: datetime) -> InboundEvent | None:
    message = _field(update, "edited_message", dict)
    text = _own_command(_text(message), account)
    if not text:
        return None
    body = EditBody(message_key=_message_key(message), text=text)
    dated = {**message, "date": message.get("edit_date", message.get("date"))}
    return _event(f"update/{_field(update, 'update_id', int)}", dated, message, body, account)


def _parse_press(update: _Json, account: BotAccount, received_at: datetime) -> InboundEvent | None:
    query = _field(update, "callback_query", dict)
    if "data" not in query or "message" not in query:
        return None  # a game, or a message sent through another chat's inline mode
    message = _field(query, "message", dict)
    query_id = _field(query, "id", str)
    body = PressBody(
        token=_field(query, "data", str), card=str(_field(message, "message_id", int)), acknowledge=query_id
    )
    # The message is the bot's own; who pressed stands beside it.
    dated = {**message, "from": query.get("from"), "date": received_at.timestamp(), "sender_chat": None}
    return _event(f"press/{query_id}", dated, message, body, account)


_PARSERS: Mapping[str, Callable[[_Json, BotAccount, datetime], InboundEvent | None]] = {
    "message": _parse_message,
    "edited_message": _parse_edit,
    "callback_query": _parse_press,
}


def _event(key: str, source: _Json, message: _Json, body: InboundBody, account: BotAccount) -> InboundEvent | None:
    """Build the event; `source` tells sender and time, `message` the place."""
    person = source.get("from")
    if person is None or source.get("sender_chat") is not None:
        return None
    sender = _sender(_field(source, "from", dict), account)
    if sender.is_bot:
        return None
    chat = _field(message, "chat", dict)
    return InboundEvent(
        address=Address(
            channel=account.channel,
            account=str(account.id),
            chat=str(_field(chat, "id", int)),
            thread=_thread(message),
        ),
        key=key,
        sender=sender,
        body=body,
        privacy=_privacy(chat),
        sent_at=_instant(source),
        external_id=str(_field(message, "message_id", int)),
    )


def _sender(person: _Json, account: BotAccount) -> Sender:
    person_id = _field(person, "id", int)
    names = (str(person.get(part, "")) for part in ("first_name", "last_name"))
    return Sender(
        identity=f"{account.channel}:{person_id}",
        name=_clean(" ".join(name for name in names if name)) or str(person_id),
        is_bot=person.get("is_bot") is True or person_id == account.id,
    )


def _message_key(message: _Json) -> str:
    chat = _field(message, "chat", dict)
    return f"message/{_field(chat, 'id', int)}/{_field(message, 'message_id', int)}"


def _thread(message: _Json) -> str | None:
    """Return the topic; a plain reply also carries a thread id, but nothing can be sent there."""
    if message.get("is_topic_message") is not True:
        return None
    thread = _field(message, "message_thread_id", int)
    return None if thread == GENERAL_TOPIC else str(thread)


def _privacy(chat: _Json) -> Privacy:
    if chat.get("type") == "private":
        return Privacy.DIRECT
    return Privacy.PUBLIC if chat.get("username") else Privacy.PRIVATE_GROUP


def _own_command(text: str, account: BotAccount) -> str | None:
    """Return `text` with "/cmd@bot" as "/cmd"; None when it is a command for another bot."""
    command = _COMMAND.match(text)
    if command is None:
        return text
    if command["bot"].lower() != account.username.lower():
        return None
    return f"/{command['name']}{text[command.end() :]}"


def _is_addressed(message: _Json, text: str, account: BotAccount) -> bool:
    if _privacy(_field(message, "chat", dict)) is Privacy.DIRECT or text.startswith("/"):
        return True
    replied = message.get("reply_to_message")
    author = replied.get("from") if isinstance(replied, dict) else None
    if isinstance(author, dict) and author.get("id") == account.id:
        return True
    return re.search(rf"(?<!\w)@{re.escape(account.username)}\b", text, re.IGNORECASE) is not None


def _attachments(message: _Json) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    sizes = message.get("photo")
    if isinstance(sizes, list) and sizes and isinstance(sizes[-1], dict):
        found.append(_attachment(sizes[-1], "photo.jpg", "image/jpeg"))  # the last size is the largest
    for kind, name, media_type in _FILE_KINDS:
        if kind in message:
            found.append(_attachment(_field(message, kind, dict), name, media_type))
    return tuple(found)


def _attachment(file: _Json, name: str, media_type: str) -> Attachment:
    size = file.get("file_size")
    return Attachment(
        handle=_field(file, "file_id", str),
        name=_clean(str(file.get("file_name") or name)),
        media_type=str(file.get("mime_type") or media_type),
        size_bytes=size if isinstance(size, int) else None,
    )


def _text(message: _Json) -> str:
    return _clean(_field(message, "text" if "text" in message else "caption", str, ""))


def _clean(text: str) -> str:
    """Return `text` as valid Unicode without NUL, as every store and model wants it."""
    return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def _instant(source: _Json) -> datetime:
    try:
        return datetime.fromtimestamp(float(source["date"]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise MalformedUpdate(f"no usable date: {source.get('date')!r}") from error


def _field(source: _Json, name: str, kind: type[_T], default: _T | None = None) -> _T:
    value = source.get(name, default)
    if not isinstance(value, kind):
        raise MalformedUpdate(f"{name!r} is no {kind.__name__}")
    return value
