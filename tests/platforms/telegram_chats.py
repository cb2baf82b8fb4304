"""What a fake Telegram remembers and refuses: chats and messages; no HTTP here.

Limits and wordings follow core.telegram.org/bots/api as read on 2026-11-30.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.telegram_content import Content, Entities, Keyboard, caption_content, text_content
from tests.platforms.telegram_files import Files, StoredFile
from tests.platforms.telegram_members import ADMINISTERING, member, person
from tests.platforms.telegram_refusals import Refusal, bad_request, integer

BOT_USERNAME = "lodger_bot"
CALLBACK_ANSWER_LIMIT_CHARS = 200
DELETABLE_FOR = timedelta(hours=48)
REACTIONS = frozenset(
    "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍🤗🫡"
)

_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)


@dataclass
class Message:
    """One message as people see it now; `versions` are the texts it had, oldest first.

    `text` is the caption where there is a `file`; `reactions` are those of the bot.
    """

    id: int
    text: str
    from_bot: bool
    sent_at: datetime
    thread: int | None = None
    entities: Entities = field(default_factory=list)
    keyboard: Keyboard = field(default_factory=list)
    reply_to: int | None = None
    silent: bool = False
    file: StoredFile | None = None
    reactions: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and callback data, in the order of the keyboard."""
        return {button["text"]: button["callback_data"] for row in self.keyboard for button in row}


@dataclass
class Chat:
    """One chat; `flooded_until` and `last_call_at` are seconds of the server's clock.

    `barred` is why the bot may not write there, in Telegram's words; `standings` are those of whoever
    is more or less than a member, such as `creator`, by user id.
    """

    id: int
    kind: str = "private"
    title: str = ""
    messages: dict[int, Message] = field(default_factory=dict)
    topics: set[int] = field(default_factory=set)
    is_forum: bool = False
    barred: str = ""
    standings: dict[int, str] = field(default_factory=dict)
    moved_to: int | None = None
    flooded_until: float = 0.0
    last_call_at: float = -math.inf

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": self.id, "type": self.kind}
        if self.title:
            shown["title"] = self.title
        if self.is_forum:
            shown["is_forum"] = True
        return shown


class Chats:
    """The messages of all chats, under Telegram's rules."""

    def __init__(self, clock: Clock, files: Files) -> None:
        self.by_id: dict[int, Chat] = {}
        self._clock = clock
        self._files = files
        self._message_ids = itertools.count(1)

    def open(self, chat_id: int, kind: str = "private", title: str = "") -> Chat:
        return self.by_id.setdefault(chat_id, Chat(id=chat_id, kind=kind, title=title))

    def find(self, params: dict[str, Any]) -> Chat:
        """Return the chat that a call is for, if the bot can do anything there."""
        chat = self.by_id.get(integer(params.get("chat_id")))
        if chat is None:
            raise bad_request("chat not found")
        if chat.moved_to is not None:
            raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to)
        if chat.barred:
            raise Refusal(403, f"Forbidden: {chat.barred}")
        return chat

    def add(self, chat: Chat, **fields: Any) -> Message:
        message = Message(id=next(self._message_ids), sent_at=self._clock.now(), **fields)
        message.versions.append(message.text)
        chat.messages[message.id] = message
        return message

    def send(self, chat: Chat, params: dict[str, Any]) -> Message:
        """Carry out sendMessage."""
        return self._post(chat, params, text_content(params))

    def send_file(self, chat: Chat, method: str, params: dict[str, Any]) -> Message:
        """Carry out sendPhoto, sendVoice or sendDocument."""
        content = caption_content(params)
        return self._post(chat, params, content, self._files.upload(method, params))

    def _post(self, chat: Chat, params: dict[str, Any], content: Content, file: StoredFile | None = None) -> Message:
        thread = params.get("message_thread_id")
        if thread is not None and integer(thread) not in chat.topics:
            raise bad_request("message thread not found")
        return self.add(
            chat,
            text=content.text,
            from_bot=True,
            thread=None if thread is None else integer(thread),
            entities=content.entities,
            keyboard=content.keyboard,
            reply_to=_reply_target(chat, params.get("reply_parameters") or {}),
            silent=bool(params.get("disable_notification")),
            file=file,
        )

    def edit(self, chat: Chat, params: dict[str, Any]) -> Message:
        """Carry out editMessageText; without a keyboard in the call the old one goes."""
        message = chat.messages.get(integer(params.get("message_id")))
        if message is None:
            raise bad_request("message to edit not found")
        if not message.from_bot:
            raise bad_request("message can't be edited")
        if message.file is not None:
            raise bad_request("there is no text in the message to edit")
        new = text_content(params)
        if (new.text, new.entities, new.keyboard) == (message.text, message.entities, message.keyboard):
            raise bad_request(_NOT_MODIFIED)
        message.text, message.entities, message.keyboard = new.text, new.entities, new.keyboard
        message.versions.append(new.text)
        return message

    def delete(self, chat: Chat, params: dict[str, Any]) -> bool:
        """Carry out deleteMessage."""
        message = chat.messages.get(integer(params.get("message_id")))
        if message is None:
            raise bad_request("message to delete not found")
        if self._clock.now() - message.sent_at > DELETABLE_FOR:
            raise bad_request("message can't be deleted for everyone")
        if not message.from_bot and chat.kind != "private":
            raise bad_request("message can't be deleted")
        del chat.messages[message.id]
        return True

    def react(self, chat: Chat, params: dict[str, Any]) -> bool:
        """Carry out setMessageReaction."""
        message = chat.messages.get(integer(params.get("message_id")))
        if message is None:
            raise bad_request("message to react not found")
        emoji = [str(reaction.get("emoji")) for reaction in params.get("reaction") or []]
        if len(emoji) > 1:
            raise bad_request("REACTIONS_TOO_MANY")
        if not REACTIONS.issuperset(emoji):
            raise bad_request("REACTION_INVALID")
        message.reactions = emoji
        return True

    def leave(self, chat: Chat) -> bool:
        """Carry out leaveChat."""
        if chat.kind == "private":
            raise bad_request("chat member status can't be changed in private chats")
        chat.barred = f"bot is not a member of the {chat.kind} chat"
        return True

    def administrators(self, chat: Chat, bot: dict[str, Any]) -> list[dict[str, Any]]:
        """Carry out getChatAdministrators."""
        if chat.kind == "private":
            raise bad_request("there are no administrators in the private chat")
        standings = {user: status for user, status in chat.standings.items() if status in ADMINISTERING}
        return [member(bot if user == bot["id"] else person(user), status) for user, status in standings.items()]

    def as_json(self, chat: Chat, message: Message, sender: dict[str, Any]) -> dict[str, Any]:
        """Return the message as the Bot API shows it."""
        shown: dict[str, Any] = {
            "message_id": message.id,
            "from": sender,
            "chat": chat.as_json(),
            "date": int(message.sent_at.timestamp()),
        }
        if message.file is None:
            shown["text"] = message.text
        else:
            shown |= message.file.as_json() | ({"caption": message.text} if message.text else {})
        if message.thread is not None:
            shown |= {"message_thread_id": message.thread, "is_topic_message": True}
        if message.keyboard:
            shown["reply_markup"] = {"inline_keyboard": message.keyboard}
        if message.entities:
            shown["entities" if message.file is None else "caption_entities"] = message.entities
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


def _reply_target(chat: Chat, reply: dict[str, Any]) -> int | None:
    target = reply.get("message_id")
    if target is None:
        return None
    if integer(target) in chat.messages:
        return integer(target)
    if reply.get("allow_sending_without_reply"):
        return None
    raise bad_request("message to be replied not found")
