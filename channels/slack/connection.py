"""Connections to Slack; the one place that holds the bot's token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from channels.slack.limits import Timing

_CONNECT_SECONDS = 10.0
_CONNECTIONS = 64
_REDIRECTS = 5
_PIECE_BYTES = 256 * 1024
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_FILES = "files."
_TLS_PORT = 443


class Connection:
    """One pool of connections, opened with the first call and closed by `aclose`.

    No proxy is taken from the environment, no cookie is kept, and no call that changes anything is
    ever repeated.
    """

    def __init__(self, token: str, api_base: str, timing: Timing) -> None:
        self._token = token.strip()
        self._api = URL(api_base)
        self._timing = timing
        self._session: aiohttp.ClientSession | None = None
        # The SDK prints requests and answers whole at DEBUG: what people wrote, and addresses that are secrets.
        terse = logging.getLogger(f"{__name__}.sdk")
        terse.setLevel(logging.INFO)
        self._client = AsyncWebClient(token=self._token, base_url=api_base, retry_handlers=[], logger=terse)
        self._client.proxy = None

    @property
    def client(self) -> AsyncWebClient:
        """Return the SDK's client over this pool."""
        self._client.session = self.session
        return self._client

    @property
    def session(self) -> aiohttp.ClientSession:
        """Return the pool itself; it sends no token."""
        if self._session is None:
            answer_seconds = self._timing.answer_timeout.total_seconds()
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
                timeout=aiohttp.ClientTimeout(
                    total=_CONNECT_SECONDS + answer_seconds,
                    connect=_CONNECT_SECONDS,
                    sock_connect=_CONNECT_SECONDS,
                    sock_read=answer_seconds,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    def is_own(self, url: str) -> bool:
        """Return whether the token may go there: to the API's own server, or by TLS to its host of files."""
        try:
            return self._is_own(URL(url))
        except ValueError:
            return False

    def _is_own(self, url: URL) -> bool:
        same = (url.scheme, url.host, url.port) == (self._api.scheme, self._api.host, self._api.port)
        hosts = {self._api.host, f"{_FILES}{self._api.host}"}
        return same or (url.scheme == "https" and url.port == _TLS_PORT and url.host in hosts)

    @asynccontextmanager
    async def open_file(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open the answer that holds a file's bytes as they are; its status is not looked at.

        Redirects are followed; the token goes to Slack's own hosts alone.

        Raises:
            aiohttp.ClientError, TimeoutError: The connection failed, here or while the bytes are read.
        """
        target = URL(url)
        for _ in range(_REDIRECTS):
            async with self.session.get(
                target,
                headers={"Accept-Encoding": "identity"} | self._authorization(target),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    sock_connect=_CONNECT_SECONDS, sock_read=self._timing.answer_timeout.total_seconds()
                ),
            ) as response:
                location = response.headers.get("Location")
                if response.status not in _REDIRECT_STATUSES or location is None:
                    yield response
                    return
                target = _redirected(target, location)
        raise aiohttp.ClientError("too many redirects")

    async def upload(self, url: str, content: BinaryIO, size_bytes: int) -> int:
        """Post a file's bytes as they are read, and return the status of the answer.

        Raises:
            aiohttp.ClientError, TimeoutError: They did not go, or stood still for too long.
        """
        loop = asyncio.get_running_loop()
        patience = self._timing.upload_timeout.total_seconds()
        async with asyncio.timeout(patience) as deadline:

            async def pieces() -> AsyncIterator[bytes]:
                while piece := await asyncio.to_thread(content.read, _PIECE_BYTES):
                    deadline.reschedule(loop.time() + patience)
                    yield piece

            headers = {"Content-Length": str(size_bytes), "Content-Type": "application/octet-stream"}
            unlimited = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS)
            async with self.session.post(url, data=pieces(), headers=headers, timeout=unlimited) as response:
                await response.read()
                return response.status

    async def post(self, url: str, body: Mapping[str, Any]) -> tuple[int, str, Mapping[str, str]]:
        """Post JSON to an address that Slack gave out, without a token; return status, text and headers."""
        async with self.session.post(url, json=body, allow_redirects=False) as response:
            return response.status, await response.text(errors="replace"), response.headers

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _authorization(self, target: URL) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._is_own(target) else {}


def _redirected(target: URL, location: str) -> URL:
    try:
        return target.join(URL(location))
    except ValueError as error:
        raise aiohttp.ClientError("redirected to no address") from error
