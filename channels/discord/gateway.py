"""Discord's gateway: events over a connection that this host opens.

The SDK's websocket speaks the protocol: heartbeats, compression, resuming. Its client does not drive it,
as that one waits on the machine's own clock, starts sessions without a look at how many are left, and
keeps a second copy of all servers; nor do its parsers see events, which are read here as they come.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import aiohttp
import yarl

from channels.discord.budget import pause_before_start
from channels.discord.limits import Timing
from channels.discord.transport import DiscordApi
from channels.health import Health
from channels.supervision import Backoff, pause_after
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # It imports audioop, for voice.
    import discord
    from discord.gateway import DiscordWebSocket, ReconnectWebSocket

logger = logging.getLogger(__name__)

Take: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Takes an event by its name, with its data."""

_PORTAL = "discord.com/developers/applications"
TOKEN_REFUSED = f"Discord refuses the bot's token. Make a new one ({_PORTAL}, Bot, Reset Token) and put it in."
_REFUSALS = {
    4004: TOKEN_REFUSED,
    4011: "The bot is in more servers than one connection may serve (2,500); Lodger opens one.",
    4014: (
        "Discord refuses the connection because the message content intent is off, without which the bot cannot read"
        f" what is written in servers. Switch it on: {_PORTAL}, Bot, Privileged Gateway Intents."
    ),
}
"""docs.discord.com/developers/topics/opcodes-and-status-codes#gateway-close-event-codes, read on 2026-11-30."""
_OTHER_REFUSALS = frozenset({4010, 4012, 4013})

_NEW_SESSION_AFTER, _NEW_SESSION_BEFORE = timedelta(seconds=1), timedelta(seconds=5)
"""docs.discord.com/developers/events/gateway#resuming, read on 2026-11-30: wait so long after a session was voided."""
_STARTED = frozenset({"READY", "RESUMED"})
_LONGEST_LIMIT_SECONDS = 30.0
"""How long the SDK may wait out a limit while it logs in."""
_FAILURES = (OSError, TimeoutError, aiohttp.ClientError, discord.DiscordException)


class _Lost(Exception):
    """The connection ended; `can_resume` says whether its session goes on."""

    def __init__(self, detail: str, *, can_resume: bool = True) -> None:
        super().__init__(detail)
        self.can_resume = can_resume


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """What Discord needs to go on where a connection ended."""

    id: str
    gateway: yarl.URL
    sequence: int


class Gateway:
    """Keeps one connection. What breaks is resumed, what cannot be resumed is begun anew."""

    def __init__(
        self,
        api: DiscordApi,
        *,
        token: str,
        api_base: str,
        gateway_url: str,
        clock: Clock,
        timing: Timing,
        health: Health,
    ) -> None:
        """Take the `gateway_url` of the configuration; empty: what Discord names."""
        self._api = api
        self._token = token
        self._api_base = api_base
        self._gateway_url = gateway_url
        self._clock = clock
        self._timing = timing
        self._health = health
        self._session: _Session | None = None

    async def run(self, take: Take) -> None:
        """Hand over every event, in order, until cancelled; while `take` waits, nothing more is read.

        Raises:
            ChannelDown: Discord does not let the bot in.
        """
        backoff = Backoff(self._timing.reconnect_first, self._timing.reconnect_longest)
        client = None
        # What an earlier run had read of its session and not handed over is not told again.
        self._session = None
        try:
            while True:
                try:
                    client = client or await self._logged_in()
                    await self._listen(client, take, backoff)
                except _Lost as lost:
                    detail = str(lost)
                    self._session = self._session if lost.can_resume else None
                    pause = backoff.next() if lost.can_resume else _before_new_session()
                except ChannelDown:
                    raise
                except ChannelError as error:
                    detail, pause = error.detail, pause_after(error, backoff)
                except _FAILURES as error:
                    detail, pause = f"{type(error).__name__}: {error}", backoff.next()
                self._health.disconnected(f"the connection broke and is being opened again ({detail})")
                logger.info("discord_gateway_lost", extra={"detail": detail, "resumes": self._session is not None})
                await self._clock.sleep(pause)
        finally:
            if client is not None:
                await client.close()

    async def _logged_in(self) -> _Client:
        """Return a client that holds the token.

        Raises:
            ChannelDown: Discord refuses it.
        """
        discord.http.Route.BASE = self._api_base.rstrip("/")
        client = _Client(silence=self._timing.gateway_silence)
        try:
            await client.login(self._token)
        except discord.LoginFailure as error:
            await client.close()
            raise ChannelDown(TOKEN_REFUSED) from error
        except BaseException:
            await client.close()
            raise
        return client

    async def _listen(self, client: _Client, take: Take, backoff: Backoff) -> None:
        """Hand over events until the connection ends, which raises."""
        async with self._connected(client) as socket:
            while True:
                try:
                    await socket.poll_event()
                except ReconnectWebSocket as again:
                    raise _Lost("Discord ended it", can_resume=again.resume) from again
                except discord.ConnectionClosed as closed:
                    raise _refusal(closed) from closed
                finally:
                    self._session = _session_of(socket) or self._session
                while client.heard:
                    name, event = client.heard.popleft()
                    if name in _STARTED:
                        backoff.reset()
                        self._health.connected()
                        logger.info("discord_listening", extra={"started": name})
                    await take(name, event)

    @asynccontextmanager
    async def _connected(self, client: _Client) -> AsyncIterator[DiscordWebSocket]:
        session = self._session
        if session is None:
            await self._await_start()
        resumed: dict[str, Any] = (
            {"resume": True, "gateway": session.gateway, "session": session.id, "sequence": session.sequence}
            if session is not None
            else {"gateway": yarl.URL(self._gateway_url)}
        )
        client.heard.clear()
        try:
            async with asyncio.timeout(self._timing.answer_timeout.total_seconds()):
                socket = await DiscordWebSocket.from_client(client, initial=session is None, **resumed)
        except ReconnectWebSocket as again:
            raise _Lost("Discord ended it at once", can_resume=again.resume) from again
        except discord.ConnectionClosed as closed:
            raise _refusal(closed) from closed
        try:
            yield socket
        finally:
            # Cancelled, the host goes; otherwise the session is wanted again, which another code keeps.
            await socket.close(code=1000 if _is_cancelled() else 4000)

    async def _await_start(self) -> None:
        """Wait until a session may be started.

        Raises:
            ChannelError: Discord does not say.
        """
        state = await self._api.gateway()
        self._gateway_url = self._gateway_url or state.url
        pause = pause_before_start(state)
        if pause:
            left = f"{state.starts_left} of {state.starts_total} starts are left"
            self._health.disconnected(
                f"{left}, as something starts the host again and again; the next is in {pause.total_seconds():.0f} s"
            )
            logger.warning("discord_start_put_off", extra={"left": state.starts_left, "wait": pause.total_seconds()})
            await self._clock.sleep(pause)


class _Client(discord.Client):
    """What the SDK's websocket needs of a client. It keeps nothing but what was `heard`, oldest first."""

    def __init__(self, *, silence: timedelta) -> None:
        # It warns of voice, which nobody asked for, and of whatever is tried again here.
        logging.getLogger("discord").setLevel(logging.CRITICAL)
        intents = discord.Intents(
            guilds=True,
            guild_messages=True,
            guild_reactions=True,
            dm_messages=True,
            dm_reactions=True,
            message_content=True,
        )
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            heartbeat_timeout=silence.total_seconds(),
            max_ratelimit_timeout=_LONGEST_LIMIT_SECONDS,
        )
        self.heard: deque[tuple[str, dict[str, Any]]] = deque()
        self._connection.parsers = _Parsers(self.heard)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait for nothing: the pauses before a start are made here."""


class _Parsers(dict[str, Callable[[Any], None]]):
    """In the place of the SDK's parsers: notes events instead."""

    def __init__(self, heard: deque[tuple[str, dict[str, Any]]]) -> None:
        super().__init__()
        self._heard = heard

    def __missing__(self, name: str) -> Callable[[Any], None]:
        return partial(self._note, name)

    def _note(self, name: str, event: Any) -> None:
        if isinstance(event, dict):
            self._heard.append((name, event))


def _session_of(socket: DiscordWebSocket) -> _Session | None:
    if socket.session_id is None or socket.sequence is None:
        return None
    return _Session(id=socket.session_id, gateway=socket.gateway, sequence=socket.sequence)


def _refusal(closed: discord.ConnectionClosed) -> ChannelDown | _Lost:
    """Return what the code means with which Discord ended a connection."""
    if closed.code in _REFUSALS:
        return ChannelDown(_REFUSALS[closed.code])
    if closed.code in _OTHER_REFUSALS:
        return ChannelDown(f"Discord does not take this version of the bot any more (code {closed.code})")
    return _Lost(f"closed with code {closed.code}")


def _before_new_session() -> timedelta:
    return _NEW_SESSION_AFTER + (_NEW_SESSION_BEFORE - _NEW_SESSION_AFTER) * (secrets.randbelow(1000) / 1000)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
