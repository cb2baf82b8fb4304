"""The messages of all channels of a fake Discord, under its rules; no HTTP here."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

from core.contracts.clock import Clock
from tests.platforms import discord_permissions as allowed
from tests.platforms import discord_refusals as refusals
from tests.platforms.discord_channels import THREADS, Channel, Kind
from tests.platforms.discord_content import (
    EPHEMERAL,
    LOADING,
    Body,
    Content,
    check_nonce,
    mentions_in,
    read_content,
)
from tests.platforms.discord_events import Events
from tests.platforms.discord_files import Files, Upload
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_message import PLAIN, REPLY, Message, MessageJson
from tests.platforms.discord_refusals import invalid_form
from tests.platforms.discord_snowflakes import Snowflakes

PAGE_LIMIT = 100
NONCE_LIFE = timedelta(minutes=5)
REACTIONS_LIMIT = 20


class Messages:
    """What was said, by channel and by id, oldest first."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Snowflakes,
        directory: Directory,
        files: Files,
        events: Events,
        by_channel: defaultdict[int, dict[int, Message]],
    ) -> None:
        self.by_channel = by_channel
        self.typing: defaultdict[int, list[float]] = defaultdict(list)
        self._clock = clock
        self._ids = ids
        self._directory = directory
        self._files = files
        self._events = events

    @property
    def json(self) -> MessageJson:
        return self._events.json

    def find(self, channel: Channel, message_id: int) -> Message:
        """Return a message of a channel.

        Raises:
            Refusal: 10008, there is none.
        """
        message = self.by_channel[channel.id].get(message_id)
        if message is None:
            raise refusals.unknown_message()
        return message

    def add(
        self,
        channel: Channel,
        author_id: int,
        content: Content,
        *,
        rule: Any = None,
        is_private: bool = False,
        **fields: Any,
    ) -> Message:
        """Post a message and tell of it; nothing is checked.

        Args:
            rule: Its `allowed_mentions`; None: it notifies whom its text mentions.
            is_private: Only one person sees it: it is in no history, and nothing is told of it.
        """
        message = Message(
            id=fields.pop("id", 0) or self._ids.next(),
            channel_id=channel.id,
            author_id=author_id,
            sent_at=self._clock.now(),
            content=content,
            **fields,
        )
        message.versions.append(message.text)
        self._resolve_mentions(channel, message, rule)
        if is_private:
            return message
        self._take_in(channel, message)
        self.by_channel[channel.id][message.id] = message
        channel.last_message_id = message.id
        channel.message_count += 1
        self._events.message_created(message)
        return message

    def create(self, channel: Channel, body: Body, uploads: list[Upload], *, path: str = "", **fields: Any) -> Message:
        """Post a message of the bot as a body says, under all rules but those on who may post.

        Args:
            path: What stands before the names of fields in a refusal.
            fields: What else the message has, and `is_private`, as for `add`.
        """
        nonce = check_nonce(body)
        first = self._sent_with(nonce) if body.get("enforce_nonce") else None
        if first is not None:
            return first
        content = read_content(body, Content(), path)
        reply_to = self._reply_target(channel, body.get("message_reference"))
        attachments = self._files.take(channel.id, body, uploads, [])
        if content.is_empty and not attachments:
            raise refusals.empty_message()
        own: dict[str, Any] = {"kind": PLAIN if reply_to is None else REPLY, "reply_to": reply_to}
        own |= {"nonce": nonce, "attachments": attachments}
        return self.add(channel, BOT, content, rule=body.get("allowed_mentions"), **(own | fields))

    def send(self, channel_id: int, body: Body, uploads: list[Upload]) -> dict[str, Any]:
        """Carry out the request for a new message."""
        channel = self._directory.seen_channel(channel_id)
        self._check_may_send(channel, uploads)
        flags = int(body.get("flags") or 0) & ~EPHEMERAL  # only an interaction has somebody to show it to
        message = self.create(channel, body | {"flags": flags}, uploads)
        return self.json.created(message)

    def edit(self, channel_id: int, message_id: int, body: Body, uploads: list[Upload]) -> dict[str, Any]:
        """Carry out the request for a change of a message."""
        channel = self._directory.seen_channel(channel_id)
        message = self.find(channel, message_id)
        if message.author_id != BOT:
            raise refusals.not_author()
        if channel.thread is not None and channel.thread.archived:
            raise refusals.thread_is_archived()
        self.change(channel, message, body, uploads)
        return self.json.rest(message)

    def change(self, channel: Channel, message: Message, body: Body, uploads: list[Upload], *, path: str = "") -> None:
        """Change a message as a body says and tell of it; without `allowed_mentions` in it all are mentioned."""
        content = read_content(body, message.content, path)
        attachments = self._files.take(channel.id, body, uploads, message.attachments)
        if content.is_empty and not attachments:
            raise refusals.empty_message()
        content.flags &= ~LOADING
        message.content, message.attachments = content, attachments
        message.edited_at = self._clock.now()
        message.versions.append(message.text)
        self._resolve_mentions(channel, message, body.get("allowed_mentions"))
        if message.id in self.by_channel[channel.id]:
            self._events.message_updated(message)

    def delete(self, channel_id: int, message_id: int) -> None:
        """Carry out the request to delete a message."""
        channel = self._directory.seen_channel(channel_id)
        message = self.find(channel, message_id)
        may_manage = self._directory.permissions(channel, BOT) & allowed.MANAGE_MESSAGES
        if message.author_id != BOT and not may_manage:
            raise refusals.missing_permissions()
        if channel.thread is not None and channel.thread.archived:
            raise refusals.thread_is_archived()
        self.remove(message)

    def remove(self, message: Message) -> None:
        """Take a message away and tell of it."""
        del self.by_channel[message.channel_id][message.id]
        self._events.message_deleted(message)

    def get(self, channel_id: int, message_id: int) -> dict[str, Any]:
        """Carry out the request for one message."""
        channel = self._directory.seen_channel(channel_id)
        if not self._directory.permissions(channel, BOT) & allowed.READ_MESSAGE_HISTORY:
            raise refusals.missing_access()
        return self._events.readable(channel, self.json.rest(self.find(channel, message_id)))

    def page(self, channel_id: int, query: dict[str, str]) -> list[dict[str, Any]]:
        """Carry out the request for a part of a history, the newest first."""
        channel = self._directory.seen_channel(channel_id)
        limit = int(query.get("limit", 50))
        if not 1 <= limit <= PAGE_LIMIT:
            raise invalid_form("limit", "NUMBER_TYPE_MAX", f"int value should be between 1 and {PAGE_LIMIT}.")
        if channel.kind is Kind.FORUM:
            raise refusals.not_a_text_channel()
        found = list(self.by_channel[channel.id].values())
        if not self._directory.permissions(channel, BOT) & allowed.READ_MESSAGE_HISTORY:
            found = []
        if "after" in query:
            page = [message for message in found if message.id > int(query["after"])][:limit]
        elif "around" in query:
            nearest = sorted(found, key=lambda message: abs(message.id - int(query["around"])))[:limit]
            page = sorted(nearest, key=lambda message: message.id)
        else:
            before = int(query["before"]) if "before" in query else None
            page = [message for message in found if before is None or message.id < before][-limit:]
        return [self._events.readable(channel, self.json.rest(message)) for message in reversed(page)]

    def react(self, channel_id: int, message_id: int, emoji: str, user_id: int) -> None:
        """Let somebody react to a message, once with each emoji."""
        channel = self._directory.seen_channel(channel_id, user_id)
        message = self.find(channel, message_id)
        if not _is_emoji(emoji):
            raise refusals.unknown_emoji()
        if not self._directory.permissions(channel, user_id) & allowed.ADD_REACTIONS:
            raise refusals.missing_permissions()
        if channel.thread is not None and channel.thread.archived:
            raise refusals.thread_is_archived()
        if emoji not in message.reactions and len(message.reactions) >= REACTIONS_LIMIT:
            raise refusals.Refusal(400, 30010, f"Maximum number of reactions reached ({REACTIONS_LIMIT})")
        users = message.reactions.setdefault(emoji, [])
        if user_id not in users:
            users.append(user_id)
            self._events.reaction("MESSAGE_REACTION_ADD", message, emoji, user_id)

    def unreact(self, channel_id: int, message_id: int, emoji: str, user_id: int) -> None:
        """Take somebody's reaction back."""
        channel = self._directory.seen_channel(channel_id, user_id)
        message = self.find(channel, message_id)
        users = message.reactions.get(emoji, [])
        if user_id not in users:
            raise refusals.unknown_emoji()
        users.remove(user_id)
        if not users:
            del message.reactions[emoji]
        self._events.reaction("MESSAGE_REACTION_REMOVE", message, emoji, user_id)

    def type_in(self, channel_id: int) -> None:
        """Carry out the request to show that the bot types."""
        channel = self._directory.seen_channel(channel_id)
        self._check_may_send(channel, [])
        self.typing[channel.id].append(self._clock.monotonic())

    def _check_may_send(self, channel: Channel, uploads: list[Upload]) -> None:
        if channel.kind is Kind.FORUM:
            raise refusals.not_a_text_channel()
        if channel.recipient_id is not None and not self._directory.users[channel.recipient_id].takes_messages:
            raise refusals.closed_to_messages()
        needed = allowed.SEND_MESSAGES_IN_THREADS if channel.kind in THREADS else allowed.SEND_MESSAGES
        needed |= allowed.ATTACH_FILES if uploads else 0
        permissions = self._directory.permissions(channel, BOT)
        if permissions & needed != needed:
            raise refusals.missing_permissions()
        if channel.thread is not None and channel.thread.locked and not permissions & allowed.MANAGE_THREADS:
            raise refusals.thread_is_locked()

    def _take_in(self, channel: Channel, message: Message) -> None:
        """Open a thread that is written in, and let the author be a member; in a private one also whom they mention."""
        if channel.thread is None:
            return
        if channel.thread.archived:
            self._events.unarchive(channel)
        is_private = channel.kind is Kind.PRIVATE_THREAD
        newcomers = {message.author_id, *(message.mentions.users if is_private else ())} - set(channel.thread.members)
        channel.thread.members |= dict.fromkeys(newcomers, self._clock.now())
        if is_private and BOT in newcomers:
            self._events.channel("THREAD_CREATE", channel)

    def _sent_with(self, nonce: str | None) -> Message | None:
        if nonce is None:
            return None
        since = self._clock.now() - NONCE_LIFE
        everything = (message for messages in self.by_channel.values() for message in messages.values())
        sent = (message for message in everything if message.nonce == nonce and message.from_bot)
        return next((message for message in sent if message.sent_at > since), None)

    def _reply_target(self, channel: Channel, reference: Any) -> tuple[int, int] | None:
        if reference is None:
            return None
        message_id = int(reference.get("message_id") or 0)
        if message_id in self.by_channel[channel.id]:
            return channel.id, message_id
        if reference.get("fail_if_not_exists", True):
            raise invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None

    def _resolve_mentions(self, channel: Channel, message: Message, rule: Any) -> None:
        may_mention_all = bool(self._directory.permissions(channel, message.author_id) & allowed.MENTION_EVERYONE)
        answered = None
        if message.kind == REPLY and message.reply_to is not None:
            answered = self.by_channel[message.reply_to[0]].get(message.reply_to[1])
        replied_to = None if answered is None else answered.author_id
        message.mentions = mentions_in(message.text, rule, replied_to=replied_to, may_mention_all=may_mention_all)


def _is_emoji(emoji: str) -> bool:
    """Whether it is a plain emoji, or one of a guild as `name:id`."""
    name, _, emoji_id = emoji.partition(":")
    return emoji_id.isdecimal() if emoji_id else bool(name) and not name.isascii()
