"""The sending half of Discord and its fake platform on one fake clock; sockets are real."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from channels.discord.deliveries import Deliveries
from channels.discord.downloads import Downloads
from channels.discord.limits import Timing
from channels.discord.replies import Replies
from channels.discord.threads import Threads
from channels.discord.transport import DiscordApi
from channels.pacing import ChatPacer
from core.contracts.addresses import (
    Address,
    Button,
    CardContent,
    FileContent,
    OutboundItem,
    ReactionContent,
    Removal,
    TextContent,
)
from core.contracts.clock import FakeClock
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_guilds import BOT, GENERAL, GUILD, RANDOM
from tests.platforms.discord_server import DiscordServer

HERE = Address(channel="discord", account=str(BOT), chat=str(GENERAL), space=str(GUILD))
ELSEWHERE = Address(channel="discord", account=str(BOT), chat=str(RANDOM), space=str(GUILD))
YES = Button(token="k" * 40, label="Yes")
_NUMBERS = itertools.count()
_PATIENCE = 1_000
_QUIET = 6
"""So many looks at nothing under way mean that all has settled."""


def thread_of(message, chat=GENERAL):
    """Return the address of the thread that begins with a message."""
    return Address(channel="discord", account=str(BOT), chat=str(chat), thread=str(message), space=str(GUILD))


def item(content, address=HERE, **more):
    """Return an item with an id of its own."""
    named = {"id": f"item-{next(_NUMBERS)}"} | more
    return OutboundItem(address=address, content=content, **named)


def text(markdown, address=HERE, *, silent=False, **more):
    return item(TextContent(markdown=markdown, silent=silent), address, **more)


def card(address=HERE, *, rows=((YES,),), code="", text="Run it?", **more):
    return item(CardContent(text=text, code=code, rows=rows), address, **more)


def file(path, address=HERE, *, caption="", name=None, media_type="text/plain", **more):
    content = FileContent(path=str(path), name=name or path.name, media_type=media_type, caption=caption)
    return item(content, address, **more)


def reaction(emoji, message, address=HERE):
    return item(ReactionContent(emoji=emoji), address, reply_to=message)


def removal(message, address=HERE):
    return item(Removal(), address, external_id=message)


class WatchedApi(DiscordApi):
    """Counts the calls that are `under_way`."""

    under_way = 0

    async def _made(self, route, request):
        self.under_way += 1
        try:
            return await super()._made(route, request)
        finally:
            self.under_way -= 1


@dataclass
class World:
    """What the tests of the sending half need at hand; `sent` are ids that previews told of."""

    clock: FakeClock
    server: DiscordServer
    api: WatchedApi
    timing: Timing
    pacer: ChatPacer = None
    threads: Threads = None
    deliveries: Deliveries = None
    replies: Replies = None
    downloads: Downloads = None
    sent: list = field(default_factory=list)

    def __post_init__(self):
        self.begin_anew()

    def begin_anew(self):
        """Forget what the process knew, as after a restart."""
        self.pacer = ChatPacer(self.clock, lambda _chat: self.timing.edit_interval)
        self.threads = Threads(self.api)
        self.deliveries = Deliveries(self.api, self.threads, self.pacer, self.clock)
        self.replies = Replies(self.api, self.threads, self.pacer, self.clock, self.timing)
        self.downloads = Downloads(self.api, self.clock, self.timing)

    async def deliver(self, item):
        """Deliver while time passes as it needs."""
        return await self.in_time(self.deliveries.deliver(item))

    async def in_time(self, awaitable, seconds=3600):
        """Run `awaitable` while time passes as it needs."""
        task = asyncio.create_task(awaitable)
        for _ in range(seconds):
            await self.settle(task)
            if task.done() or not self.clock.sleeping:
                break
            await self.clock.advance(timedelta(seconds=1))
        async with asyncio.timeout(60):
            return await task

    async def settle(self, task=None):
        """Let what is under way go on until nothing is, or it is held; time stands still meanwhile."""
        quiet = 0
        for _ in range(_PATIENCE):
            await asyncio.sleep(0.0005)
            quiet = 0 if self.api.under_way else quiet + 1
            if quiet == _QUIET or (task is not None and task.done()):
                return

    async def pass_time(self, seconds, step=0.5):
        await self.settle()
        for _ in range(round(seconds / step)):
            await self.clock.advance(timedelta(seconds=step))
            await self.settle()

    async def until(self, condition):
        """Return when `condition` holds; time stands still meanwhile."""
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0)

    async def on_sent(self, external_id):
        self.sent.append(external_id)

    def texts(self, channel=GENERAL):
        return [message.text for message in self.server.visible(channel)]


@asynccontextmanager
async def opened(timing=None, token=TOKEN):
    clock = FakeClock()
    timing = timing or Timing()
    async with DiscordServer(clock=clock) as server:
        api = WatchedApi(token, server.api_base, clock=clock, mask=lambda told: told, timing=timing)
        try:
            yield World(clock=clock, server=server, api=api, timing=timing)
        finally:
            await api.aclose()
