"""Plain HTTP to the fake Telegram, as no SDK stands between it and what the Bot API documents."""

import json

import httpx
import pytest

from core.contracts.clock import FakeClock
from tests.platforms.telegram_server import TOKEN, TelegramServer


class TelegramClient:
    """Calls methods with a form, as the SDK does."""

    def __init__(self, http, server):
        self.http = http
        self.server = server

    async def call(self, method, token=TOKEN, files=None, **params):
        form = {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in params.items()}
        answer = await self.http.post(f"{self.server.api_base}/bot{token}/{method}", data=form, files=files)
        return answer.json()

    async def result(self, method, **params):
        answer = await self.call(method, **params)
        assert answer["ok"], answer
        return answer["result"]

    async def refused(self, method, **params):
        answer = await self.call(method, **params)
        assert not answer["ok"]
        return answer["error_code"], answer["description"]

    async def file(self, path, token=TOKEN):
        return await self.http.get(f"{self.server.api_base}/file/bot{token}/{path}")


@pytest.fixture
async def client():
    async with (
        TelegramServer(TOKEN, clock=FakeClock()) as server,
        httpx.AsyncClient(trust_env=False, timeout=5) as http,
    ):
        server.open_chat(111)
        yield TelegramClient(http, server)
