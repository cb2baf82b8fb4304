"""Threads and forum posts of a fake Discord, under its rules; no HTTP here."""

from __future__ import annotations

from typing import Any

from core.contracts.clock import Clock
from tests.platforms import discord_permissions as allowed
from tests.platforms import discord_refusals as refusals
from tests.platforms.discord_channels import ARCHIVE_MINUTES, Channel, Kind, Thread
from tests.platforms.discord_content import HAS_THREAD, Body, Content, read_content
from tests.platforms.discord_events import Events
from tests.platforms.discord_files import Upload
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_message import THREAD_CREATED, THREAD_STARTER, Message
from tests.platforms.discord_messages import Messages
from tests.platforms.discord_refusals import bad_length, invalid_form
from tests.platforms.discord_snowflakes import Snowflakes

NAME_LIMIT_CHARS = 100


class Threads:
    """Opens threads, and changes what they are."""

    def __init__(
        self, *, clock: Clock, ids: Snowflakes, directory: Directory, messages: Messages, events: Events
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._directory = directory
        self._messages = messages
        self._events = events

    def open_at(self, message: Message, name: str, owner_id: int, archive_minutes: int = 1440) -> Channel:
        """Open a thread at a message; it has the message's id, so that there can be only one, ever.

        Raises:
            Refusal: 160004, there is one, or was.
        """
        if message.content.flags & HAS_THREAD:
            raise refusals.thread_exists()
        parent = self._directory.channel(message.channel_id)
        if parent.kind is not Kind.TEXT:
            raise refusals.wrong_channel_kind()
        thread = self._open(parent, message.id, Kind.PUBLIC_THREAD, name, owner_id, archive_minutes)
        message.thread_id = thread.id
        message.content.flags |= HAS_THREAD
        self._events.channel("THREAD_CREATE", thread, newly_created=True)
        self._events.message_updated(message)
        at = (parent.id, message.id)
        self._messages.add(thread, message.author_id, Content(), kind=THREAD_STARTER, reply_to=at)
        return thread

    def open(self, parent: Channel, name: str, owner_id: int, kind: Kind = Kind.PUBLIC_THREAD) -> Channel:
        """Open a thread that no message starts; the channel shows that there is one, if everybody may see it."""
        thread = self._open(parent, self._ids.next(), kind, name, owner_id, 1440)
        self._events.channel("THREAD_CREATE", thread, newly_created=True)
        if kind is Kind.PUBLIC_THREAD:
            note = Content(text=thread.name)
            self._messages.add(parent, owner_id, note, kind=THREAD_CREATED, reply_to=(thread.id, 0))
        return thread

    def open_post(self, forum: Channel, name: str, owner_id: int, tags: tuple[int, ...] = ()) -> Channel:
        """Open a post of a forum, without its first message, whose id it will share.

        Raises:
            Refusal: 40067, it has no tag where one is required.
        """
        if forum.requires_tag and not tags:
            raise refusals.tag_required()
        if not set(tags) <= set(forum.tags):
            raise refusals.Refusal(404, 10087, "Unknown tag")
        post = self._open(forum, self._ids.next(), Kind.PUBLIC_THREAD, name, owner_id, 1440)
        assert post.thread is not None
        post.thread.tags = list(tags)
        self._events.channel("THREAD_CREATE", post, newly_created=True)
        return post

    def start_at(self, channel_id: int, message_id: int, body: Body) -> dict[str, Any]:
        """Carry out the request for a thread at a message."""
        channel = self._directory.seen_channel(channel_id)
        message = self._messages.find(channel, message_id)
        self._check_may(channel, allowed.CREATE_PUBLIC_THREADS)
        thread = self.open_at(message, _name(body), BOT, _archive_minutes(body))
        return self._directory.channel_json(thread)

    def start(self, channel_id: int, body: Body, uploads: list[Upload]) -> dict[str, Any]:
        """Carry out the request for a thread without a message, or for a post of a forum."""
        parent = self._directory.seen_channel(channel_id)
        if parent.kind is Kind.FORUM:
            return self._start_post(parent, body, uploads)
        if parent.kind is not Kind.TEXT:
            raise refusals.wrong_channel_kind()
        kind = Kind(int(body.get("type") or Kind.PRIVATE_THREAD))
        public = kind is Kind.PUBLIC_THREAD
        self._check_may(parent, allowed.CREATE_PUBLIC_THREADS if public else allowed.CREATE_PRIVATE_THREADS)
        thread = self.open(parent, _name(body), BOT, kind)
        assert thread.thread is not None
        thread.thread.archive_minutes = _archive_minutes(body)
        return self._directory.channel_json(thread)

    def change(self, channel_id: int, body: Body) -> dict[str, Any]:
        """Carry out the request to change a thread: its name, its tags, whether it is archived or locked."""
        channel = self._directory.seen_channel(channel_id)
        thread = channel.thread
        if thread is None:
            raise refusals.missing_permissions()
        may_manage = bool(self._directory.permissions(channel, BOT) & allowed.MANAGE_THREADS)
        if (thread.owner_id != BOT or "locked" in body) and not may_manage:
            raise refusals.missing_permissions()
        if thread.archived and body.get("archived") is not False:
            raise refusals.thread_is_archived()
        if "name" in body:
            channel.name = _name(body)
        thread.archive_minutes = _archive_minutes(body, thread.archive_minutes)
        thread.locked = bool(body.get("locked", thread.locked))
        thread.tags = [int(tag) for tag in body.get("applied_tags", thread.tags)]
        self.archive(channel, archived=bool(body.get("archived", thread.archived)))
        return self._directory.channel_json(channel)

    def archive(self, channel: Channel, *, archived: bool = True, locked: bool | None = None) -> None:
        """Archive a thread or open it again, and tell of it."""
        thread = channel.thread
        assert thread is not None, f"{channel.id} is no thread"
        if thread.archived != archived:
            thread.changed_at = self._clock.now()
        thread.archived = archived
        thread.locked = thread.locked if locked is None else locked
        self._events.channel("THREAD_UPDATE", channel)

    def delete(self, channel_id: int) -> dict[str, Any]:
        """Carry out the request to delete a thread."""
        channel = self._directory.seen_channel(channel_id)
        self._check_may(channel, allowed.MANAGE_THREADS)
        if channel.thread is None:
            raise refusals.missing_permissions()
        self.remove(channel)
        return self._directory.channel_json(channel)

    def remove(self, thread: Channel) -> None:
        """Take a thread away with what was said in it, and tell of it."""
        self._events.thread_deleted(thread)
        guild = self._directory.guild_of(thread)
        assert guild is not None
        del guild.channels[thread.id]
        self._messages.by_channel.pop(thread.id, None)
        starter = self._messages.by_channel[thread.parent_id or 0].get(thread.id)
        if starter is not None:
            starter.thread_id = None

    def join(self, channel_id: int, user_id: int = BOT) -> None:
        """Let somebody be a member of a thread."""
        thread = self._member_thread(channel_id)
        thread.members.setdefault(user_id, self._clock.now())

    def leave(self, channel_id: int, user_id: int = BOT) -> None:
        """Let somebody be no member of a thread any more."""
        self._member_thread(channel_id).members.pop(user_id, None)

    def active(self, guild_id: int) -> dict[str, Any]:
        """Carry out the request for the threads of a guild that are not archived."""
        return self._listed(guild_id, None, archived=False)

    def archived(self, channel_id: int, kind: Kind = Kind.PUBLIC_THREAD) -> dict[str, Any]:
        """Carry out the request for the archived threads of a channel."""
        parent = self._directory.seen_channel(channel_id)
        if parent.guild_id is None:
            raise refusals.wrong_channel_kind()
        return self._listed(parent.guild_id, parent.id, archived=True, kind=kind) | {"has_more": False}

    def _listed(
        self, guild_id: int, parent_id: int | None, *, archived: bool, kind: Kind | None = None
    ) -> dict[str, Any]:
        guild = self._directory.guild_of_bot(guild_id)
        threads = [channel for channel in guild.channels.values() if channel.thread is not None]
        found = []
        for channel in threads:
            assert channel.thread is not None
            is_there = parent_id in {None, channel.parent_id} and kind in {None, channel.kind}
            if is_there and channel.thread.archived is archived and self._directory.sees(channel, BOT):
                found.append(self._directory.channel_json(channel))
        found.sort(key=lambda shown: int(shown["id"]), reverse=True)
        return {"threads": found, "members": [thread["member"] for thread in found if "member" in thread]}

    def _start_post(self, forum: Channel, body: Body, uploads: list[Upload]) -> dict[str, Any]:
        self._check_may(forum, allowed.SEND_MESSAGES)
        if not isinstance(body.get("message"), dict):
            raise refusals.required("message")
        tags = tuple(int(tag) for tag in body.get("applied_tags") or ())
        content = read_content(body["message"], Content(), "message.")
        if content.is_empty and not uploads:
            raise refusals.empty_message()
        post = self.open_post(forum, _name(body), BOT, tags)
        first = self._messages.create(post, body["message"], uploads, id=post.id)
        return self._directory.channel_json(post) | {"message": self._messages.json.created(first)}

    def _open(
        self, parent: Channel, thread_id: int, kind: Kind, name: str, owner_id: int, archive_minutes: int
    ) -> Channel:
        now = self._clock.now()
        thread = Thread(owner_id, now, now, archive_minutes, members={owner_id: now})
        channel = Channel(thread_id, kind, name, parent.guild_id, parent.id, thread=thread)
        return self._directory.add_channel(channel)

    def _member_thread(self, channel_id: int) -> Thread:
        thread = self._directory.seen_channel(channel_id).thread
        if thread is None:
            raise refusals.wrong_channel_kind()
        if thread.archived:
            raise refusals.thread_is_archived()
        return thread

    def _check_may(self, channel: Channel, permission: int) -> None:
        if not self._directory.permissions(channel, BOT) & permission:
            raise refusals.missing_permissions()


def _name(body: Body) -> str:
    name = str(body.get("name") or "").strip()
    if not 1 <= len(name) <= NAME_LIMIT_CHARS:
        raise bad_length("name", 1, NAME_LIMIT_CHARS)
    return name


def _archive_minutes(body: Body, before: int = 1440) -> int:
    minutes = int(body.get("auto_archive_duration") or before)
    if minutes not in ARCHIVE_MINUTES:
        path = "auto_archive_duration"
        raise invalid_form(path, "BASE_TYPE_CHOICES", f"Value must be one of {ARCHIVE_MINUTES}.")
    return minutes
