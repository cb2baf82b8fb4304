"""The host's socket, served for real, over a fake host."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bot.console.server import serve
from bot.control.client import HostClient, connect
from bot.control.server import build_control
from channels.feed import FeedChannel
from core.contracts.addresses import Sender
from core.contracts.clock import FakeClock
from core.contracts.errors import NotFound
from tests.bot.console.fake_host import FakeHost
from tests.bot.control.fake_sessions import FakeSessions

OWNER = Sender(identity="local:owner", name="Ada")


class HeadlessHost(FakeHost):
    """A fake host with turns: `turn` is what one tells; an event in it is awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = ()
        self.asked = []

    async def run_headless(self, request):
        if request.agent == "nobody":
            raise NotFound("agent", request.agent)
        self.asked.append(request)
        for step in self.turn:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, Exception):
                raise step
            else:
                yield step


@dataclass
class Control:
    host: HeadlessHost
    terminal: FeedChannel
    socket: Path
    client: HostClient


def raw(socket):
    """Return an HTTP client of a socket that need not be served yet."""
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    transport = httpx.AsyncHTTPTransport(uds=str(socket), verify=plain)
    return httpx.AsyncClient(transport=transport, base_url="http://host")


@asynccontextmanager
async def serving(socket, host=None, sessions=None):
    """Serve a host on `socket` until the block ends."""
    host = host or HeadlessHost()
    sessions = sessions or FakeSessions()
    terminal = FeedChannel("terminal", FakeClock())
    channel = asyncio.create_task(terminal.run(host))
    await asyncio.sleep(0)
    try:
        async with serve(build_control(host, terminal, OWNER, sessions), uds=socket), connect(socket) as client:
            yield Control(host=host, terminal=terminal, socket=socket, client=client)
    finally:
        channel.cancel()
        await asyncio.wait({channel})
