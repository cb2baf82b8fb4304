"""Two-way sessions on the host's socket: one to open, one to follow, one to speak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.console.shutdown import stopping_of
from bot.control.requests import needed, number, read_bytes, read_object
from bot.control.wire import NDJSON
from bot.conversations.sessions.inputs import read_object as read_line
from bot.conversations.sessions.protocol import LINE_LIMIT_BYTES
from bot.session_api import SessionApi

_IDLE_SECONDS = 15.0


class SessionRoutes:
    """Every answer is JSON; lines are streamed one object a line, with empty lines while nothing happens."""

    def __init__(self, api: SessionApi) -> None:
        self._api = api

    def routes(self) -> list[Route]:
        """Return the routes of sessions."""
        return [
            Route("/sessions", self.open, methods=["POST"]),
            Route("/sessions/{conversation}", self.state),
            Route("/sessions/{conversation}/lines", self.lines),
            Route("/sessions/{conversation}/input", self.take, methods=["POST"]),
            Route("/turns/{conversation}/cancel", self.cancel, methods=["POST"]),
        ]

    async def open(self, request: Request) -> Response:
        body = await read_object(request)
        agent, conversation = str(body.get("agent", "")), str(body.get("conversation", ""))
        return JSONResponse(await self._api.open(agent=agent, conversation=conversation))

    async def state(self, request: Request) -> Response:
        return JSONResponse(await self._api.state(request.path_params["conversation"]))

    async def lines(self, request: Request) -> Response:
        after = number(request.query_params.get("after", "0"))
        pages = await self._api.lines(request.path_params["conversation"], after=after)
        return StreamingResponse(_written(pages, stopping_of(request.scope)), media_type=NDJSON)

    async def take(self, request: Request) -> Response:
        said = read_line(await read_bytes(request, limit_bytes=LINE_LIMIT_BYTES))
        return JSONResponse({"lines": list(await self._api.take(request.path_params["conversation"], said))})

    async def cancel(self, request: Request) -> Response:
        input_id = needed(await read_object(request), "input_id")
        return JSONResponse({"told": await self._api.cancel_turn(request.path_params["conversation"], input_id)})


async def _written(pages: AsyncGenerator[Sequence[str], None], stopping: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield lines until the client leaves or the host stops."""
    async with aclosing(pages), asyncio.TaskGroup() as group:
        stopped = group.create_task(stopping.wait())
        arriving = group.create_task(_next(pages))
        try:
            while not stopped.done():
                await asyncio.wait({arriving, stopped}, timeout=_IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not arriving.done():
                    yield b"\n"  # notices a client that has left
                    continue
                yield "".join(f"{line}\n" for line in arriving.result()).encode("ascii")
                arriving = group.create_task(_next(pages))
        finally:
            stopped.cancel()
            arriving.cancel()


async def _next(pages: AsyncGenerator[Sequence[str], None]) -> Sequence[str]:
    return await anext(pages)
