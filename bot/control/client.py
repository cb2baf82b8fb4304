"""The command line's side of the host's socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

_BASE = "http://host"
_CONNECT_SECONDS = 5.0


class HostGone(Exception):
    """The host does not answer on its socket, or stopped answering."""


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

    async def stream(self, path: str, body: Mapping[str, Any] | None = None) -> AsyncIterator[dict[str, Any]]:
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
            raise HostGone(str(error)) from error

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        try:
            response = await self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise HostGone(str(error)) from error
        if response.is_error:
            raise HostRefused(_error_text(response))
        return response.json()


@asynccontextmanager
async def connect(socket: Path) -> AsyncIterator[HostClient]:
    """Give a client of the host that listens on `socket`.

    Raises:
        HostGone: Nobody answers there.
    """
    transport = httpx.AsyncHTTPTransport(uds=str(socket))
    timeout = httpx.Timeout(60.0, connect=_CONNECT_SECONDS)
    async with httpx.AsyncClient(transport=transport, base_url=_BASE, timeout=timeout) as http:
        client = HostClient(http)
        await client.get("/ping")
        yield client


def _error_text(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError):
        return f"the host answered {response.status_code}"
