"""A Telegram channel and its fake platform on one fake clock; sockets are real."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from channels.telegram.adapter import TelegramChannel
from core.contracts.addresses import Address, OutboundItem, TextContent
from core.contracts.clock import FakeClock
from tests.platforms.telegram_server import TOKEN, TelegramServer

ALICE = Address(channel="telegram", account="123456789", chat="111")


@dataclass
class Sink:
    """Accepts events; `errors` are raised first, one for each offer."""

    errors: list = field(default_factory=list)
    events: list = field(default_factory=list)

    async def accept(self, event):
        if self.errors:
            raise self.errors.pop(0)
        self.events.append(event)

    @property
    def texts(self):
        return [event.body.text for event in self.events]


@dataclass
class World:
    """What the tests of the adapter need at hand."""

    clock: FakeClock
    server: TelegramServer
    channel: TelegramChannel
    sink: Sink = field(default_factory=Sink)
    tasks: list = field(default_factory=list)

    def run(self, channel=None):
        task = asyncio.create_task((channel or self.channel).run(self.sink))
        self.tasks.append(task)
        return task

    def channel_with(self, **changes):
        settings = {"token": TOKEN, "api_base": self.server.api_base, "clock": self.clock, "mask": lambda text: text}
        return TelegramChannel(**(settings | changes))

    async def stop(self, task):
        task.cancel()
        await asyncio.wait({task})

    async def until(self, condition):
        """Return when `condition` holds; time stands still meanwhile."""
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0)

    async def pass_time(self, seconds, step=1.0):
        """Let time pass in steps, with room for requests after each."""
        for _ in range(round(seconds / step)):
            await self.clock.advance(timedelta(seconds=step))
            for _ in range(60):
                await asyncio.sleep(0)

    async def polls(self):
        await self.server.wait_for(lambda: self.server.updates.is_polled)

    def text(self, text, external_id=None, chat="111"):
        address = Address(channel="telegram", account="123456789", chat=chat)
        return OutboundItem(id="turn-1/1", address=address, content=TextContent(markdown=text), external_id=external_id)


@pytest.fixture
async def world():
    clock = FakeClock()
    async with TelegramServer(TOKEN, clock=clock) as server:
        server.open_chat(111)
        server.open_chat(222)
        channel = TelegramChannel(token=TOKEN, api_base=server.api_base, clock=clock, mask=lambda text: text)
        async with channel:
            opened = World(clock=clock, server=server, channel=channel)
            yield opened
            for task in opened.tasks:
                await opened.stop(task)
