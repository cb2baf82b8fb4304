"""Who and what there is on a fake Discord: people, roles, guilds and their channels; no HTTP here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.contracts.clock import Clock
from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_channels import THREADS, Channel, Kind
from tests.platforms.discord_permissions import MEMBER, Overwrite
from tests.platforms.discord_refusals import missing_access, unknown_channel, unknown_guild
from tests.platforms.discord_snowflakes import Snowflakes, timestamp

GUILD = 9000
GENERAL = 9100
RANDOM = 9101
PRIVATE = 9102
FORUM = 9150
BOT_ROLE = 9200
KEEPERS = 9300
GUESTS = 9301
ALICE = 7001
BOB = 7002
PEER_BOT = 7100
BOT = 8000
BOT_PERMISSIONS = allowed.PLAIN | allowed.MANAGE_THREADS

_ABSENT = (
    "icon",
    "splash",
    "discovery_splash",
    "afk_channel_id",
    "application_id",
    "system_channel_id",
    "rules_channel_id",
    "public_updates_channel_id",
    "vanity_url_code",
    "description",
    "banner",
)
_ZERO = (
    "verification_level",
    "default_message_notifications",
    "explicit_content_filter",
    "mfa_level",
    "system_channel_flags",
    "premium_tier",
    "premium_subscription_count",
    "nsfw_level",
)


@dataclass
class User:
    """A person or a bot; `takes_messages` false: direct messages to them are refused."""

    id: int
    name: str
    is_bot: bool = False
    takes_messages: bool = True

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": str(self.id),
            "username": self.name.lower(),
            "global_name": None if self.is_bot else self.name,
            "discriminator": "0",
            "avatar": None,
            "public_flags": 0,
        }
        return shown | ({"bot": True} if self.is_bot else {})


@dataclass
class Role:
    """One role of a guild; `bot_id` is the bot that it belongs to."""

    id: int
    name: str
    permissions: int = 0
    position: int = 1
    bot_id: int | None = None

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": str(self.id),
            "name": self.name,
            "permissions": str(self.permissions),
            "position": self.position,
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "icon": None,
            "unicode_emoji": None,
            "managed": self.bot_id is not None,
            "mentionable": True,
            "flags": 0,
        }
        return shown | ({} if self.bot_id is None else {"tags": {"bot_id": str(self.bot_id)}})


@dataclass
class Member:
    """Somebody in a guild."""

    user: User
    joined_at: datetime
    roles: list[int] = field(default_factory=list)
    nick: str | None = None

    def as_json(self, *, with_user: bool = True) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "nick": self.nick,
            "avatar": None,
            "roles": [str(role) for role in self.roles],
            "joined_at": timestamp(self.joined_at),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "pending": False,
            "flags": 0,
            "communication_disabled_until": None,
        }
        return shown | ({"user": self.user.as_json()} if with_user else {})


@dataclass
class Guild:
    """One guild with its roles, members and channels (threads among them)."""

    id: int
    name: str
    owner_id: int
    roles: dict[int, Role] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the guild as `GET /guilds/{id}` shows it."""
        return (
            dict.fromkeys(_ABSENT)
            | dict.fromkeys(_ZERO, 0)
            | {
                "id": str(self.id),
                "name": self.name,
                "owner_id": str(self.owner_id),
                "afk_timeout": 300,
                "roles": [role.as_json() for role in self.roles.values()],
                "emojis": [],
                "stickers": [],
                "features": [],
                "max_members": 500_000,
                "preferred_locale": "en-US",
                "premium_progress_bar_enabled": False,
            }
        )


class Directory:
    """Everybody and every place, by id, and what each may do where."""

    def __init__(self, clock: Clock, ids: Snowflakes) -> None:
        self.users: dict[int, User] = {}
        self.guilds: dict[int, Guild] = {}
        self.dms: dict[int, Channel] = {}
        self._clock = clock
        self._ids = ids
        for user in (User(ALICE, "Alice"), User(BOB, "Bob"), User(PEER_BOT, "Peer", is_bot=True)):
            self.users[user.id] = user
        self.users[BOT] = User(BOT, "Lodger", is_bot=True)
        self._furnish(self.open_guild(GUILD, "Lodge"))

    @property
    def bot(self) -> User:
        return self.users[BOT]

    def open_guild(self, guild_id: int, name: str) -> Guild:
        """Add a guild where the bot is not yet; it has one channel, whose id is the guild's and 1."""
        everyone = Role(guild_id, "@everyone", allowed.PLAIN | allowed.USE_APPLICATION_COMMANDS, position=0)
        guild = Guild(guild_id, name, owner_id=ALICE, roles={guild_id: everyone})
        for user in (ALICE, BOB, PEER_BOT):
            self.join(guild, user)
        self.guilds[guild_id] = guild
        self.add_channel(Channel(guild_id + 1, Kind.TEXT, "general", guild_id))
        return guild

    def join(self, guild: Guild, user_id: int, *roles: int) -> Member:
        """Let somebody be in a guild from now on."""
        member = Member(self.users[user_id], self._clock.now(), list(roles))
        guild.members[user_id] = member
        return member

    def join_bot(self, guild: Guild) -> None:
        """Let the bot be in a guild, with a role of its own."""
        role = Role(BOT_ROLE if guild.id == GUILD else self._ids.next(), "Lodger", BOT_PERMISSIONS, bot_id=BOT)
        guild.roles[role.id] = role
        self.join(guild, BOT, role.id)

    def add_channel(self, channel: Channel) -> Channel:
        """Add a channel to its guild."""
        assert channel.guild_id is not None
        guild = self.guilds[channel.guild_id]
        channel.position = channel.position or len(guild.channels)
        guild.channels[channel.id] = channel
        return channel

    def dm_with(self, user_id: int) -> Channel:
        """Return the direct conversation between the bot and somebody; there is one from then on."""
        found = next((channel for channel in self.dms.values() if channel.recipient_id == user_id), None)
        if found is None:
            found = Channel(self._ids.next(), Kind.DM, recipient_id=user_id)
            self.dms[found.id] = found
        return found

    def channel(self, channel_id: int) -> Channel:
        """Return a channel.

        Raises:
            Refusal: 10003, there is none.
        """
        for channels in (self.dms, *(guild.channels for guild in self.guilds.values())):
            if (channel := channels.get(channel_id)) is not None:
                return channel
        raise unknown_channel()

    def seen_channel(self, channel_id: int, user_id: int = BOT) -> Channel:
        """Return a channel that somebody can see.

        Raises:
            Refusal: 10003, there is none; 50001, they cannot see it.
        """
        channel = self.channel(channel_id)
        if not self.sees(channel, user_id):
            raise missing_access()
        return channel

    def guild_of_bot(self, guild_id: int) -> Guild:
        """Return a guild that the bot is in.

        Raises:
            Refusal: 10004, there is none.
        """
        guild = self.guilds.get(guild_id)
        if guild is None or BOT not in guild.members:
            raise unknown_guild()
        return guild

    def guild_of(self, channel: Channel) -> Guild | None:
        return None if channel.guild_id is None else self.guilds[channel.guild_id]

    def member(self, channel: Channel, user_id: int) -> Member | None:
        """Return somebody as a member of the channel's guild, if they are one."""
        guild = self.guild_of(channel)
        return None if guild is None else guild.members.get(user_id)

    def permissions(self, channel: Channel, user_id: int) -> int:
        """Return what somebody may do in a channel, as bits; a thread has those of its parent."""
        guild = self.guild_of(channel)
        if guild is None:
            return allowed.PLAIN if user_id in {BOT, channel.recipient_id} else 0
        member = guild.members.get(user_id)
        if member is None:
            return 0
        if user_id == guild.owner_id:
            return allowed.ALL
        base = guild.roles[guild.id].permissions
        for role in member.roles:
            base |= guild.roles[role].permissions
        place = guild.channels[channel.parent_id] if channel.kind in THREADS and channel.parent_id else channel
        return allowed.overwritten(base, place.overwrites, everyone=guild.id, roles=member.roles, member=user_id)

    def sees(self, channel: Channel, user_id: int) -> bool:
        """Whether somebody can see a channel; a private thread is seen by its members."""
        permissions = self.permissions(channel, user_id)
        if channel.kind is Kind.PRIVATE_THREAD and channel.thread is not None:
            is_inside = user_id in channel.thread.members or bool(permissions & allowed.MANAGE_THREADS)
            return is_inside and bool(permissions & allowed.VIEW_CHANNEL)
        return bool(permissions & allowed.VIEW_CHANNEL)

    def channel_json(self, channel: Channel) -> dict[str, Any]:
        """Return a channel as the bot sees it."""
        recipient = None if channel.recipient_id is None else self.users[channel.recipient_id].as_json()
        return channel.as_json(recipient=recipient, reader=BOT)

    def guild_create(self, guild: Guild, *, is_new: bool = False) -> dict[str, Any]:
        """Return what GUILD_CREATE carries; of the members it names only the bot, as without the presence intent.

        Args:
            is_new: The bot was just let in: then it does not say that the guild is available.
        """
        channels = [channel for channel in guild.channels.values() if channel.thread is None]
        threads = [channel for channel in guild.channels.values() if channel.thread and not channel.thread.archived]
        bot = guild.members[BOT]
        nothing: dict[str, Any] = {
            name: [] for name in ("voice_states", "presences", "stage_instances", "guild_scheduled_events")
        }
        return (
            guild.as_json()
            | nothing
            | {
                "joined_at": timestamp(bot.joined_at),
                "large": False,
                "member_count": len(guild.members),
                "members": [bot.as_json()],
                "channels": [self.channel_json(channel) for channel in channels],
                "threads": [self.channel_json(thread) for thread in threads if self.sees(thread, BOT)],
                "soundboard_sounds": [],
            }
            | ({} if is_new else {"unavailable": False})
        )

    def members_chunk(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return what the gateway answers to a request for members."""
        guild = self.guild_of_bot(int(asked["guild_id"]))
        wanted = asked.get("user_ids")
        ids = {str(user) for user in (wanted if isinstance(wanted, list) else [wanted])} if wanted else None
        query = str(asked.get("query") or "").lower()
        members = [member for member in guild.members.values() if ids is None or str(member.user.id) in ids]
        found = [member.as_json() for member in members if member.user.name.lower().startswith(query)]
        shown = {"guild_id": str(guild.id), "members": found, "chunk_index": 0, "chunk_count": 1, "not_found": []}
        return shown | ({"nonce": asked["nonce"]} if "nonce" in asked else {})

    def _furnish(self, guild: Guild) -> None:
        """Give the one guild that is always there its roles and channels, and let the bot in."""
        del guild.channels[GUILD + 1]
        for role in (Role(KEEPERS, "Keepers", position=2), Role(GUESTS, "Guests", position=3)):
            guild.roles[role.id] = role
        guild.members[ALICE].roles = [KEEPERS]
        guild.members[BOB].roles = [GUESTS]
        self.join_bot(guild)
        self.add_channel(Channel(GENERAL, Kind.TEXT, "general", GUILD))
        self.add_channel(Channel(RANDOM, Kind.TEXT, "random", GUILD))
        private = self.add_channel(Channel(PRIVATE, Kind.TEXT, "keepers", GUILD))
        private.overwrites = [
            Overwrite(GUILD, deny=allowed.VIEW_CHANNEL),
            Overwrite(KEEPERS, allow=allowed.VIEW_CHANNEL),
            Overwrite(BOT, MEMBER, allow=allowed.VIEW_CHANNEL),
        ]
        self.add_channel(Channel(FORUM, Kind.FORUM, "questions", GUILD, tags={9160: "bug", 9161: "idea"}))
