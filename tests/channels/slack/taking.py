"""A Slack channel that listens to its fake platform, and what it hands over; sockets are real."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.console.server import serve
from channels.contract import Mark
from channels.slack.adapter import SlackChannel
from core.contracts.addresses import Address, OutboundItem
from core.contracts.clock import FakeClock
from tests.channels.recording import RecordingSink
from tests.platforms.slack_server import APP_TOKEN, SIGNING_SECRET, TOKEN, SlackServer
from tests.platforms.slack_workspace import TEAM


@dataclass
class Sink(RecordingSink):
    """`events` is what was accepted without what was known already: `known_keys` are messages of an earlier run."""

    asked: tuple[str, str] = ("slack", TEAM)
    known_keys: set = field(default_factory=set)

    @property
    def events(self):
        firsts = {event.key: event for event in reversed(self.offers) if event.key not in self.known_keys}
        return [event for event in self.offers if firsts.get(event.key) is event]

    @property
    def bodies(self):
        return [event.body for event in self.events]

    @property
    def texts(self):
        return [event.body.text for event in self.events]

    def knows(self, channel, ts, thread=None):
        """Let an earlier run have heard a message of that ts."""
        seconds, _, micros = ts.partition(".")
        sent_at = datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(micros))
        self.known_keys.add(f"m/{channel}/{ts}")
        self.known.append(Mark(address=place(channel, thread), sent_at=sent_at))


@dataclass
class World:
    """What the tests of the listening half need at hand."""

    clock: FakeClock
    server: SlackServer
    channel: SlackChannel
    sink: Sink = field(default_factory=Sink)
    tasks: list = field(default_factory=list)
    sent: int = 0

    def run(self, channel=None, sink=None):
        task = asyncio.create_task((channel or self.channel).run(sink or self.sink))
        self.tasks.append(task)
        return task

    async def listen(self):
        """Run the channel until it says that it hears."""
        task = self.run()
        await self.hears()
        return task

    async def hears(self, channel=None, *, well=True):
        async with asyncio.timeout(60):
            while (await (channel or self.channel).probe()).healthy is not well:
                await asyncio.sleep(0)

    async def stop(self, task):
        task.cancel()
        await asyncio.wait({task})

    async def until(self, condition):
        """Return when `condition` holds; time stands still meanwhile."""
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0)

    async def heard(self, count):
        """Return the events when there are so many."""
        await self.until(lambda: len(self.sink.events) >= count)
        return self.sink.events

    async def acked(self, count=None):
        """Return when so many things that Slack told, or all that it could tell, were acknowledged."""
        told = self.server.deliveries.all
        await self.server.wait_for(lambda: all(one.acked_at is not None or one.is_lost for one in told[:count]))

    async def sends(self, address, content):
        """Send something new, and return its external id."""
        self.sent += 1
        return await self.channel.deliver(OutboundItem(id=f"turn-1/{self.sent}", address=address, content=content))

    async def pass_time(self, seconds, step=0.5):
        """Let time pass in steps, with room for requests after each."""
        for _ in range(round(seconds / step)):
            await self.clock.advance(timedelta(seconds=step))
            for _ in range(60):
                await asyncio.sleep(0)


def place(channel, thread=None):
    return Address(channel="slack", account=TEAM, chat=channel, thread=thread, space=TEAM)


def slack_channel(server, clock, **changes):
    settings = {"bot_token": TOKEN, "app_token": APP_TOKEN, "api_base": server.api_base, "clock": clock}
    return SlackChannel(**({"mask": lambda text: text} | settings | changes))


@asynccontextmanager
async def opened(**settings):
    """Give a channel over Socket Mode that does not run yet."""
    clock = FakeClock()
    async with SlackServer(clock=clock) as server, slack_channel(server, clock, **settings) as channel:
        world = World(clock=clock, server=server, channel=channel)
        try:
            yield world
        finally:
            for task in world.tasks:
                await world.stop(task)


@asynccontextmanager
async def posted_to(**settings):
    """Give a channel over HTTP that does not run yet, and the address that Slack posts to."""
    # The SDK compares a signature's time with the machine's.
    clock = FakeClock(datetime.now(UTC))
    settings = {"app_token": None, "signing_secret": SIGNING_SECRET} | settings
    async with SlackServer(clock=clock) as server, slack_channel(server, clock, **settings) as channel:
        world = World(clock=clock, server=server, channel=channel)
        async with serve(channel.webhook, listen="127.0.0.1:0") as bound:
            try:
                yield world, f"http://{bound.removeprefix('http://')}/slack/events"
            finally:
                for task in world.tasks:
                    await world.stop(task)
