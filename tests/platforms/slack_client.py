"""Plain HTTP to the fake Slack, as no SDK stands between it and what the Web API documents.

A pytest plugin of this directory's own tests: the fixture `slack` is such a client, and its server's
time is a fake clock's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest_asyncio

from core.contracts.clock import FakeClock
from tests.platforms.slack_server import SlackServer
from tests.platforms.slack_workspace import ROOM

Json = dict[str, Any]


class SlackClient:
    """Calls methods with JSON, or with a form."""

    def __init__(self, http: httpx.AsyncClient, server: SlackServer, clock: FakeClock) -> None:
        self.http = http
        self.server = server
        self.clock = clock

    async def send(self, method: str, *, token: str | None = None, form: bool = False, **params: Any) -> httpx.Response:
        token = self.server.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"{self.server.api_base}{method}"
        if form:
            return await self.http.post(url, data=params, headers=headers)
        return await self.http.post(url, json=params, headers=headers)

    async def call(self, method: str, **params: Any) -> Json:
        answer: Json = (await self.send(method, **params)).json()
        return answer

    async def result(self, method: str, **params: Any) -> Json:
        answer = await self.call(method, **params)
        assert answer["ok"], answer
        return answer

    async def refused(self, method: str, **params: Any) -> str:
        answer = await self.call(method, **params)
        assert not answer["ok"], answer
        return str(answer["error"])

    async def post(self, text: str, channel: str = ROOM, **params: Any) -> str:
        """Post a message and return its ts."""
        return str((await self.result("chat.postMessage", channel=channel, text=text, **params))["ts"])

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance(timedelta(seconds=seconds))


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackClient]:
    clock = FakeClock()
    async with (
        SlackServer(clock=clock) as server,
        httpx.AsyncClient(trust_env=False, timeout=5) as http,
    ):
        yield SlackClient(http, server, clock)
