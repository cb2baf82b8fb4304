"""What a fake Telegram remembers and refuses: chats, messages, updates; no HTTP here.

Limits and wordings follow core.telegram.org/bots/api as read on 2026-11-30.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

TEXT_LIMIT_UTF16 = 4096
CALLBACK_DATA_LIMIT_BYTES = 64
CALLBACK_ANSWER_LIMIT_CHARS = 200
BOT_USERNAME = "lodger_bot"


class Refusal(Exception):
    """The Bot API's answer to a call that it does not carry out."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        self.status = status
        self.description = description
        self.parameters = parameters
        super().__init__(description)


def bad_request(description: str) -> Refusal:
    return Refusal(400, f"Bad Request: {description}")


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass
class Message:
    """One message as people see it now; `versions` are the texts it had, oldest first."""

    id: int
    text: str
    from_bot: bool
    thread: int | None = None
    entities: list[dict[str, Any]] = field(default_factory=list)
    keyboard: list[list[dict[str, Any]]] = field(default_factory=list)
    reply_to: int | None = None
    silent: bool = False
    versions: list[str] = field(default_factory=list)

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and callback data, in the order of the keyboard."""
        return {button["text"]: button["callback_data"] for row in self.keyboard for button in row}


@dataclass
class Chat:
    """One chat; `flooded_until` and `last_call_at` are seconds of the server's clock."""

    id: int
    kind: str = "private"
    title: str = ""
    messages: dict[int, Message] = field(default_factory=dict)
    topics: set[int] = field(default_factory=set)
    blocked: bool = False
    flooded_until: float = 0.0
    last_call_at: float = -math.inf


@dataclass
class Query:
    """A button press that waits for its answer."""

    id: str
    pressed_at: float
    answer: str | None = None


class Chats:
    """The messages of all chats, under Telegram's rules."""

    def __init__(self, bot_id: int) -> None:
        self.bot_id = bot_id
        self.by_id: dict[int, Chat] = {}
        self._message_ids = itertools.count(1)

    def open(self, chat_id: int, kind: str = "private", title: str = "") -> Chat:
        return self.by_id.setdefault(chat_id, Chat(id=chat_id, kind=kind, title=title))

    def find(self, params: dict[str, Any]) -> Chat:
        chat = self.by_id.get(_integer(params.get("chat_id")))
        if chat is None:
            raise bad_request("chat not found")
        if chat.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        return chat

    def add(self, chat: Chat, **fields: Any) -> Message:
        message = Message(id=next(self._message_ids), **fields)
        message.versions.append(message.text)
        chat.messages[message.id] = message
        return message

    def send(self, chat: Chat, params: dict[str, Any]) -> Message:
        """Carry out sendMessage."""
        text, entities, keyboard = _content(params)
        thread = params.get("message_thread_id")
        if thread is not None and _integer(thread) not in chat.topics:
            raise bad_request("message thread not found")
        return self.add(
            chat,
            text=text,
            from_bot=True,
            thread=None if thread is None else _integer(thread),
            entities=entities,
            keyboard=keyboard,
            reply_to=_reply_target(chat, params.get("reply_parameters") or {}),
            silent=bool(params.get("disable_notification")),
        )

    def edit(self, chat: Chat, params: dict[str, Any]) -> Message:
        """Carry out editMessageText; without a keyboard in the call the old one goes."""
        message = chat.messages.get(_integer(params.get("message_id")))
        if message is None:
            raise bad_request("message to edit not found")
        if not message.from_bot:
            raise bad_request("message can't be edited")
        text, entities, keyboard = _content(params)
        if (text, entities, keyboard) == (message.text, message.entities, message.keyboard):
            raise bad_request(
                "message is not modified: specified new message content and reply markup are exactly the same"
                " as a current content and reply markup of the message"
            )
        message.text, message.entities, message.keyboard = text, entities, keyboard
        message.versions.append(text)
        return message

    def delete(self, chat: Chat, params: dict[str, Any]) -> bool:
        """Carry out deleteMessage."""
        if chat.messages.pop(_integer(params.get("message_id")), None) is None:
            raise bad_request("message to delete not found")
        return True

    def as_json(self, chat: Chat, message: Message, sender: dict[str, Any], date: int) -> dict[str, Any]:
        """Return the message as the Bot API shows it."""
        shown: dict[str, Any] = {
            "message_id": message.id,
            "from": sender,
            "chat": {"id": chat.id, "type": chat.kind, **({"title": chat.title} if chat.title else {})},
            "date": date,
            "text": message.text,
        }
        if message.thread is not None:
            shown |= {"message_thread_id": message.thread, "is_topic_message": True}
        if message.keyboard:
            shown["reply_markup"] = {"inline_keyboard": message.keyboard}
        if message.entities:
            shown["entities"] = message.entities
        return shown


def charge(chat: Chat, now: float, min_interval: float) -> None:
    """Count one message or edit against the chat's pace.

    Raises:
        Refusal: 429 while the chat is flooded, or when the last call is too recent.
    """
    refuse_while_flooded(chat, now)
    _refuse_until(chat.last_call_at + min_interval, now)
    chat.last_call_at = now


def refuse_while_flooded(chat: Chat, now: float) -> None:
    """Refuse any call to a chat that was told to wait."""
    _refuse_until(chat.flooded_until, now)


def _refuse_until(allowed_at: float, now: float) -> None:
    if allowed_at > now:
        retry_after = math.ceil(allowed_at - now)
        raise Refusal(429, f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)


def _integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise bad_request("chat_id is empty") from None


def _content(params: dict[str, Any]) -> tuple[str, list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Check what a message consists of; the text comes back trimmed, as the platform does."""
    text = str(params.get("text", "")).strip()
    if not text:
        raise bad_request("message text is empty")
    if utf16_units(text) > TEXT_LIMIT_UTF16:
        raise bad_request("message is too long")
    entities = params.get("entities") or []
    for entity in entities:
        _check_entity(text, entity)
    markup = params.get("reply_markup") or {}
    keyboard = markup.get("inline_keyboard") or []
    for button in itertools.chain.from_iterable(keyboard):
        size = len(str(button.get("callback_data", "")).encode())
        if not 1 <= size <= CALLBACK_DATA_LIMIT_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
        if not button.get("text"):
            raise bad_request("can't parse inline keyboard button: text is empty")
    return text, entities, keyboard


def _check_entity(text: str, entity: dict[str, Any]) -> None:
    start, end = entity["offset"], entity["offset"] + entity["length"]
    raw = text.encode("utf-16-le", "surrogatepass")
    if start < 0 or end > len(raw) // 2:
        raise bad_request(f"entity beginning at UTF-16 offset {start} ends after the end of the text")
    for edge in (start, end):
        if edge * 2 < len(raw) and 0xDC00 <= int.from_bytes(raw[edge * 2 : edge * 2 + 2], "little") <= 0xDFFF:
            raise bad_request(f"entity at UTF-16 offset {start} begins or ends inside a character")


def _reply_target(chat: Chat, reply: dict[str, Any]) -> int | None:
    target = reply.get("message_id")
    if target is None:
        return None
    if _integer(target) in chat.messages:
        return _integer(target)
    if reply.get("allow_sending_without_reply"):
        return None
    raise bad_request("message to be replied not found")
