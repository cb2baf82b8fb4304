"""Connections to the Bot API; the one place that holds the token."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
from telegram.error import NetworkError, TelegramError
from telegram.request import HTTPXRequest, RequestData

from channels.telegram.errors import flood_limit

STAND_IN = "TOKEN"
"""What the SDK and the HTTP client take for the token; they may print it wherever they like."""

_CONNECT_SECONDS = 10.0
_WRITE_SECONDS = 10.0
_UPLOAD_WRITE_SECONDS = 20.0
_POOL_SECONDS = 5.0
_CONNECTIONS = 64
_KEEPALIVE_SECONDS = 15.0
_REDIRECTS = 5


class BotRequest(HTTPXRequest):
    """The SDK's requests over our transport, with answers looked at before the SDK does."""

    def __init__(self, transport: TokenTransport, *, read_seconds: float) -> None:
        super().__init__(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=read_seconds,
            write_timeout=_WRITE_SECONDS,
            media_write_timeout=_UPLOAD_WRITE_SECONDS,
            pool_timeout=_POOL_SECONDS,
            httpx_kwargs={"transport": transport},
        )

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        write_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        connect_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        pool_timeout: Any = HTTPXRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        status, payload = await super().do_request(
            url, method, request_data, read_timeout, write_timeout, connect_timeout, pool_timeout
        )
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise flood_limit(payload)
        if status < HTTPStatus.MULTIPLE_CHOICES and b'"result"' not in payload:
            raise NetworkError("the answer holds no result")  # a captive portal, a proxy's page
        return status, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> Any:
        """Parse like the SDK, but do not log what people wrote when it fails."""
        try:
            return json.loads(payload.decode("utf-8", "replace"))
        except ValueError as error:
            raise TelegramError("Invalid server response") from error


def plain_client(transport: TokenTransport, *, read_seconds: float) -> httpx.AsyncClient:
    """Return a client for what the SDK would load into memory whole; it follows redirects."""
    timeout = httpx.Timeout(connect=_CONNECT_SECONDS, read=read_seconds, write=_WRITE_SECONDS, pool=_POOL_SECONDS)
    return httpx.AsyncClient(transport=transport, timeout=timeout, follow_redirects=True, max_redirects=_REDIRECTS)


class TokenTransport(httpx.AsyncBaseTransport):
    """Puts the token in the place of its stand-in on the way out, to the API's own host alone.

    A redirect that names the token comes back with the stand-in, so that no client ever sees it.
    """

    def __init__(self, token: str, api_base: str) -> None:
        self._origin = httpx.URL(api_base)
        self._stand_in = f"/bot{STAND_IN}/".encode()
        self._real = f"/bot{quote(token, safe=':')}/".encode()
        self._named = re.compile(re.escape(token).replace(":", "(?::|%3[Aa])"))
        limits = httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_KEEPALIVE_SECONDS)
        self._inner = httpx.AsyncHTTPTransport(limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._is_own(request.url):
            path = request.url.raw_path.replace(self._stand_in, self._real, 1)
            request = httpx.Request(
                request.method,
                request.url.copy_with(raw_path=path),
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
        response = await self._inner.handle_async_request(request)
        if response.has_redirect_location:
            response.headers["location"] = self._named.sub(STAND_IN, response.headers["location"])
        return response

    def _is_own(self, url: httpx.URL) -> bool:
        """Return whether the token may go there: to the same server, or up to TLS on the same host."""
        same = (url.scheme, url.host, url.port) == (self._origin.scheme, self._origin.host, self._origin.port)
        return same or (url.scheme == "https" and url.host == self._origin.host and url.port is None)

    async def aclose(self) -> None:
        await self._inner.aclose()
