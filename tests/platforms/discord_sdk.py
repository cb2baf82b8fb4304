"""The real discord.py, pointed at the fake.

async with DiscordServer(clock=FakeClock()) as server, running(server) as bot:
    server.user_says(GENERAL, ALICE, "hello")
    message = await bot.hear("message")
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import yarl

from tests.platforms.discord_account import INTENTS
from tests.platforms.discord_server import DiscordServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it imports audioop, for voice
    import discord
    from discord import app_commands


class Bot(discord.Client):
    """Notes everything it hears; what interactions come is in a queue, too."""

    def __init__(self, server: DiscordServer, intents: int = INTENTS, **options: Any) -> None:
        super().__init__(intents=discord.Intents(intents), guild_ready_timeout=0.05, **options)
        self.server = server
        self.tree = app_commands.CommandTree(self)
        self.heard: list[tuple[str, Any]] = []
        self.interactions: asyncio.Queue[discord.Interaction[Any]] = asyncio.Queue()
        self._news = asyncio.Event()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        self.heard.append((event, args[0] if args else None))
        self._news.set()
        super().dispatch(event, *args, **kwargs)

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        self.interactions.put_nowait(interaction)

    async def next_interaction(self) -> discord.Interaction[Any]:
        return await asyncio.wait_for(self.interactions.get(), 30)

    def all_of(self, event: str) -> list[Any]:
        """Return what came with each event of a name."""
        return [what for name, what in self.heard if name == event]

    async def hear(self, event: str, count: int = 1) -> Any:
        """Return what came with the event of that name and number, once it has come."""
        async with asyncio.timeout(60):
            while len(self.all_of(event)) < count:
                self._news.clear()
                await self._news.wait()
        return self.all_of(event)[count - 1]


@contextmanager
def pointed_at(server: DiscordServer) -> Iterator[None]:
    """Let the SDK talk to the fake; its addresses are attributes of classes."""
    route, socket = discord.http.Route, discord.gateway.DiscordWebSocket
    before = route.BASE, socket.DEFAULT_GATEWAY
    route.BASE, socket.DEFAULT_GATEWAY = server.api_base, yarl.URL(server.gateway_url)
    try:
        yield
    finally:
        route.BASE, socket.DEFAULT_GATEWAY = before


@asynccontextmanager
async def running(server: DiscordServer, **options: Any) -> AsyncIterator[Bot]:
    """Have a client that is ready."""
    with pointed_at(server):
        bot = Bot(server, **options)
        run = asyncio.create_task(bot.start(server.token))
        try:
            await bot.hear("ready")
            yield bot
        finally:
            await bot.close()
            await asyncio.wait({run})


__all__ = ["Bot", "app_commands", "discord", "pointed_at", "running"]
