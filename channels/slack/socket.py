"""Socket Mode: Slack's events over a connection that this host opens."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from channels.health import Health
from channels.slack.bolt import Take, make_app
from channels.slack.limits import Timing
from channels.slack.payload import Json, text
from channels.slack.supervision import answered
from channels.slack.transport import SlackApi
from channels.supervision import Backoff
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

logger = logging.getLogger(__name__)

LOOK_INTERVAL = timedelta(seconds=1)
"""How often the connection is looked at, of the machine's own time."""
PING_INTERVAL = timedelta(seconds=5)
"""The SDK counts a connection as dead when a ping is not answered, and opens another."""

_REFUSALS = frozenset({"too_many_websockets", "link_disabled"})
"""Why Slack ends a socket that it does not want another for, as in docs.slack.dev/apis/events-api/using-socket-mode."""


class Socket:
    """Keeps one socket open. The SDK mends what breaks; one that stays broken, or is refused, is opened anew."""

    def __init__(
        self,
        api: SlackApi,
        *,
        app_token: str,
        api_base: str,
        clock: Clock,
        timing: Timing,
        health: Health,
        ping_interval: timedelta = PING_INTERVAL,
    ) -> None:
        self._api = api
        self._app_token = app_token
        self._api_base = api_base
        self._clock = clock
        self._timing = timing
        self._health = health
        self._ping_interval = ping_interval
        self._sockets: int | None = None

    @property
    def sockets(self) -> int | None:
        """How many sockets of the app were open when this one was greeted; None while it is not."""
        return self._sockets

    async def run(self, take: Take, *, team: str, connected: Callable[[], None]) -> None:
        """Hand over what comes until cancelled; `connected` is called with each greeting, before what follows it.

        Raises:
            ChannelDown: Slack does not let the app in.
        """
        app = make_app(take, team=team)
        backoff = Backoff(self._timing.reconnect_first, self._timing.reconnect_longest)
        try:
            await self._keep_open(app, backoff, connected)
        finally:
            self._health.disconnected("the host does not listen")

    async def _keep_open(self, app: AsyncApp, backoff: Backoff, connected: Callable[[], None]) -> None:
        while True:
            url = await answered(self._api.open_socket, clock=self._clock, timing=self._timing, failed=self._failed)
            refused = asyncio.Event()
            async with self._client(app, url) as client:
                if await self._greeted(client, refused, connected):
                    backoff.reset()
                    await self._watch(client, refused)
            pause = backoff.next()
            logger.warning(
                "slack_socket_ended", extra={"detail": self._health.probe().detail, "wait": pause.total_seconds()}
            )
            await self._clock.sleep(pause)

    def _failed(self, error: ChannelError) -> None:
        self._health.disconnected(error.detail)

    @asynccontextmanager
    async def _client(self, app: AsyncApp, url: str) -> AsyncIterator[SocketModeClient]:
        """Give the SDK's client of a socket that is not open yet, and close it."""
        terse = logging.getLogger(f"{__name__}.sdk")
        # It logs whole stack traces of lost connections as errors, and goes on.
        terse.setLevel(logging.CRITICAL)
        web = AsyncWebClient(base_url=self._api_base, logger=terse, retry_handlers=[])
        web.proxy = None
        seconds = self._ping_interval.total_seconds()
        handler = AsyncSocketModeHandler(app, self._app_token, logger=terse, web_client=web, ping_interval=seconds)
        client = handler.client
        client.proxy = None
        client.wss_uri = url
        try:
            yield client
        finally:
            self._sockets = None
            await _closed(client)

    async def _greeted(self, client: SocketModeClient, refused: asyncio.Event, connected: Callable[[], None]) -> bool:
        """Open the socket; return whether Slack said hello. Whenever it ends one for good, `refused` is set."""
        settled = asyncio.Event()

        async def hear(message: WSMessage) -> None:
            # The SDK comes here with a frame before it looks at it, and at the next one after that.
            frame = _own_frame(message)
            match text(frame, "type"):
                case "hello":
                    count = frame.get("num_connections")
                    self._sockets = count if isinstance(count, int) else None
                    self._health.connected()
                    connected()
                    settled.set()
                case "disconnect" if text(frame, "reason") in _REFUSALS:
                    self._health.disconnected(f"Slack ended the socket ({text(frame, 'reason')})")
                    # Else the SDK would ask for the next one at once, for ever.
                    client.closed = True
                    refused.set()
                    settled.set()

        client.on_message_listeners.append(hear)
        try:
            async with asyncio.timeout(self._timing.answer_timeout.total_seconds()):
                await client.connect()
                await settled.wait()
        except TimeoutError:
            self._health.disconnected("Slack's socket cannot be opened")
        return settled.is_set() and not refused.is_set()

    async def _watch(self, client: SocketModeClient, refused: asyncio.Event) -> None:
        """Return when Slack refused the connection, or it is down for too long; say meanwhile how it is."""
        loop = asyncio.get_running_loop()
        ended = asyncio.create_task(refused.wait())
        good_at = loop.time()
        try:
            while loop.time() - good_at < self._timing.socket_silence.total_seconds():
                await asyncio.wait({ended}, timeout=LOOK_INTERVAL.total_seconds())
                if refused.is_set():
                    return
                if self._health.lost_for_good:
                    raise ChannelDown(self._health.lost_for_good)
                if await client.is_connected():
                    good_at = loop.time()
                    self._health.connected()
                else:
                    self._health.disconnected("the connection broke and is being opened again")
                    await self._still_welcome()
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)

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


def _own_frame(message: WSMessage) -> Json:
    """Return a frame that is about the socket itself; nothing for one that brings something."""
    if '"envelope_id"' in message.data:
        return {}
    try:
        frame = json.loads(message.data)
    except ValueError:
        return {}
    return frame if isinstance(frame, dict) else {}


async def _closed(client: SocketModeClient) -> None:
    """Close a client with all its tasks, which it cancels and does not wait for."""
    tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
    await client.close()
    await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
