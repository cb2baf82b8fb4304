"""What stands before every page: allowed hosts, safe headers, same origin, a session, and a net for bugs."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Collection
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.console.sessions import ConsoleSessions, Session

logger = logging.getLogger(__name__)

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

_OPEN_TO_ANY_HOST = frozenset({"/healthz", "/readyz", "/metrics"})
"""Probes come by whatever address the machine has; they get numbers, and no details without a session."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # "no-referrer" would make browsers send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


def cookie_name(request: Request) -> str:
    """Return the session cookie's name; cookies know no ports, and several hosts may run on one machine."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"lodger_session_{port if port.isascii() and port.isdigit() else 0}"


def session_of(request: Request) -> Session | None:
    """Return who asks, as `ConsoleGate` found it."""
    session: Session | None = request.scope.get("console_session")
    return session


def is_own_token(session: Session, token: str) -> bool:
    """Return whether a submission carries the token of its session."""
    return hmac.compare_digest(session.csrf.encode(), token.encode(errors="surrogatepass"))


class SafeResponses:
    """Puts the security headers on every response and turns a crash into a plain 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_safely(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, send_safely)
        except Exception:
            # A console request: a page that breaks must not take the host with it. The path is
            # logged without its query, which may hold a link's token.
            logger.exception("console_request_crashed", extra={"method": scope["method"], "path": scope["path"]})
            if started:
                raise
            sorry = PlainTextResponse("Something broke while making this page. The host's log says what.\n", 500)
            await sorry(scope, receive, send_safely)


class ConsoleGate:
    """Refuses foreign hosts and foreign origins, and finds the session.

    A browser can be made to ask a loopback address by a name that an attacker controls (DNS
    rebinding); such requests carry that name in their `Host` header. Submissions must come from
    our own page, by `Sec-Fetch-Site` and `Origin` where the browser sends them; the token in the
    form is checked by `bot.console.submissions` on top.
    """

    def __init__(self, app: ASGIApp, *, sessions: ConsoleSessions, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._sessions = sessions
        self._allowed_hosts = frozenset(host.lower() for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        scope["console_session"] = self._sessions.find(request.cookies.get(cookie_name(request), ""))
        await self._app(scope, receive, send)

    def _refusal(self, request: Request) -> PlainTextResponse | None:
        host = request.headers.get("host", "")
        if request.scope["path"] not in _OPEN_TO_ANY_HOST and _host_name(host) not in self._allowed_hosts:
            text = "This console does not answer to that host name. Its configuration lists the names it answers to.\n"
            return PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in _SAFE_METHODS and not _comes_from_here(request.headers, host):
            return PlainTextResponse("Refused: this was sent by another site.\n", HTTPStatus.FORBIDDEN)
        return None


def _host_name(host: str) -> str:
    """Return a `Host` header without its port, in lower case."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _comes_from_here(headers: Headers, host: str) -> bool:
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origin = headers.get("origin")
    # The scheme is not compared: behind a TLS proxy it differs from ours.
    return origin is None or origin.partition("://")[2].lower() == host.lower()
