"""One message of a fake Discord, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.platforms.discord_components import BUTTON, walk
from tests.platforms.discord_content import Content, Mentions
from tests.platforms.discord_files import Attachment, Files
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_snowflakes import timestamp

PLAIN = 0
THREAD_CREATED = 18
REPLY = 19
COMMAND_ANSWER = 20
THREAD_STARTER = 21
CONTEXT_ANSWER = 23


@dataclass
class Message:
    """One message as people see it now; `versions` are the texts it had, oldest first.

    `reactions` are those who reacted, by emoji; `reply_to` is the channel and the id of what it
    answers; `extra` goes into its JSON as it is, over the other fields.
    """

    id: int
    channel_id: int
    author_id: int
    sent_at: datetime
    content: Content = field(default_factory=Content)
    kind: int = PLAIN
    edited_at: datetime | None = None
    attachments: list[Attachment] = field(default_factory=list)
    mentions: Mentions = field(default_factory=Mentions)
    nonce: str | None = None
    reply_to: tuple[int, int] | None = None
    reactions: dict[str, list[int]] = field(default_factory=dict)
    thread_id: int | None = None
    interaction: dict[str, Any] | None = None
    versions: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.content.text

    @property
    def from_bot(self) -> bool:
        return self.author_id == BOT

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and custom ids of what can be pressed, in the order in which it is drawn."""
        pressable = [part for part in walk(self.content.components) if part.get("type") == BUTTON]
        return {button.get("label", ""): button["custom_id"] for button in pressable if "custom_id" in button}

    def takes(self, custom_id: str) -> bool:
        """Whether there is something that carries this custom id and is not greyed out."""
        parts = [part for part in walk(self.content.components) if part.get("custom_id") == custom_id]
        return any(not part.get("disabled") for part in parts)


class MessageJson:
    """Writes messages as the API and the gateway show them."""

    def __init__(self, directory: Directory, files: Files, messages: dict[int, dict[int, Message]]) -> None:
        self._directory = directory
        self._files = files
        self._messages = messages

    def rest(self, message: Message, *, with_answered: bool = True) -> dict[str, Any]:
        """Return what a request for the message gets; it has no guild and no member.

        Args:
            with_answered: Show the message that this one answers, too.
        """
        users = self._directory.users
        shown: dict[str, Any] = {
            "id": str(message.id),
            "channel_id": str(message.channel_id),
            "author": users[message.author_id].as_json(),
            "content": message.text,
            "timestamp": timestamp(message.sent_at),
            "edited_timestamp": None if message.edited_at is None else timestamp(message.edited_at),
            "tts": False,
            "mention_everyone": message.mentions.everyone,
            "mentions": [users[user].as_json() for user in message.mentions.users if user in users],
            "mention_roles": [str(role) for role in message.mentions.roles],
            "attachments": [self._files.as_json(attachment) for attachment in message.attachments],
            "embeds": message.content.embeds,
            "components": message.content.components,
            "pinned": False,
            "type": message.kind,
            "flags": message.content.flags,
        }
        if message.reactions:
            shown["reactions"] = [self._reaction_json(emoji, who) for emoji, who in message.reactions.items()]
        if message.interaction is not None:
            shown |= {"webhook_id": str(BOT), "application_id": str(BOT), "interaction_metadata": message.interaction}
        if message.thread_id is not None:
            thread = self._directory.channel(message.thread_id)
            shown["thread"] = self._directory.channel_json(thread)
        return shown | self._reply_json(message, with_answered=with_answered) | message.extra

    def created(self, message: Message) -> dict[str, Any]:
        """Return what the request that made the message gets: its nonce is told there, and in the event."""
        return self.rest(message) | ({} if message.nonce is None else {"nonce": message.nonce})

    def event(self, message: Message, shown: dict[str, Any]) -> dict[str, Any]:
        """Return what the gateway tells: guild and members are added, `shown` is what a request would get."""
        channel = self._directory.channel(message.channel_id)
        if channel.guild_id is None:
            return shown
        shown = shown | {"guild_id": str(channel.guild_id)}
        author = self._directory.member(channel, message.author_id)
        if author is not None and "webhook_id" not in message.extra:
            shown["member"] = author.as_json(with_user=False)
        shown["mentions"] = [self._mention_json(channel.guild_id, mention) for mention in shown["mentions"]]
        return shown

    def _mention_json(self, guild_id: int, mention: dict[str, Any]) -> dict[str, Any]:
        member = self._directory.guilds[guild_id].members.get(int(mention["id"]))
        return mention if member is None else mention | {"member": member.as_json(with_user=False)}

    def _reply_json(self, message: Message, *, with_answered: bool) -> dict[str, Any]:
        if message.reply_to is None:
            return {}
        channel_id, message_id = message.reply_to
        guild_id = self._directory.channel(message.channel_id).guild_id
        reference = {"type": 0, "channel_id": str(channel_id)}
        reference |= {} if guild_id is None else {"guild_id": str(guild_id)}
        if message.kind == THREAD_CREATED:
            return {"message_reference": reference}
        shown: dict[str, Any] = {"message_reference": reference | {"message_id": str(message_id)}}
        if with_answered and message.kind in {REPLY, THREAD_STARTER, CONTEXT_ANSWER}:
            answered = self._messages.get(channel_id, {}).get(message_id)
            shown["referenced_message"] = None if answered is None else self.rest(answered, with_answered=False)
        return shown

    def _reaction_json(self, emoji: str, users: list[int]) -> dict[str, Any]:
        return {
            "emoji": emoji_json(emoji),
            "count": len(users),
            "count_details": {"normal": len(users), "burst": 0},
            "me": BOT in users,
            "me_burst": False,
            "burst_colors": [],
        }


def emoji_json(emoji: str) -> dict[str, Any]:
    """Return an emoji, written as itself or as `name:id`, as the API shows it."""
    name, _, emoji_id = emoji.partition(":")
    return {"id": emoji_id or None, "name": name}


def without_content(shown: dict[str, Any]) -> dict[str, Any]:
    """Return a message of a guild as a bot sees it that may not read; its own and those to it stay whole."""
    mentioned = {mention["id"] for mention in shown["mentions"]}
    if shown["author"]["id"] == str(BOT) or str(BOT) in mentioned:
        return shown
    hidden = shown | {"content": "", "embeds": [], "attachments": [], "components": []}
    if isinstance(shown.get("referenced_message"), dict):
        hidden["referenced_message"] = without_content(shown["referenced_message"])
    return hidden
