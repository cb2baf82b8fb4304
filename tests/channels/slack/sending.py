"""The outbound half of a Slack channel and its fake platform on one fake clock; sockets are real."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from aiohttp import web

from channels.pacing import ChatPacer
from channels.slack.deliveries import Deliveries
from channels.slack.downloads import Downloads
from channels.slack.limits import Timing
from channels.slack.lookups import Lookups
from channels.slack.preview import Preview
from channels.slack.statuses import Statuses
from channels.slack.streams import LiveMessage, Streams
from channels.slack.transport import SlackApi
from channels.slack.uploads import Uploads
from core.contracts.addresses import Address, OutboundItem, TextContent
from core.contracts.clock import FakeClock
from tests.platforms.slack_server import APP_TOKEN, TOKEN, SlackServer
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB_DM, ROOM, TEAM

DIRECT = Address(channel="slack", account=TEAM, chat=ALICE_DM, space=TEAM)
OTHER = Address(channel="slack", account=TEAM, chat=BOB_DM, space=TEAM)
CHANNEL = Address(channel="slack", account=TEAM, chat=ROOM, space=TEAM)

HELD_AFTER = 0.2
"""A request that takes so many real seconds is taken for one that a test holds."""


@dataclass
class Scene:
    """What the tests of the outbound half need at hand."""

    clock: FakeClock
    server: SlackServer
    api: SlackApi
    timing: Timing
    pacer: ChatPacer
    streams: Streams
    statuses: Statuses
    uploads: Uploads
    deliveries: Deliveries
    lookups: Lookups
    downloads: Downloads
    sent: list = field(default_factory=list)

    async def on_sent(self, external_id):
        self.sent.append(external_id)

    def asked(self, address=DIRECT, text="question"):
        """Let Alice ask at the top level of a channel; return the address of the thread below it, and her ts."""
        ts = self.server.user_says(address.chat, ALICE, text)
        self.streams.note_writer(replace(address, thread=ts), TEAM, ALICE)
        return replace(address, thread=ts)

    def reply(self, address, on_sent=None):
        return Preview(
            LiveMessage(self.api, self.streams, address=address, clock=self.clock, timing=self.timing),
            self.statuses,
            address=address,
            pacer=self.pacer,
            clock=self.clock,
            timing=self.timing,
            on_sent=on_sent or self.on_sent,
        )

    async def until(self, condition):
        """Return when `condition` holds; time stands still meanwhile."""
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0)

    async def pass_time(self, seconds, step=0.5):
        """Let time pass in steps; what is asked in one is answered before the next, unless it is held."""
        for _ in range(round(seconds / step)):
            await self._settle()
            await self.clock.advance(timedelta(seconds=step))
        await self._settle()

    async def _settle(self):
        """Return when nothing is under way; time stands still meanwhile."""
        patience = asyncio.get_running_loop().time() + HELD_AFTER
        quiet = 0
        while quiet < 20 and asyncio.get_running_loop().time() < patience:
            await asyncio.sleep(0)
            quiet = 0 if self.api._connection.session.connector._acquired else quiet + 1

    async def in_pace(self, awaitable):
        """Run `awaitable` while time passes as it needs, and return what it comes to."""
        task = asyncio.ensure_future(awaitable)
        async with asyncio.timeout(60):
            while not task.done():
                await self._settle()
                if not task.done() and self.clock.sleeping:
                    await self.clock.advance(timedelta(seconds=0.1))
        return task.result()

    async def deliver(self, item):
        return await self.in_pace(self.deliveries.deliver(item))

    def text_of(self, external_id, chat=ALICE_DM):
        """Return the text of a message as it is now."""
        return self.server.workspace.channels[chat].messages[external_id.rpartition(":")[2]].text


def text(markdown, address=DIRECT, external_id=None, item_id="turn-1/1", **more):
    content = TextContent(markdown=markdown)
    return OutboundItem(id=item_id, address=address, content=content, external_id=external_id, **more)


@asynccontextmanager
async def answering(body, media_type="application/json", status=200, headers=None):
    """Give the address of a server that answers everything alike."""

    async def serve(request):
        await request.read()
        return web.Response(body=body, status=status, headers={"Content-Type": media_type} | (headers or {}))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def opened(timing=None, mask=lambda text: text, **server_options):
    """Give a scene with a fake Slack, and close both afterwards."""
    clock, timing = FakeClock(), timing or Timing()
    async with SlackServer(clock=clock, **server_options) as server:
        api = SlackApi(TOKEN, server.api_base, mask, timing, app_token=APP_TOKEN)
        pacer = ChatPacer(clock, lambda _chat: timing.edit_interval)
        uploads = Uploads(api, clock, timing)
        try:
            yield Scene(
                clock=clock,
                server=server,
                api=api,
                timing=timing,
                pacer=pacer,
                streams=Streams(clock),
                statuses=Statuses(api, clock),
                uploads=uploads,
                deliveries=Deliveries(api, pacer, uploads),
                lookups=Lookups(api, uploads, clock, timing),
                downloads=Downloads(api, clock, timing),
            )
        finally:
            await api.aclose()
