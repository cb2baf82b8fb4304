"""What a fake Discord tells a bot of: each change, as an event of the gateway."""

from __future__ import annotations

from typing import Any

from core.contracts.clock import Clock
from tests.platforms.discord_account import Account, Intent
from tests.platforms.discord_channels import Channel
from tests.platforms.discord_gateway import Gateway
from tests.platforms.discord_guilds import BOT, Directory, Guild
from tests.platforms.discord_message import Message, MessageJson, emoji_json, without_content


class Events:
    """Writes events and hands them to the gateway; of what the bot cannot see it hears nothing."""

    def __init__(
        self, *, clock: Clock, account: Account, directory: Directory, gateway: Gateway, json: MessageJson
    ) -> None:
        self.json = json
        self._clock = clock
        self._account = account
        self._directory = directory
        self._gateway = gateway

    def message_created(self, message: Message) -> None:
        self._message("MESSAGE_CREATE", message, self.json.created(message))

    def message_updated(self, message: Message) -> None:
        self._message("MESSAGE_UPDATE", message, self.json.rest(message))

    def message_deleted(self, message: Message) -> None:
        channel = self._directory.channel(message.channel_id)
        shown = {"id": str(message.id), "channel_id": str(channel.id)} | _guild(channel)
        self._in_channel("MESSAGE_DELETE", channel, shown, Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES)

    def reaction(self, name: str, message: Message, emoji: str, user_id: int) -> None:
        """Tell that a reaction came or went, by the event's name."""
        channel = self._directory.channel(message.channel_id)
        shown: dict[str, Any] = {
            "user_id": str(user_id),
            "channel_id": str(channel.id),
            "message_id": str(message.id),
            "message_author_id": str(message.author_id),
            "emoji": emoji_json(emoji),
            "burst": False,
            "type": 0,
        }
        member = self._directory.member(channel, user_id)
        if member is not None and name == "MESSAGE_REACTION_ADD":
            shown["member"] = member.as_json()
        shown |= _guild(channel)
        self._in_channel(name, channel, shown, Intent.GUILD_REACTIONS, Intent.DIRECT_REACTIONS)

    def channel(self, name: str, channel: Channel, **fields: Any) -> None:
        """Tell of a channel or a thread as a whole, by the event's name."""
        shown = self._directory.channel_json(channel) | fields
        self._in_channel(name, channel, shown, Intent.GUILDS, Intent.NONE)

    def thread_deleted(self, thread: Channel) -> None:
        shown = {"id": str(thread.id), "parent_id": str(thread.parent_id), "type": int(thread.kind)} | _guild(thread)
        self._in_channel("THREAD_DELETE", thread, shown, Intent.GUILDS, Intent.NONE)

    def unarchive(self, thread: Channel) -> None:
        """Open a thread again, as a message in it does."""
        assert thread.thread is not None
        thread.thread.archived = False
        thread.thread.changed_at = self._clock.now()
        self.channel("THREAD_UPDATE", thread)

    def member_updated(self, guild: Guild, user_id: int) -> None:
        shown = guild.members[user_id].as_json() | {"guild_id": str(guild.id)}
        needed = Intent.NONE if user_id == BOT else Intent.GUILD_MEMBERS
        self._gateway.publish("GUILD_MEMBER_UPDATE", shown, needed)

    def guild_joined(self, guild: Guild) -> None:
        self._gateway.publish("GUILD_CREATE", self._directory.guild_create(guild, is_new=True), Intent.GUILDS)

    def guild_available(self, guild: Guild) -> None:
        self._gateway.publish("GUILD_CREATE", self._directory.guild_create(guild), Intent.GUILDS)

    def guild_left(self, guild: Guild) -> None:
        self._gateway.publish("GUILD_DELETE", {"id": str(guild.id)}, Intent.GUILDS)

    def guild_unavailable(self, guild: Guild) -> None:
        self._gateway.publish("GUILD_DELETE", {"id": str(guild.id), "unavailable": True}, Intent.GUILDS)

    def interaction(self, shown: dict[str, Any]) -> None:
        self._gateway.publish("INTERACTION_CREATE", shown, Intent.NONE)

    def readable(self, channel: Channel, shown: dict[str, Any]) -> dict[str, Any]:
        """Return a message as the bot may read it by request."""
        if Intent.MESSAGE_CONTENT in self._account.privileged or channel.guild_id is None:
            return shown
        return without_content(shown)

    def _message(self, name: str, message: Message, shown: dict[str, Any]) -> None:
        channel = self._directory.channel(message.channel_id)
        shown = self.json.event(message, shown)
        self._in_channel(name, channel, shown, Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES)

    def _in_channel(
        self, name: str, channel: Channel, shown: dict[str, Any], in_guild: Intent, in_private: Intent
    ) -> None:
        if self._directory.sees(channel, BOT):
            self._gateway.publish(name, shown, in_private if channel.guild_id is None else in_guild)


def _guild(channel: Channel) -> dict[str, Any]:
    return {} if channel.guild_id is None else {"guild_id": str(channel.guild_id)}
