"""Socket Mode: Slack's events over a connection that this host opens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from channels.slack.bolt import Take, make_app
from channels.slack.health import Health
from channels.slack.limits import Timing
from channels.slack.supervision import answered
from channels.slack.transport import SlackApi
from channels.supervision import Backoff
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""How often the connection is looked at, of the machine's own time."""
_PING_SECONDS = 5.0
"""The SDK counts a connection as dead after four pings without an answer."""


class Socket:
    """Keeps one socket open. The SDK mends what breaks; one that stays broken is opened anew."""

    def __init__(
        self, api: SlackApi, *, app_token: str, api_base: str, clock: Clock, timing: Timing, health: Health
    ) -> None:
        self._api = api
        self._app_token = app_token
        self._api_base = api_base
        self._clock = clock
        self._timing = timing
        self._health = health

    async def run(self, take: Take, *, team: str) -> None:
        """Hand over what comes until cancelled.

        Raises:
            ChannelDown: Slack does not let the app in.
        """
        app = make_app(take, team=team)
        backoff = Backoff(self._timing.reconnect_first, self._timing.reconnect_longest)
        while True:
            url = await answered(self._api.open_socket, clock=self._clock, timing=self._timing, failed=self._failed)
            async with self._opened(app, url) as client:
                backoff.reset()
                await self._watch(client)
            self._health.disconnected("the connection is lost and is being opened again")
            await self._clock.sleep(backoff.next())

    def _failed(self, error: ChannelError) -> None:
        self._health.disconnected(error.detail)

    @asynccontextmanager
    async def _opened(self, app: AsyncApp, url: str) -> AsyncIterator[SocketModeClient]:
        terse = logging.getLogger(f"{__name__}.sdk")
        # It logs whole stack traces of lost connections as errors, and goes on.
        terse.setLevel(logging.CRITICAL)
        web = AsyncWebClient(base_url=self._api_base, logger=terse, retry_handlers=[])
        web.proxy = None
        handler = AsyncSocketModeHandler(
            app, self._app_token, logger=terse, web_client=web, ping_interval=_PING_SECONDS
        )
        client = handler.client
        client.proxy = None
        client.wss_uri = url
        client.on_message_listeners.append(self._heard)
        try:
            async with asyncio.timeout(self._timing.answer_timeout.total_seconds()):
                await client.connect()
            self._health.connected()
        except TimeoutError:
            self._health.disconnected("Slack's socket cannot be opened")
        try:
            yield client
        finally:
            await _closed(client)

    async def _heard(self, _: Any) -> None:
        self._health.connected()

    async def _watch(self, client: SocketModeClient) -> None:
        """Return when the connection is down for too long; say meanwhile how it is."""
        loop = asyncio.get_running_loop()
        never = loop.create_future()
        good_at = loop.time()
        try:
            while loop.time() - good_at < self._timing.socket_silence.total_seconds():
                await asyncio.wait({never}, timeout=_LOOK_SECONDS)
                if self._health.lost_for_good:
                    raise ChannelDown(self._health.lost_for_good)
                if await client.is_connected():
                    good_at = loop.time()
                    self._health.connected()
                else:
                    self._health.disconnected("the connection broke and is being opened again")
                    await self._still_welcome()
        finally:
            never.cancel()

    async def _still_welcome(self) -> None:
        """See that the tokens are good while there is no connection.

        Raises:
            ChannelDown: They are not.
        """
        try:
            await self._api.identity()
        except ChannelDown:
            raise
        except ChannelError as error:
            self._health.disconnected(error.detail)


async def _closed(client: SocketModeClient) -> None:
    """Close a client with all its tasks, which it cancels and does not wait for."""
    tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
    await client.close()
    await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
