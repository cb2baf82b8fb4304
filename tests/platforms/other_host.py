"""A web host that is not the platform: it hands out bytes and remembers how it was asked."""

from __future__ import annotations

from typing import Self

from aiohttp import web


class OtherHost:
    """`requests` holds each request whole, as one text: method, path, query and headers."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content
        self.requests: list[str] = []
        self.base = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        self.requests.append(f"{request.method} {request.path_qs} {dict(request.headers)}")
        return web.Response(body=self.content, content_type="application/octet-stream")
