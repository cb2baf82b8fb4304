"""How responses without an end learn that the server stops."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

_KEY = "lodger_stopping"


class KnowsShutdown:
    """Tells an app's requests when `stopping` is set; the server sets it before it waits for them."""

    def __init__(self, app: ASGIApp, stopping: asyncio.Event) -> None:
        self._app = app
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_KEY] = self._stopping
        await self._app(scope, receive, send)


def stopping_of(scope: Scope) -> asyncio.Event:
    """Return the event that ends a request's response; one that is never set when nobody serves the app."""
    stopping: asyncio.Event = scope.get(_KEY) or asyncio.Event()
    return stopping
