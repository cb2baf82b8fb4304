"""A Discord channel that listens to its fake platform, and what it hands over; sockets are real."""

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from channels.contract import Mark
from channels.discord.adapter import DiscordChannel
from channels.discord.inbound_json import time_of
from core.contracts.addresses import Address, MembershipBody, MessageBody
from core.contracts.clock import FakeClock
from tests.channels.recording import RecordingSink
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_guilds import BOT, GENERAL, GUILD
from tests.platforms.discord_server import DiscordServer

PATIENCE_SECONDS = 60
_LOOKS = 16
_STEP_SECONDS = 0.25


@dataclass
class Sink(RecordingSink):
    """`events` is what was accepted without what was known already."""

    asked: tuple[str, str] = ("discord", str(BOT))

    @property
    def events(self):
        first = {}
        for event in self.offers:
            first.setdefault(event.key, event)
        return list(first.values())

    @property
    def bodies(self):
        """What was taken in but that the bot is in a guild."""
        return [event.body for event in self.events if not isinstance(event.body, MembershipBody)]

    @property
    def messages(self):
        return [event for event in self.events if isinstance(event.body, MessageBody)]

    @property
    def texts(self):
        return [event.body.text for event in self.messages]

    @property
    def memberships(self):
        return [(event.address.space, event.body.present) for event in self.events if is_membership(event)]

    def knows(self, message, *, chat=GENERAL, thread=None, space=GUILD):
        """Let an earlier run have heard a message of that id."""
        self.known.append(Mark(address=place(chat, thread, space=space), sent_at=time_of(str(message))))


def is_membership(event):
    return isinstance(event.body, MembershipBody)


@dataclass
class World:
    """What the tests of the listening half need at hand."""

    clock: FakeClock
    server: DiscordServer
    channel: DiscordChannel
    sink: Sink = field(default_factory=Sink)
    tasks: list = field(default_factory=list)

    def run(self, channel=None, sink=None):
        task = asyncio.create_task((channel or self.channel).run(sink or self.sink))
        self.tasks.append(task)
        return task

    async def listen(self):
        """Run the channel until it hears, and knows the guild."""
        task = self.run()
        await self.hears()
        await self.until(lambda: any(is_membership(event) for event in self.sink.offers))
        return task

    async def hears(self, channel=None, *, well=True):
        """Return what the probe says when it is as healthy as that; time stands still meanwhile."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (probe := await (channel or self.channel).probe()).healthy is not well:
                await asyncio.sleep(0)
        return probe

    async def stop(self, task):
        task.cancel()
        await asyncio.wait({task})

    async def until(self, condition):
        """Return when `condition` holds; time stands still meanwhile."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await asyncio.sleep(0)

    async def in_time(self, condition):
        """Return when `condition` holds, while time passes as it needs."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await self.pass_time(_STEP_SECONDS)

    async def hears_again(self):
        """Return when the channel is healthy, while time passes as it needs."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (await self.channel.probe()).healthy:
                await self.pass_time(_STEP_SECONDS)

    async def heard(self, count):
        """Return the messages when there are so many; time stands still meanwhile."""
        await self.until(lambda: len(self.sink.messages) >= count)
        return self.sink.messages

    async def pass_time(self, seconds, step=_STEP_SECONDS):
        """Let time pass in steps, with room for requests after each."""
        left = seconds
        while left > 0:
            await self.clock.advance(timedelta(seconds=min(step, left)))
            await self.settle()
            left -= step

    async def settle(self):
        """Let what is under way go on; time stands still meanwhile."""
        for _ in range(_LOOKS):
            await asyncio.sleep(0.0005)


def place(chat=GENERAL, thread=None, *, space=GUILD):
    return Address(
        channel="discord",
        account=str(BOT),
        chat=str(chat),
        thread=None if thread is None else str(thread),
        space=None if space is None else str(space),
    )


def direct(server, user):
    """Return the address of a direct conversation."""
    return place(server.dm(user), space=None)


def discord_channel(server, clock, **changes):
    settings = {"token": TOKEN, "api_base": server.api_base, "gateway_url": server.gateway_url, "clock": clock}
    return DiscordChannel(**({"mask": lambda text: text} | settings | changes))


def heartbeats():
    """Return the threads that keep connections alive."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("keep-alive-handler")]


@asynccontextmanager
async def opened(**settings):
    """Give a channel that does not run yet."""
    clock = FakeClock()
    async with DiscordServer(clock=clock) as server, discord_channel(server, clock, **settings) as channel:
        world = World(clock=clock, server=server, channel=channel)
        try:
            yield world
        finally:
            for task in world.tasks:
                await world.stop(task)
