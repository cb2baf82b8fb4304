"""What people do on a fake Discord: they write, edit, delete, react, and let bots in and out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_channels import Channel, Kind
from tests.platforms.discord_content import IS_VOICE_MESSAGE, Content
from tests.platforms.discord_events import Events
from tests.platforms.discord_files import Files, Upload
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_message import PLAIN, REPLY, Message
from tests.platforms.discord_messages import Messages
from tests.platforms.discord_permissions import MEMBER, Overwrite
from tests.platforms.discord_threads import Threads


class People:
    """Acts for anybody but the bot; ids are numbers."""

    def __init__(
        self,
        *,
        directory: Directory,
        files: Files,
        messages: Messages,
        threads: Threads,
        events: Events,
    ) -> None:
        self._directory = directory
        self._files = files
        self._messages = messages
        self._threads = threads
        self._events = events

    def dm(self, user: int) -> int:
        """Return the id of the direct conversation between the bot and somebody."""
        return self._directory.dm_with(user).id

    def says(
        self,
        channel: int,
        user: int,
        text: str,
        *,
        files: Iterable[Upload] = (),
        reply_to: int | None = None,
        kind: int | None = None,
        embeds: Iterable[dict[str, Any]] = (),
        **extra: Any,
    ) -> int:
        """Post a message and return its id.

        Args:
            reply_to: Id of the message of the same channel that it answers.
            kind: Its type, where it is neither a plain message nor a reply.
            extra: Goes into the message's JSON as it is, over the other fields.
        """
        place = self._place(channel, user)
        may_manage = self._directory.permissions(place, user) & allowed.MANAGE_THREADS
        assert place.thread is None or not place.thread.locked or may_manage, f"thread {channel} is locked"
        plain = PLAIN if reply_to is None else REPLY
        attachments = [self._files.keep(channel, upload) for upload in files]
        is_voice = any(attachment.seconds is not None for attachment in attachments)
        message = self._messages.add(
            place,
            user,
            Content(text=text.strip(), embeds=list(embeds), flags=IS_VOICE_MESSAGE if is_voice else 0),
            kind=plain if kind is None else kind,
            reply_to=None if reply_to is None else (channel, reply_to),
            attachments=attachments,
            extra=extra,
        )
        return message.id

    def edits(self, channel: int, message_id: int, text: str) -> None:
        """Let a message's author change its text."""
        place = self._directory.channel(channel)
        message = self._messages.find(place, message_id)
        self._messages.change(place, message, {"content": text}, [])

    def embeds_added(self, channel: int, message_id: int, url: str = "https://example.com/") -> None:
        """Show what a link in a message leads to: the update changes nothing else of it."""
        message = self._message(channel, message_id)
        message.content.embeds = [*message.content.embeds, {"type": "link", "url": url, "title": "Example"}]
        self._events.message_updated(message)

    def deletes(self, channel: int, message_id: int) -> None:
        """Delete a message, also one of the bot's, as a moderator can."""
        self._messages.remove(self._message(channel, message_id))

    def reacts(self, channel: int, message_id: int, user: int, emoji: str) -> None:
        """React to a message."""
        self._messages.react(channel, message_id, emoji, user)

    def unreacts(self, channel: int, message_id: int, user: int, emoji: str) -> None:
        """Take a reaction back."""
        self._messages.unreact(channel, message_id, emoji, user)

    def says_in_new_thread(
        self, channel: int, user: int, text: str, *, name: str = "New thread", at: int | None = None, **more: Any
    ) -> int:
        """Open a thread, at a message if one is given, say something there, and return the thread's id.

        `private` among `more` makes it a private thread; the rest is as for `says`.
        """
        place = self._place(channel, user)
        private = more.pop("private", False)
        if at is None:
            thread = self._threads.open(place, name, user, Kind.PRIVATE_THREAD if private else Kind.PUBLIC_THREAD)
        else:
            thread = self._threads.open_at(self._message(channel, at), name, user)
        self.says(thread.id, user, text, **more)
        return thread.id

    def posts_in_forum(
        self, forum: int, user: int, title: str, text: str, *, tags: tuple[int, ...] = (), files: Iterable[Upload] = ()
    ) -> int:
        """Post in a forum and return the post's id, which is that of its first message, too."""
        post = self._threads.open_post(self._place(forum, user), title, user, tags)
        attachments = [self._files.keep(post.id, upload) for upload in files]
        self._messages.add(post, user, Content(text=text.strip()), id=post.id, attachments=attachments)
        return post.id

    def archives(self, thread: int, *, locked: bool | None = None) -> None:
        """Archive a thread; one that is `locked` stays so until a moderator opens it."""
        self._threads.archive(self._directory.channel(thread), locked=locked)

    def deletes_thread(self, thread: int) -> None:
        """Delete a thread with what was said in it."""
        self._threads.remove(self._directory.channel(thread))

    def deletes_channel(self, channel: int) -> None:
        """Delete a channel of a guild, with its threads."""
        place = self._directory.channel(channel)
        guild = self._directory.guild_of(place)
        assert guild is not None
        self._events.channel("CHANNEL_DELETE", place)
        gone = [other.id for other in guild.channels.values() if channel in {other.id, other.parent_id}]
        for channel_id in gone:
            del guild.channels[channel_id]
            self._messages.by_channel.pop(channel_id, None)

    def opens_channel(self, channel: int, name: str, *, guild: int, kind: Kind = Kind.TEXT) -> None:
        """Make a channel with this id."""
        place = self._directory.add_channel(Channel(channel, kind, name, guild))
        self._events.channel("CHANNEL_CREATE", place)

    def permits(self, channel: int, target: int, *, kind: int = MEMBER, allow: int = 0, deny: int = 0) -> None:
        """Set what a channel allows and denies a member or a role, in place of what it did."""
        place = self._directory.channel(channel)
        place.overwrites = [other for other in place.overwrites if (other.kind, other.id) != (kind, target)]
        place.overwrites.append(Overwrite(target, kind, allow, deny))
        self._events.channel("CHANNEL_UPDATE", place)

    def blocks(self, user: int, blocked: bool = True) -> None:
        """Let somebody take no direct messages of the bot."""
        self._directory.users[user].takes_messages = not blocked

    def gives_roles(self, guild: int, user: int, *roles: int) -> None:
        """Let a member have these roles and no others."""
        place = self._directory.guilds[guild]
        place.members[user].roles = list(roles)
        self._events.member_updated(place, user)

    def removes_bot(self, guild: int) -> None:
        """Put the bot out of a guild."""
        place = self._directory.guilds[guild]
        del place.members[BOT]
        self._events.guild_left(place)

    def adds_bot(self, guild: int, name: str = "Another lodge") -> None:
        """Let the bot into a guild; one that was not there has one channel, with the guild's id and 1."""
        place = self._directory.guilds.get(guild) or self._directory.open_guild(guild, name)
        self._directory.join_bot(place)
        self._events.guild_joined(place)

    def loses_guild(self, guild: int, lost: bool = True) -> None:
        """Let a guild be unavailable, as in an outage, or be back."""
        place = self._directory.guilds[guild]
        if lost:
            self._events.guild_unavailable(place)
        else:
            self._events.guild_available(place)

    def _place(self, channel: int, user: int) -> Channel:
        place = self._directory.channel(channel)
        assert self._directory.sees(place, user), f"{user} cannot see channel {channel}"
        return place

    def _message(self, channel: int, message_id: int) -> Message:
        return self._messages.find(self._directory.channel(channel), message_id)
