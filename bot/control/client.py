"""The command line's side of the host's socket."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

_BASE = "http://host"
_CONNECT_SECONDS = 5.0


class HostGone(Exception):
    """The host does not answer on its socket, or stopped answering."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__(f"the host does not answer: {str(cause) or type(cause).__name__}")


class HostRefused(Exception):
    """The host answered with an error; its text is for the person."""


class HostClient:
    """Talks JSON to one host. Requests may be concurrent."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, path: str) -> Any:
        """Return the JSON answer.

        Raises:
            HostGone, HostRefused: see there.
        """
        return await self._send("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON answer; errors as in `get`."""
        return await self._send("POST", path, body)

    async def stream(self, path: str, body: Mapping[str, Any] | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the objects of a stream, one a line; errors as in `get`."""
        method = "GET" if body is None else "POST"
        try:
            async with self._http.stream(method, path, json=body, timeout=None) as response:
                if response.is_error:
                    await response.aread()
                    raise HostRefused(_error_text(response))
                async for text in response.aiter_lines():
                    if text.strip():
                        yield json.loads(text)
        except httpx.HTTPError as error:
            raise HostGone(error) from error

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        try:
            response = await self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise HostGone(error) from error
        if response.is_error:
            raise HostRefused(_error_text(response))
        return response.json()


@asynccontextmanager
async def connect(socket: Path) -> AsyncIterator[HostClient]:
    """Give a client of the host that listens on `socket`.

    Raises:
        HostGone: Nobody answers there.
    """
    # There is no TLS on this socket; httpx would read the machine's certificates, which takes 50 ms.
    transport = httpx.AsyncHTTPTransport(uds=str(socket), verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    timeout = httpx.Timeout(60.0, connect=_CONNECT_SECONDS)
    async with httpx.AsyncClient(transport=transport, base_url=_BASE, timeout=timeout) as http:
        client = HostClient(http)
        await client.get("/ping")
        yield client


def _error_text(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"the host answered {response.status_code}"
