"""Calls to Discord's REST API, each made once and never repeated here; the one place that makes them.

A plain HTTP client and not discord.py's: that one sleeps through every limit on the machine's own
clock, without bound and inside the call, repeats uploads and calls without a nonce after 5xx, keeps
its address in a class attribute that all accounts share, and would hold a second pool of connections.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, BinaryIO

import httpx

from channels.discord.buckets import Buckets, Route
from channels.discord.connection import INTERACTION, open_clients, patience, with_interaction
from channels.discord.errors import is_old_edits_limit, limit_of, no_json, refusal_of, unreached
from channels.discord.limits import PAGE_LIMIT, THREAD_ARCHIVE_MINUTES, Timing
from channels.discord.quiet import Payload, quieted, quieted_answer
from core.contracts.clock import Clock
from core.contracts.errors import SendUnknown

Json = dict[str, Any]

_MESSAGES = "/channels/{channel}/messages"
_MESSAGE = "/channels/{channel}/messages/{message}"
_REACTION = "/channels/{channel}/messages/{message}/reactions/{emoji}/@me"
_CHANNEL = "/channels/{channel}"
_COMMANDS = "/applications/{application}/commands"
_CALLBACK = f"/interactions/{{id}}/{INTERACTION}/callback"
_FOLLOW_UPS = f"/webhooks/{{webhook}}/{INTERACTION}"
_ORIGINAL = f"/webhooks/{{webhook}}/{INTERACTION}/messages/@original"


@dataclass(frozen=True, slots=True, kw_only=True)
class BotIdentity:
    """The bot, as it sees itself."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The bot's page in the developer portal; its bits are those of `flags` in Discord's reference."""

    id: str
    name: str
    flags: int
    is_public: bool

    @property
    def reads_content(self) -> bool:
        """Whether the message content intent is switched on, in full or for a bot in few servers."""
        return bool(self.flags & (1 << 18 | 1 << 19))

    @property
    def sees_members(self) -> bool:
        """Whether the server members intent is switched on, in full or for a bot in few servers."""
        return bool(self.flags & (1 << 14 | 1 << 15))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    """Where to listen, and how often a session can still be started until `resets_after` has passed."""

    url: str
    shards: int
    starts_left: int
    starts_total: int
    resets_after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that goes out with a message; it is read from its start while it goes."""

    name: str
    media_type: str
    content: BinaryIO


class DiscordApi:
    """One bot's REST API. Calls may be made concurrently.

    Every method raises the `ChannelError`s of `channels.discord.errors`. What comes too early for a
    budget that Discord told of raises `SendLimited` and is not made; nothing waits in here.
    Messages go out quiet, see `channels.discord.quiet`.
    """

    def __init__(
        self, token: str, api_base: str, *, clock: Clock, mask: Callable[[str], str], timing: Timing | None = None
    ) -> None:
        """Take `api_base` with its version, such as `https://discord.com/api/v10`; does no I/O."""
        self._mask = mask
        self._timing = timing or Timing()
        read_seconds = self._timing.answer_timeout.total_seconds()
        self._http, self._files = open_clients(token, api_base, read_seconds=read_seconds)
        self._buckets = Buckets(clock)

    # Who and where the bot is

    async def identity(self) -> BotIdentity:
        """Return who the bot is."""
        user = await self._get("/users/@me")
        return BotIdentity(id=_text(user, "id"), name=_text(user, "username"))

    async def application(self) -> Application:
        """Return the bot's application."""
        found = await self._get("/applications/@me")
        flags, is_public = found.get("flags"), found.get("bot_public")
        return Application(
            id=_text(found, "id"),
            name=_text(found, "name"),
            flags=flags if isinstance(flags, int) else 0,
            is_public=is_public is not False,
        )

    async def gateway(self) -> GatewayState:
        """Return where to listen and how often a session can be started."""
        found = await self._get("/gateway/bot")
        limit = found.get("session_start_limit")
        limit = limit if isinstance(limit, dict) else {}
        return GatewayState(
            url=_text(found, "url"),
            shards=_count(found, "shards"),
            starts_left=_count(limit, "remaining"),
            starts_total=_count(limit, "total"),
            resets_after=timedelta(milliseconds=_count(limit, "reset_after")),
        )

    async def guilds(self) -> list[Json]:
        """Return the first servers that the bot is in, in brief."""
        return await self._list("/users/@me/guilds", query={"limit": PAGE_LIMIT})

    async def guild(self, guild_id: str) -> Json:
        """Return a server with its roles."""
        return await self._get("/guilds/{guild}", guild=guild_id)

    async def member(self, guild_id: str, user_id: str) -> Json:
        """Return somebody in a server."""
        return await self._get("/guilds/{guild}/members/{user}", guild=guild_id, user=user_id)

    async def channels(self, guild_id: str) -> list[Json]:
        """Return a server's channels, without threads."""
        return await self._list("/guilds/{guild}/channels", guild=guild_id)

    async def leave(self, guild_id: str) -> None:
        """Leave a server."""
        await self._call(Route(method="DELETE", path="/users/@me/guilds/{guild}", ids={"guild": guild_id}))

    async def server_time(self) -> datetime | None:
        """Return the time on Discord's clock, in whole seconds; None when it does not tell. Never raises."""
        try:
            response = await self._http.get("/gateway")
            return parsedate_to_datetime(response.headers["date"])
        except (httpx.HTTPError, KeyError, ValueError):
            return None

    # Channels and threads

    async def channel(self, channel_id: str) -> Json:
        """Return a channel or thread."""
        return await self._get(_CHANNEL, channel=channel_id)

    async def active_threads(self, guild_id: str) -> list[Json]:
        """Return the threads of a server that are not archived."""
        found = await self._get("/guilds/{guild}/threads/active", guild=guild_id)
        threads = found.get("threads")
        return [thread for thread in threads if isinstance(thread, dict)] if isinstance(threads, list) else []

    async def start_thread(self, channel_id: str, message_id: str, name: str) -> str:
        """Open a thread at a message and return its id, which is the message's."""
        route = Route(method="POST", path=f"{_MESSAGE}/threads", ids={"channel": channel_id, "message": message_id})
        wanted = {"name": name, "auto_archive_duration": THREAD_ARCHIVE_MINUTES}
        return _text(_object(await self._call(route, wanted)), "id")

    async def unarchive(self, thread_id: str) -> None:
        """Open an archived thread again."""
        await self._call(Route(method="PATCH", path=_CHANNEL, ids={"channel": thread_id}), {"archived": False})

    # Messages

    async def message(self, channel_id: str, message_id: str) -> Json:
        """Return one message; the links in it are made anew."""
        return await self._get(_MESSAGE, channel=channel_id, message=message_id)

    async def messages(self, channel_id: str, *, after: str | None = None, limit: int = PAGE_LIMIT) -> list[Json]:
        """Return at most `limit` (1 to 100) messages, oldest first: the next ones `after` an id, else the newest."""
        query: dict[str, str | int] = {"limit": limit} if after is None else {"limit": limit, "after": after}
        found = await self._list(_MESSAGES, query=query, channel=channel_id)
        return sorted(found, key=_snowflake)

    async def send(self, channel_id: str, message: Payload) -> str:
        """Post a message and return its id; one with a nonce that Discord knows is not posted again."""
        route = Route(method="POST", path=_MESSAGES, ids={"channel": channel_id})
        return _text(_object(await self._call(route, quieted(message))), "id")

    async def send_files(self, channel_id: str, message: Payload, uploads: Sequence[Upload]) -> str:
        """Post a message with files and return its id."""
        route = Route(method="POST", path=_MESSAGES, ids={"channel": channel_id})
        return _text(_object(await self._upload(route, quieted(message), uploads)), "id")

    async def edit(self, channel_id: str, message_id: str, message: Payload) -> None:
        """Change a message; what the payload leaves out stays."""
        route = Route(method="PATCH", path=_MESSAGE, ids={"channel": channel_id, "message": message_id})
        await self._call(route, quieted(message))

    async def delete(self, channel_id: str, message_id: str) -> None:
        """Delete a message."""
        await self._call(Route(method="DELETE", path=_MESSAGE, ids={"channel": channel_id, "message": message_id}))

    async def react(self, channel_id: str, message_id: str, emoji: str) -> None:
        """Add the bot's reaction with `emoji`: itself, or `name:id`."""
        ids = {"channel": channel_id, "message": message_id, "emoji": emoji}
        await self._call(Route(method="PUT", path=_REACTION, ids=ids))

    async def unreact(self, channel_id: str, message_id: str, emoji: str) -> None:
        """Take the bot's reaction with `emoji` back."""
        ids = {"channel": channel_id, "message": message_id, "emoji": emoji}
        await self._call(Route(method="DELETE", path=_REACTION, ids=ids))

    async def type_in(self, channel_id: str) -> None:
        """Show that the bot types, for about ten seconds."""
        await self._call(Route(method="POST", path="/channels/{channel}/typing", ids={"channel": channel_id}))

    # Interactions, which need their own token and not the bot's

    async def respond(self, interaction_id: str, token: str, callback: Payload) -> None:
        """Give an interaction its first answer: `callback` has a type, and data where that needs some."""
        ids = {"id": interaction_id, "interaction": token}
        route = Route(method="POST", path=_CALLBACK, ids=ids, is_limited_everywhere=False)
        await self._call(route, quieted_answer(callback), interaction=token)

    async def edit_original(self, application_id: str, token: str, message: Payload) -> None:
        """Change what an interaction was first answered with."""
        ids = {"webhook": application_id, "interaction": token}
        route = Route(method="PATCH", path=_ORIGINAL, ids=ids, is_limited_everywhere=False)
        await self._call(route, quieted(message), interaction=token)

    async def follow_up(self, application_id: str, token: str, message: Payload) -> str:
        """Add a message to the answer of an interaction and return its id."""
        ids = {"webhook": application_id, "interaction": token}
        route = Route(method="POST", path=_FOLLOW_UPS, ids=ids, is_limited_everywhere=False)
        return _text(_object(await self._call(route, quieted(message), interaction=token)), "id")

    async def commands(self, application_id: str) -> list[Json]:
        """Return the commands that are offered everywhere."""
        return await self._list(_COMMANDS, application=application_id)

    async def set_commands(self, application_id: str, commands: Sequence[Payload]) -> None:
        """Offer these commands everywhere, and no others."""
        route = Route(method="PUT", path=_COMMANDS, ids={"application": application_id})
        await self._call(route, [dict(command) for command in commands])

    # Files

    @asynccontextmanager
    async def open_file(self, url: str) -> AsyncIterator[httpx.Response]:
        """Open the answer that holds a file's bytes as they are; the bot's token does not go there.

        Its status is not looked at.

        Raises:
            httpx.HTTPError: The connection failed, here or while the bytes are read.
            httpx.InvalidURL: That is no address.
        """
        async with self._files.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
            yield response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._files.aclose()
        await self._http.aclose()

    async def _get(self, path: str, **ids: str) -> Json:
        return _object(await self._call(Route(method="GET", path=path, ids=ids)))

    async def _list(self, path: str, *, query: Mapping[str, str | int] | None = None, **ids: str) -> list[Json]:
        found = await self._call(Route(method="GET", path=path, ids=ids), query=query)
        if not isinstance(found, list):
            raise SendUnknown("the answer is no list")
        return [item for item in found if isinstance(item, dict)]

    async def _call(
        self,
        route: Route,
        body: Any = None,
        *,
        query: Mapping[str, str | int] | None = None,
        interaction: str | None = None,
    ) -> Any:
        """Make one call with a JSON body and return the JSON of its answer; None where it is empty."""
        request = self._http.build_request(
            route.method,
            route.url,
            params=query,
            content=None if body is None else json.dumps(body),
            headers={} if body is None else {"Content-Type": "application/json"},
            extensions=None if interaction is None else with_interaction(interaction),
        )
        return await self._made(route, request)

    async def _upload(self, route: Route, message: Payload, uploads: Sequence[Upload]) -> Any:
        parts = {
            f"files[{number}]": (upload.name, upload.content, upload.media_type)
            for number, upload in enumerate(uploads)
        }
        request = self._http.build_request(
            route.method,
            route.url,
            data={"payload_json": json.dumps(message)},
            files=parts,
            timeout=patience(self._timing.upload_timeout.total_seconds()),
        )
        return await self._made(route, request)

    async def _made(self, route: Route, request: httpx.Request) -> Any:
        self._buckets.spend(route)
        try:
            response = await self._http.send(request)
        except httpx.HTTPError as error:
            raise unreached(error, self._mask) from error
        self._buckets.learn(route, response.headers)
        if response.is_success:
            return _parsed(response)
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS and not is_old_edits_limit(response):
            self._buckets.hold(route, limit_of(response))
        raise refusal_of(response, self._mask)


def _parsed(response: httpx.Response) -> Any:
    if response.status_code == HTTPStatus.NO_CONTENT:
        return None
    try:
        return json.loads(response.content)
    except ValueError:
        raise no_json(response) from None


def _object(answer: Any) -> Json:
    if not isinstance(answer, dict):
        raise SendUnknown("the answer is no object")
    return answer


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise SendUnknown(f"the answer names no {name}")
    return value


def _count(answer: Mapping[str, Any], name: str) -> int:
    value = answer.get(name)
    return value if isinstance(value, int) else 0


def _snowflake(message: Json) -> int:
    identity = str(message.get("id", ""))
    return int(identity) if identity.isascii() and identity.isdigit() else 0
