"""A wired host on Discord: the real SDK talks to a fake server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bot.config.model import Channels, DiscordSettings
from bot.config.secrets import Secret
from bot.conversations.commands import COMMANDS, menus
from channels.discord.adapter import DiscordChannel
from channels.discord.limits import Timing
from core.contracts.clock import FakeClock
from tests.acceptance.wired_host import OpenChannel, WiredHost, wired_host
from tests.platforms.discord_guilds import ALICE, GENERAL
from tests.platforms.discord_server import DiscordServer
from tests.platforms.model_script import Step

ALICE_IDENTITY = "discord:7001"


@dataclass(repr=False)
class WiredDiscord(WiredHost):
    """A running host and the server around it. Alice is an owner."""

    discord: DiscordServer
    entry: int | None = None

    def texts(self, channel: int) -> list[str]:
        """Return what the bot says in a channel now, oldest first, but for how it was let in."""
        return [message.text for message in self.discord.visible(channel) if message.id != self.entry]

    async def let_in(self) -> None:
        """Let an owner press the button with which the bot asks to be let into the guild."""
        await self.until(lambda: self.discord.visible(GENERAL))
        (asked,) = self.discord.visible(GENERAL)
        self.entry = asked.id
        self.discord.presses(ALICE, GENERAL, asked.id, asked.buttons["Allow here"])
        await self.until(lambda: not self.discord.visible(GENERAL)[0].buttons)
        await self.until_settled()


def discord_channel(
    discord: DiscordServer, clock: FakeClock, timing: Timing | None = None
) -> tuple[OpenChannel, Channels]:
    """Return what opens a channel to a server, and its part of a configuration."""

    def channel(mask: Callable[[str], str]) -> DiscordChannel:
        return DiscordChannel(
            token=discord.token,
            api_base=discord.api_base,
            gateway_url=discord.gateway_url,
            clock=clock,
            mask=mask,
            timing=timing,
            menus=menus(COMMANDS.values(), owners=[ALICE_IDENTITY]),
        )

    return channel, Channels(discord=DiscordSettings(token=Secret(discord.token), agent="lodger"))


@asynccontextmanager
async def wired_discord(
    directory: Path, *steps: Step, timing: Timing | None = None, is_let_in: bool = True, **more: Any
) -> AsyncIterator[WiredDiscord]:
    """Run a host that listens, for the length of the block; `more` is as in `wired_host`."""
    clock = FakeClock()
    async with DiscordServer(clock=clock) as discord:
        channel, channels = discord_channel(discord, clock, timing)
        owners = [ALICE_IDENTITY]
        async with wired_host(directory, channel, *steps, clock=clock, channels=channels, owners=owners, **more) as run:
            await run.until(lambda: discord.gateway.is_live)
            wired = WiredDiscord(
                **{field.name: getattr(run, field.name) for field in fields(WiredHost)}, discord=discord
            )
            if is_let_in:
                await wired.let_in()
            yield wired
