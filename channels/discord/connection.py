"""Connections to Discord; the one place that holds the token, and that sees those of interactions."""

from __future__ import annotations

from urllib.parse import quote

import httpx

INTERACTION = "INTERACTION"
"""What the HTTP client takes for an interaction's token; it may print it wherever it likes."""

_CONNECT_SECONDS = 10.0
_WRITE_SECONDS = 10.0
_POOL_SECONDS = 5.0
_CONNECTIONS = 64
_KEEPALIVE_SECONDS = 15.0
_REDIRECTS = 5
_USER_AGENT = "DiscordBot (lodger, 1)"
"""docs.discord.com/developers/reference#user-agent asks for this form: an address and a version."""
_UNQUOTED = ".=:+"
_EXTENSION = "lodger_interaction"


def open_clients(token: str, api_base: str, *, read_seconds: float) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
    """Return a client for the API and one for files, over the same connections.

    The first puts the token into requests to `api_base` and follows no redirect; the second knows no
    token and follows redirects.
    """
    limits = httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_KEEPALIVE_SECONDS)
    inner = httpx.AsyncHTTPTransport(limits=limits)
    headers = {"User-Agent": _USER_AGENT}
    api = httpx.AsyncClient(
        base_url=api_base.rstrip("/"),
        transport=_TokenTransport(token, api_base, inner),
        timeout=patience(read_seconds),
        headers=headers,
    )
    files = httpx.AsyncClient(
        transport=inner,
        timeout=patience(read_seconds),
        headers=headers,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
    )
    return api, files


def patience(read_seconds: float) -> httpx.Timeout:
    """Return how long a request may take, step by step."""
    return httpx.Timeout(connect=_CONNECT_SECONDS, read=read_seconds, write=_WRITE_SECONDS, pool=_POOL_SECONDS)


def with_interaction(token: str) -> dict[str, object]:
    """Return the extensions of a request whose path names `INTERACTION`; it goes without the bot's token."""
    return {_EXTENSION: quote(token, safe="")}


class _TokenTransport(httpx.AsyncBaseTransport):
    """Puts tokens into requests behind the last place where the client logs, names or represents them."""

    def __init__(self, token: str, api_base: str, inner: httpx.AsyncBaseTransport) -> None:
        self._origin = _origin(httpx.URL(api_base))
        # Quoted, as a header that cannot be sent is shown in the error.
        self._authorization = f"Bot {quote(token.strip(), safe=_UNQUOTED)}"
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if _origin(request.url) != self._origin:
            return await self._inner.handle_async_request(request)
        headers, url, extensions = request.headers.copy(), request.url, dict(request.extensions)
        secret = extensions.pop(_EXTENSION, None)
        if isinstance(secret, str):
            path = url.raw_path.replace(f"/{INTERACTION}".encode(), f"/{secret}".encode(), 1)
            url = url.copy_with(raw_path=path)
        else:
            headers["Authorization"] = self._authorization
        sent = httpx.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
