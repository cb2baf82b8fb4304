"""Events over HTTP: Slack calls this host, and proves itself by a signature."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from channels.health import Health
from channels.slack.bolt import Take, make_app
from core.contracts.errors import ChannelDown

logger = logging.getLogger(__name__)

_LARGEST_BODY_BYTES = 1_000_000
"""Slack's events have some kilobytes; a view with a hundred blocks has less than this."""
_LOOK_SECONDS = 1.0
_TIMESTAMP = b"x-slack-request-timestamp"
_NOT_OURS, _TOO_LARGE, _NOT_NOW = 401, 413, 503


class Endpoint:
    """An ASGI application for every address that the app's manifest names: events, acts, commands.

    While `run` does not run it answers that it is not there, so that Slack comes again.
    """

    def __init__(self, signing_secret: str, health: Health) -> None:
        self._signing_secret = signing_secret.strip()
        self._health = health
        self._app: AsyncApp | None = None

    async def run(self, take: Take, *, team: str, connected: Callable[[], None]) -> None:
        """Hand over what comes until cancelled; `connected` is called before the first of it.

        Raises:
            ChannelDown: Slack took the app's token back, or there is no secret to know Slack by.
        """
        if not self._signing_secret:
            raise ChannelDown("without a signing secret anybody could pass for Slack")
        self._app = make_app(take, team=team, signing_secret=self._signing_secret)
        self._health.connected()
        connected()
        never = asyncio.get_running_loop().create_future()
        try:
            while not self._health.lost_for_good:
                await asyncio.wait({never}, timeout=_LOOK_SECONDS)
        finally:
            never.cancel()
            self._app = None
            self._health.disconnected("the host does not listen")
        raise ChannelDown(self._health.lost_for_good)

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        status, body, kind = await self._answer(scope, receive)
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
    ) -> tuple[int, bytes, str]:
        headers = {name.lower(): value for name, value in scope["headers"]}
        app = self._app
        if scope["method"] != "POST" or not headers.get(_TIMESTAMP, b"").isdigit():
            # The SDK stumbles over a timestamp that is no number.
            return _NOT_OURS, b"", "text/plain"
        if app is None:
            return _NOT_NOW, b"", "text/plain"
        raw = await _body(receive)
        if raw is None:
            return _TOO_LARGE, b"", "text/plain"
        told = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
        try:
            request = AsyncBoltRequest(body=raw.decode("utf-8"), headers=told)
        except (ValueError, TypeError, AttributeError):
            # The SDK looks into a body before it proves whose it is, and stumbles over what is none of Slack's.
            return _NOT_OURS, b"", "text/plain"
        answer = await app.async_dispatch(request)
        kind = answer.headers.get("content-type", ["text/plain"])[0]
        return answer.status, (answer.body or "").encode(), kind


async def _body(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> bytes | None:
    """Return the body of a request; None where it is larger than anything of Slack's, or cut off."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _LARGEST_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)
