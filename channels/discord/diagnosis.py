"""Proves a Discord bot end to end: every finding was tried for real."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from channels.contract import Finding, Probe
from channels.discord.invite import NEEDED, Permission, invite_link
from channels.discord.limits import Timing
from channels.discord.transport import Application, BotIdentity, DiscordApi, GatewayState
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

CLOCK_TOLERANCE = timedelta(seconds=30)

_PORTAL = "discord.com/developers/applications"
_GUILDS_LOOKED_AT = 10
_CHANNELS_NAMED = 5
_TEXT_CHANNELS = frozenset({0, 5})
"""docs.discord.com/developers/resources/channel#channel-object-channel-types: text and announcement."""
_FEW_STARTS = 50
_ALL = Permission(sum(Permission))

_NEW_TOKEN = f"Make a new token ({_PORTAL}, Bot, Reset Token) and put it into the configuration."
_NO_ANSWER = "Check that this machine reaches Discord (network, proxy, api_base), then try again."
_SET_CLOCK = "Set this machine's clock, best by a time service such as systemd-timesyncd or chrony."
_SWITCH_ON = f"Switch it on: {_PORTAL}, Bot, Privileged Gateway Intents, Message Content Intent."
_NO_WAY_IN = "Check that this machine may open connections to that host (firewall, proxy, gateway_url)."
_ALLOW_THERE = "If it shall work there, allow it in the channel's settings."
_SPARE_STARTS = "Stop what starts the host again and again: at none left Discord replaces the token."


class Diagnosis:
    """Tries what one bot needs."""

    def __init__(self, api: DiscordApi, *, clock: Clock, timing: Timing, gateway_url: str = "") -> None:
        """Take the `gateway_url` of the configuration; empty: what Discord names."""
        self._api = api
        self._clock = clock
        self._timing = timing
        self._gateway_url = gateway_url

    async def findings(self, listening: Probe | None) -> tuple[Finding, ...]:
        """Return what was found, see `channels.contract.Diagnosable`.

        Args:
            listening: What the receiving part of this very host says, while it runs.
        """
        try:
            bot = await self._api.identity()
            application = await self._api.application()
        except ChannelDown as error:
            return (Finding(name="token", ok=False, detail=error.detail, fix=_NEW_TOKEN),)
        except ChannelError as error:
            return (Finding(name="connection", ok=False, detail=error.detail, fix=_NO_ANSWER),)
        return (
            Finding(name="token", ok=True, detail=f"Discord knows the bot as {bot.name}."),
            await self._clock_finding(),
            _intent(application),
            *await self._gateway_findings(),
            *(() if listening is None else (_receiving(listening),)),
            *await self._server_findings(bot, application),
        )

    async def _clock_finding(self) -> Finding:
        server_time = await self._api.server_time()
        if server_time is None:
            return Finding(name="clock", ok=True, detail="Discord did not tell its time.")
        off = abs(self._clock.now() - server_time)
        detail = f"This machine's clock and Discord's are {off.total_seconds():.0f} s apart."
        is_right = off <= CLOCK_TOLERANCE
        return Finding(name="clock", ok=is_right, detail=detail, fix="" if is_right else _SET_CLOCK)

    async def _gateway_findings(self) -> tuple[Finding, ...]:
        try:
            state = await self._api.gateway()
        except ChannelError as error:
            return (Finding(name="gateway", ok=False, detail=error.detail, fix=_NO_ANSWER),)
        url = self._gateway_url or state.url
        host = urlsplit(url).hostname or url
        if not await self._is_reached(url):
            detail = f"No connection to the gateway ({host}) can be opened."
            return (Finding(name="gateway", ok=False, detail=detail, fix=_NO_WAY_IN), _starts(state))
        return (Finding(name="gateway", ok=True, detail=f"The gateway ({host}) is reached."), _starts(state))

    async def _is_reached(self, url: str) -> bool:
        """Return whether the gateway takes a connection; no session is started, as these are counted."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "wss" else 80)
            async with asyncio.timeout(self._timing.answer_timeout.total_seconds()):
                _, writer = await asyncio.open_connection(
                    parts.hostname or "", port, ssl=True if parts.scheme == "wss" else None
                )
        except (OSError, ValueError):
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True

    async def _server_findings(self, bot: BotIdentity, application: Application) -> tuple[Finding, ...]:
        invite = f"Invite it: {invite_link(application.id)}"
        try:
            guilds = await self._api.guilds()
            if not guilds:
                detail = "The bot is in no server; it can only be written to by people who share one with it."
                return (Finding(name="servers", ok=True, detail=detail, fix=invite),)
            found = [await self._server_finding(guild, bot, invite) for guild in guilds[:_GUILDS_LOOKED_AT]]
        except ChannelError as error:
            return (Finding(name="servers", ok=False, detail=error.detail, fix=_NO_ANSWER),)
        names = ", ".join(str(guild.get("name")) for guild in guilds[:_GUILDS_LOOKED_AT])
        more = ", …" if len(guilds) > _GUILDS_LOOKED_AT else ""
        return (Finding(name="servers", ok=True, detail=f"The bot is in {names}{more}."), *found)

    async def _server_finding(self, brief: Mapping[str, Any], bot: BotIdentity, invite: str) -> Finding:
        """Return whether the bot may do in a server's channels what it needs to do."""
        guild_id, name = str(brief.get("id")), f"server {brief.get('name')}"
        guild = await self._api.guild(guild_id)
        member = await self._api.member(guild_id, bot.id)
        granted = granted_in(guild, member)
        if missing := NEEDED & ~granted:
            return Finding(name=name, ok=False, detail=f"The bot lacks {_named(missing)}.", fix=invite)
        channels = [channel for channel in await self._api.channels(guild_id) if channel.get("type") in _TEXT_CHANNELS]
        mute = [str(channel.get("name")) for channel in channels if _is_mute(channel, guild, member, granted)]
        if not mute:
            return Finding(name=name, ok=True, detail=f"The bot may do what it needs in all {len(channels)} channels.")
        shown = ", ".join(f"#{channel}" for channel in mute[:_CHANNELS_NAMED])
        more = f" and {len(mute) - _CHANNELS_NAMED} more" if len(mute) > _CHANNELS_NAMED else ""
        detail = f"The bot sees {shown}{more} but may not do all that it needs there."
        return Finding(
            name=name, ok=True, detail=detail, fix="If it shall work there, allow it in the channel's settings."
        )


def granted_in(guild: Mapping[str, Any], member: Mapping[str, Any]) -> Permission:
    """Return what a member's roles allow in a server."""
    own = {str(guild.get("id")), *map(str, member.get("roles") or ())}
    granted = _bits(role.get("permissions") for role in guild.get("roles") or () if role.get("id") in own)
    return _ALL if granted & Permission.ADMINISTRATOR else granted


def allowed_in(
    channel: Mapping[str, Any], guild: Mapping[str, Any], member: Mapping[str, Any], granted: Permission
) -> Permission:
    """Return what is left of `granted` in a channel: overwrites of everyone, then of roles, then of the member."""
    if granted & Permission.ADMINISTRATOR:
        return granted
    overwrites = [item for item in channel.get("permission_overwrites") or () if isinstance(item, Mapping)]
    everyone, user_id = str(guild.get("id")), str((member.get("user") or {}).get("id"))
    roles = set(map(str, member.get("roles") or ()))
    for group in ({everyone}, roles, {user_id}):
        of_group = [overwrite for overwrite in overwrites if str(overwrite.get("id")) in group]
        denied = _bits(overwrite.get("deny") for overwrite in of_group)
        granted = granted & ~denied | _bits(overwrite.get("allow") for overwrite in of_group)
    return granted


def _is_mute(
    channel: Mapping[str, Any], guild: Mapping[str, Any], member: Mapping[str, Any], granted: Permission
) -> bool:
    """Return whether the bot sees a channel without being able to work in it; one that it does not see is private."""
    allowed = allowed_in(channel, guild, member, granted)
    return bool(allowed & Permission.VIEW_CHANNEL) and bool(NEEDED & ~allowed)


def _bits(values: Iterable[Any]) -> Permission:
    found = 0
    for value in values:
        with suppress(TypeError, ValueError):
            found |= int(value)
    return Permission(found & int(_ALL))


def _named(permissions: Permission) -> str:
    return ", ".join((permission.name or "").replace("_", " ").title() for permission in permissions)


def _intent(application: Application) -> Finding:
    if application.reads_content:
        return Finding(name="intents", ok=True, detail="The bot may read what is written.")
    detail = "The message content intent is off: in servers the bot reads only messages that mention it."
    return Finding(name="intents", ok=False, detail=detail, fix=_SWITCH_ON)


def _receiving(listening: Probe) -> Finding:
    return Finding(name="receiving", ok=listening.healthy, detail=listening.detail)


def _starts(state: GatewayState) -> Finding:
    is_enough = state.starts_left > min(_FEW_STARTS, state.starts_total // 2)
    hours = state.resets_after.total_seconds() / 3600
    detail = f"{state.starts_left} of {state.starts_total} starts are left for the next {hours:.0f} hours."
    return Finding(name="starts", ok=is_enough, detail=detail, fix="" if is_enough else _SPARE_STARTS)
