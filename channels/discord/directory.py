"""The guilds that the bot is in, with their channels, threads and roles, as the gateway tells of them; no I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from channels.discord.diagnosis import allowed_in, granted_in
from channels.discord.inbound_json import Json, bits, id_if_any, id_of, instant_if_any, label, part, parts
from channels.discord.inbound_text import names_in
from channels.discord.invite import Permission
from channels.discord.places import Place, is_direct, is_thread, place_of

_PEOPLE_REMEMBERED = 5_000
_TEXT = frozenset({0, 5})
_SPEAKING = Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A place with messages; `last_message` is the id of the newest one, which need not be there any more."""

    place: Place
    last_message: str | None


@dataclass(slots=True)
class _Guild:
    """One guild; `about` is what else is known of it."""

    about: Json
    roles: dict[str, Json] = field(default_factory=dict)
    channels: dict[str, Json] = field(default_factory=dict)
    threads: dict[str, Json] = field(default_factory=dict)


class Directory:
    """Knows every place by its id. It reads events in their order, so it is as old as the event at hand."""

    def __init__(self) -> None:
        self._guilds: dict[str, _Guild] = {}
        self._guild_of: dict[str, str] = {}
        self._people: OrderedDict[str, str] = OrderedDict()

    def take(self, name: str, event: Json) -> None:
        """Take in an event that changes places, roles or names; every other one changes nothing.

        Raises:
            MalformedEvent: Something has no id.
        """
        match name:
            case "GUILD_CREATE":
                self._take_guild(event)
            case "GUILD_UPDATE" if (guild := self._guilds.get(id_of(event))) is not None:
                guild.about = {**guild.about, **_about(event)}
            case "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" | "GUILD_ROLE_DELETE":
                self._take_role(name, event)
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE":
                self.learn(event)
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self._forget(id_of(event))
            case "THREAD_LIST_SYNC":
                for thread in parts(event, "threads"):
                    self.learn({"guild_id": event.get("guild_id"), **thread})
            case "MESSAGE_CREATE":
                self._remember(event)
            case _:
                pass

    def lose(self, guild_id: str) -> Json:
        """Forget a guild that the bot is out of; return what was known of it."""
        guild = self._guilds.pop(guild_id, None)
        if guild is None:
            return {"id": guild_id}
        for channel_id in (*guild.channels, *guild.threads):
            self._guild_of.pop(channel_id, None)
        return guild.about

    def learn(self, channel: Json) -> None:
        """Take in a channel or thread of a guild that is known, whole.

        Raises:
            MalformedEvent: It has no id.
        """
        guild = self._guilds.get(id_if_any(channel, "guild_id") or "")
        if guild is None:
            return
        channel_id = id_of(channel)
        kept = guild.threads if is_thread(channel) else guild.channels
        kept[channel_id] = _thread(channel) if is_thread(channel) else _channel(channel)
        self._guild_of[channel_id] = id_of(channel, "guild_id")

    def place(self, channel_id: str) -> Place | None:
        """Return a place of a guild; None where it is not known."""
        guild_id = self._guild_of.get(channel_id)
        if guild_id is None:
            return None
        guild = self._guilds[guild_id]
        return self._described(guild.channels.get(channel_id) or guild.threads[channel_id], guild_id)

    def described(self, channel: Json, guild_id: str | None) -> Place:
        """Return a place as a channel object describes it, with what is known of the guild.

        Raises:
            MalformedEvent: It has no id.
        """
        if guild_id is None or is_direct(channel):
            return place_of(channel, guild=None, is_open=False)
        return self._described(channel, guild_id)

    def rooms(self, guild_id: str) -> Iterator[Room]:
        """Yield the channels of a guild and its threads that are not archived, where they hold messages."""
        guild = self._guilds[guild_id]
        for channel in (*guild.channels.values(), *guild.threads.values()):
            place = self._described(channel, guild_id)
            if place.has_messages and not channel.get("archived"):
                yield Room(place=place, last_message=id_if_any(channel, "last_message_id"))

    def is_known(self, guild_id: str) -> bool:
        """Whether the bot is in a guild."""
        return guild_id in self._guilds

    def joined_at(self, guild_id: str) -> datetime | None:
        """Return when the bot was let into a guild."""
        return instant_if_any(self._guilds[guild_id].about, "joined_at")

    def welcome(self, guild_id: str) -> str:
        """Return the channel where the bot can introduce itself; the guild's id where it can speak nowhere.

        That is the one for Discord's own notes, else the first.
        """
        guild = self._guilds[guild_id]
        known = {**guild.about, "roles": list(guild.roles.values())}
        member = part(guild.about, "member")
        granted = granted_in(known, member)
        spoken = [
            channel
            for channel in guild.channels.values()
            if channel.get("type") in _TEXT and _SPEAKING in allowed_in(channel, known, member, granted)
        ]
        first = sorted(spoken, key=lambda channel: (bits(channel, "position"), int(id_of(channel))))
        preferred = [channel for channel in first if channel.get("id") == guild.about.get("system_channel_id")]
        return next((id_of(channel) for channel in (*preferred, *first)), guild_id)

    # What things are called

    def role(self, guild: str | None, role: str) -> str:
        """Return the name of a role; empty where it is not known."""
        known = self._guilds.get(guild or "")
        return "" if known is None else label(known.roles.get(role, {}).get("name"))

    def channel(self, channel: str) -> str:
        """Return the name of a channel or thread; empty where it is not known."""
        guild = self._guilds.get(self._guild_of.get(channel, ""))
        if guild is None:
            return ""
        return label((guild.channels.get(channel) or guild.threads.get(channel, {})).get("name"))

    def own_role(self, guild: str | None) -> str | None:
        """Return the id of the role that is the bot's alone in a guild."""
        known = self._guilds.get(guild or "")
        if known is None:
            return None
        own = part(part(known.about, "member"), "user").get("id")
        roles = known.roles.items()
        return next((role_id for role_id, role in roles if own and part(role, "tags").get("bot_id") == own), None)

    def person(self, user_id: str) -> str:
        """Return what somebody was called who wrote or was mentioned lately; empty where nobody knows."""
        return self._people.get(user_id, "")

    def _take_guild(self, event: Json) -> None:
        guild_id = id_of(event)
        self.lose(guild_id)
        roles = {id_of(role): role for role in parts(event, "roles")}
        self._guilds[guild_id] = _Guild(about=_about(event), roles=roles)
        for channel in (*parts(event, "channels"), *parts(event, "threads")):
            self.learn({**channel, "guild_id": guild_id})

    def _take_role(self, name: str, event: Json) -> None:
        guild = self._guilds.get(id_of(event, "guild_id"))
        if guild is None:
            return
        if name == "GUILD_ROLE_DELETE":
            guild.roles.pop(id_of(event, "role_id"), None)
        else:
            role = part(event, "role")
            guild.roles[id_of(role)] = role

    def _forget(self, channel_id: str) -> None:
        guild = self._guilds.get(self._guild_of.pop(channel_id, ""))
        if guild is not None:
            guild.channels.pop(channel_id, None)
            guild.threads.pop(channel_id, None)

    def _remember(self, message: Json) -> None:
        for user_id, name in names_in(message).items():
            self._people[user_id] = name
            self._people.move_to_end(user_id)
        while len(self._people) > _PEOPLE_REMEMBERED:
            self._people.popitem(last=False)

    def _described(self, channel: Json, guild_id: str) -> Place:
        guild = self._guilds.get(guild_id)
        parent = channel if not is_thread(channel) else None
        if guild is not None and parent is None:
            parent = guild.channels.get(id_if_any(channel, "parent_id") or "")
        is_open = guild is not None and parent is not None and _is_open(parent, guild, guild_id)
        return place_of(channel, guild=guild_id, is_open=is_open)


def _is_open(channel: Json, guild: _Guild, guild_id: str) -> bool:
    """Return whether everybody in a guild sees a channel."""
    known = {"id": guild_id, "roles": list(guild.roles.values())}
    everybody: Json = {"roles": []}
    return Permission.VIEW_CHANNEL in allowed_in(channel, known, everybody, granted_in(known, everybody))


def _about(guild: Json) -> dict[str, object]:
    """Return what is kept of a guild; of its members, the bot, who is the only one that a bot is told of."""
    about = {name: guild[name] for name in ("id", "name", "system_channel_id", "joined_at") if name in guild}
    members = parts(guild, "members")
    return {**about, "member": members[0]} if len(members) == 1 else about


def _channel(channel: Json) -> Json:
    kept = ("id", "type", "name", "position", "permission_overwrites", "last_message_id")
    return {name: channel[name] for name in kept if name in channel}


def _thread(thread: Json) -> Json:
    kept = {name: thread[name] for name in ("id", "type", "name", "parent_id", "last_message_id") if name in thread}
    return {**kept, "archived": part(thread, "thread_metadata").get("archived") is True}
