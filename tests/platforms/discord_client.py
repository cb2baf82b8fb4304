"""Plain HTTP and websockets to the fake Discord, as no SDK stands between them and what its pages document.

A pytest plugin of this directory's own tests: the fixture `discord` is such a client, and its server's
time is a fake clock's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import pytest_asyncio

from core.contracts.clock import FakeClock
from tests.platforms.discord_account import INTENTS
from tests.platforms.discord_gateway import Op
from tests.platforms.discord_server import DiscordServer

Json = dict[str, Any]


class Listener:
    """One websocket to the gateway; `number` is that of the last event."""

    def __init__(self, server: DiscordServer, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.session_id = ""
        self.number = 0
        self._server = server

    async def send(self, op: int, data: Any) -> None:
        await self.socket.send_str(json.dumps({"op": op, "d": data}))

    async def identify(self, intents: int = INTENTS, token: str | None = None) -> Json:
        """Start a session and return what READY carries."""
        await self.send(Op.IDENTIFY, {"token": token or self._server.token, "intents": intents, "properties": {}})
        assert (await self.frame())["op"] == Op.HELLO
        ready = await self.event("READY")
        self.session_id = ready["session_id"]
        return ready

    async def resume(self, session_id: str, number: int) -> None:
        """Ask for a session to go on after an event."""
        await self.send(Op.RESUME, {"token": self._server.token, "session_id": session_id, "seq": number})
        assert (await self.frame())["op"] == Op.HELLO

    async def frame(self) -> Json:
        """Return the next frame; a websocket that ends is one with op -1 and its code."""
        message = await self.socket.receive(timeout=5)
        if message.type is not aiohttp.WSMsgType.TEXT:
            return {"op": -1, "d": self.socket.close_code, "t": None}
        frame: Json = message.json()
        self.number = frame["s"] or self.number
        return frame

    async def event(self, name: str) -> Json:
        """Return what the next event carries, which has to be of that name."""
        frame = await self.frame()
        assert frame["t"] == name, frame
        shown: Json = frame["d"]
        return shown

    async def events(self, count: int) -> list[tuple[str, Json]]:
        """Return the next events."""
        frames = [await self.frame() for _ in range(count)]
        return [(frame["t"], frame["d"]) for frame in frames]

    async def closed(self) -> int | None:
        """Return with which code the websocket is closed, after whatever comes before."""
        while (frame := await self.frame())["op"] != -1:
            pass
        code: int | None = frame["d"]
        return code


class DiscordClient:
    """Makes requests as the bot, by path below the API's base."""

    def __init__(self, server: DiscordServer, http: httpx.AsyncClient, sockets: aiohttp.ClientSession) -> None:
        self.server = server
        self.http = http
        self._sockets = sockets

    async def call(
        self, method: str, path: str, body: Any = None, *, token: str | None = "", **more: Any
    ) -> httpx.Response:
        """Make a request; `token` None: without one."""
        headers = {} if token is None else {"Authorization": f"Bot {token or self.server.token}"}
        url = self.server.api_base + path
        return await self.http.request(method, url, json=body, headers=headers, **more)

    async def result(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Return the JSON of an answer that is no refusal; None where it is empty."""
        answer = await self.call(method, path, body, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def refused(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, int]:
        """Return status and code of a refusal."""
        answer = await self.call(method, path, body, **more)
        assert not answer.is_success, answer.text
        return answer.status_code, answer.json()["code"]

    async def wrong_field(self, method: str, path: str, body: Any) -> tuple[str, str]:
        """Return which field is refused, by its path, and with which code."""
        answer = await self.call(method, path, body)
        assert (answer.status_code, answer.json()["code"]) == (400, 50035), answer.text
        names, tree = [], answer.json()["errors"]
        while "_errors" not in tree:
            [(name, tree)] = tree.items()
            names.append(name)
        return ".".join(names), tree["_errors"][0]["code"]

    async def says(self, channel: int, text: str, **fields: Any) -> Json:
        """Post a message as the bot."""
        shown: Json = await self.result("POST", f"/channels/{channel}/messages", {"content": text} | fields)
        return shown

    @asynccontextmanager
    async def listening(self, intents: int = INTENTS) -> AsyncIterator[Listener]:
        """Have a session that was told of all guilds."""
        async with self.connected() as listener:
            await listener.identify(intents)
            for guild in [guild for guild in self.server.directory.guilds.values() if self._is_in(guild.id)]:
                assert (await listener.event("GUILD_CREATE"))["id"] == str(guild.id)
            yield listener

    @asynccontextmanager
    async def connected(self, path: str = "") -> AsyncIterator[Listener]:
        """Have a websocket on which nothing was said yet."""
        url = f"{self.server.gateway_url}{path}?v=10&encoding=json"
        async with self._sockets.ws_connect(url) as socket:
            yield Listener(self.server, socket)

    def _is_in(self, guild_id: int) -> bool:
        return self.server.directory.bot.id in self.server.directory.guilds[guild_id].members


@pytest_asyncio.fixture
async def discord() -> AsyncIterator[DiscordClient]:
    """A server on a fake clock, and a client of it."""
    async with (
        DiscordServer(clock=FakeClock()) as server,
        httpx.AsyncClient(trust_env=False, timeout=5) as http,
        aiohttp.ClientSession() as sockets,
    ):
        yield DiscordClient(server, http, sockets)
