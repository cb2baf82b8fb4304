"""A console with its fake host, and an httpx client that speaks to it as a browser would."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from bot.console.app import build_console
from bot.console.sessions import ConsoleSessions
from channels.feed import FeedChannel
from core.contracts.addresses import Sender
from core.contracts.clock import FakeClock
from tests.bot.console.fake_host import FakeHost

OWNER = Sender(identity="web:local", name="Ada")
ORIGIN = "http://127.0.0.1:8787"
SCRIPT = {"accept": "application/json"}


@dataclass
class Kit:
    host: FakeHost
    web: FeedChannel
    clock: FakeClock
    sessions: ConsoleSessions
    app: object

    def browser(self, **options):
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=ORIGIN, **options)

    @asynccontextmanager
    async def signed_in(self):
        async with self.browser() as browser:
            answer = await browser.get("/login", params={"token": self.sessions.new_link_token()})
            assert answer.status_code == 303
            yield browser

    def csrf(self):
        """The token of the only session there is."""
        (session,) = self.sessions._sessions.values()
        return session.csrf


@asynccontextmanager
async def running_console(**options):
    """Give a console whose web channel runs."""
    host, clock = FakeHost(), FakeClock()
    web = FeedChannel("web", clock)
    sessions = ConsoleSessions(clock)
    app = build_console(api=host, web=web, sessions=sessions, clock=clock, owner=OWNER, **options)
    channel = asyncio.create_task(web.run(host))
    await asyncio.sleep(0)
    try:
        yield Kit(host=host, web=web, clock=clock, sessions=sessions, app=app)
    finally:
        channel.cancel()
        await asyncio.gather(channel, return_exceptions=True)


def form_token(page):
    """The CSRF token as a page carries it."""
    return re.search(r'name="csrf" value="([^"]+)"', page)[1]
