"""The HTTP application behind `host.sock`; the socket's mode (0600) is its login."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.console.shutdown import stopping_of
from bot.control.requests import needed, number, read_object
from bot.control.session_routes import SessionRoutes
from bot.control.wire import NDJSON, feed_json, line, plain
from bot.host_api import HeadlessRequest, HostApi
from bot.session_api import SessionApi
from channels.contract import Finding
from channels.feed import FeedChannel
from core.contracts.addresses import Sender
from core.contracts.errors import InvalidInput, LodgerError, NotFound
from core.contracts.ids import AgentId, ApprovalId

logger = logging.getLogger(__name__)

_IDLE_SECONDS = 15.0
_STATUS = {NotFound: 404, InvalidInput: 400}
BEHIND: Mapping[str, Any] = {"type": "behind"}
"""The last line for a viewer that read too slowly: it opens the feed again and reads the history."""


class ControlRoutes:
    """Every route takes and gives JSON; streams give one object a line."""

    def __init__(self, api: HostApi, terminal: FeedChannel, owner: Sender) -> None:
        self._api = api
        self._terminal = terminal
        self._owner = owner

    def routes(self) -> list[Route]:
        """Return the routes of the socket."""
        return [
            Route("/ping", self.ping),
            Route("/agents", self.agents),
            Route("/conversations", self.conversations),
            Route("/conversations/{conversation}", self.messages),
            Route("/approvals", self.approvals),
            Route("/approvals/{approval}", self.decide, methods=["POST"]),
            Route("/pairings", self.pairings),
            Route("/pairings", self.pair, methods=["POST"]),
            Route("/memory/{agent}", self.memory),
            Route("/memory/{agent}/log", self.memory_log),
            Route("/memory/{agent}/diff/{revision}", self.memory_diff),
            Route("/memory/{agent}/undo/{revision}", self.memory_undo, methods=["POST"]),
            Route("/readiness", self.readiness),
            Route("/doctor", self.doctor),
            Route("/turns", self.turns, methods=["POST"]),
            Route("/turns/{turn}", self.trace),
            Route("/backups", self.backup, methods=["POST"]),
            Route("/chats/{chat}", self.history),
            Route("/chats/{chat}/feed", self.feed),
            Route("/chats/{chat}/say", self.say, methods=["POST"]),
            Route("/chats/{chat}/press", self.press, methods=["POST"]),
        ]

    async def ping(self, request: Request) -> Response:
        del request
        return JSONResponse({"ok": True})

    async def agents(self, request: Request) -> Response:
        del request
        return JSONResponse(plain(await self._api.agents()))

    async def conversations(self, request: Request) -> Response:
        agents = await self._api.agents()
        wanted = request.query_params.get("agent")
        found = [
            {"agent": agent.name, **plain(conversation)}
            for agent in agents
            if wanted in {None, agent.name}
            for conversation in await self._api.conversations(AgentId(agent.id))
        ]
        return JSONResponse(found)

    async def messages(self, request: Request) -> Response:
        after = number(request.query_params.get("after", "0"))
        return JSONResponse(plain(await self._api.messages(request.path_params["conversation"], after_seq=after)))

    async def approvals(self, request: Request) -> Response:
        del request
        return JSONResponse(plain(await self._api.open_approvals()))

    async def decide(self, request: Request) -> Response:
        body = await read_object(request)
        told = await self._api.decide(
            ApprovalId(request.path_params["approval"]),
            str(body.get("choice", "")),
            by=self._owner.name,
            feedback=str(body.get("feedback", "")),
        )
        return JSONResponse({"told": told})

    async def pairings(self, request: Request) -> Response:
        del request
        return JSONResponse(plain(await self._api.pairings()))

    async def pair(self, request: Request) -> Response:
        body = await read_object(request)
        return JSONResponse({"told": await self._api.pair(str(body.get("code", "")), by=self._owner.name)})

    async def memory(self, request: Request) -> Response:
        return JSONResponse(plain(await self._api.memory_files(request.path_params["agent"])))

    async def memory_log(self, request: Request) -> Response:
        return JSONResponse(plain(await self._api.memory_log(request.path_params["agent"])))

    async def memory_diff(self, request: Request) -> Response:
        path = request.path_params
        return JSONResponse({"diff": await self._api.memory_diff(path["agent"], path["revision"])})

    async def memory_undo(self, request: Request) -> Response:
        path = request.path_params
        told = await self._api.memory_undo(path["agent"], path["revision"], by=self._owner.name)
        return JSONResponse({"told": told})

    async def readiness(self, request: Request) -> Response:
        del request
        return JSONResponse(plain(await self._api.readiness()))

    async def turns(self, request: Request) -> Response:
        body = await read_object(request)
        wanted = HeadlessRequest(
            text=str(body.get("text", "")),
            agent=str(body.get("agent", "")),
            conversation=str(body.get("conversation", "")),
        )
        events = self._api.run_headless(wanted)
        # The first event is awaited here, so that a wrong name is an error status, not a broken stream.
        first = await anext(events)
        return StreamingResponse(_lines(first, events), media_type=NDJSON)

    async def trace(self, request: Request) -> Response:
        return JSONResponse(await self._api.trace(request.path_params["turn"]))

    async def doctor(self, request: Request) -> Response:
        del request
        return StreamingResponse(_findings(self._api.examine()), media_type=NDJSON)

    async def backup(self, request: Request) -> Response:
        body = await read_object(request)
        events = self._api.backup(str(body.get("file", "")))
        # As with turns: where nothing can be written is an error status.
        first = await anext(events)
        return StreamingResponse(_lines(first, events), media_type=NDJSON)

    async def history(self, request: Request) -> Response:
        address = self._terminal.address(request.path_params["chat"])
        return JSONResponse(plain(await self._api.history(address.key)))

    async def feed(self, request: Request) -> Response:
        feed = self._feed(request.path_params["chat"], stopping_of(request.scope))
        return StreamingResponse(feed, media_type=NDJSON)

    async def say(self, request: Request) -> Response:
        body = await read_object(request)
        key = str(body["key"]) if body.get("key") else None
        await self._terminal.say(request.path_params["chat"], self._owner, str(body.get("text", "")), key=key)
        return JSONResponse({"ok": True})

    async def press(self, request: Request) -> Response:
        body = await read_object(request)
        token, card = needed(body, "token"), needed(body, "card")
        await self._terminal.press(request.path_params["chat"], self._owner, token, card)
        return JSONResponse({"ok": True})

    async def _feed(self, chat: str, stopping: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield the chat's events until the viewer leaves or the host stops."""
        async with self._terminal.subscribe(chat) as queue, asyncio.TaskGroup() as group:
            stopped = group.create_task(stopping.wait())
            arriving = group.create_task(queue.get())
            try:
                yield line({"type": "ready"})
                while not stopped.done():
                    await asyncio.wait({arriving, stopped}, timeout=_IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                    if not arriving.done():
                        yield b"\n"  # notices a viewer that has left
                        continue
                    yield line(feed_json(arriving.result()))
                    if queue.qsize() + 1 >= queue.maxsize:
                        yield line(BEHIND)  # it was full, so the channel gave this viewer up
                        return
                    arriving = group.create_task(queue.get())
            finally:
                stopped.cancel()
                arriving.cancel()


def build_control(api: HostApi, terminal: FeedChannel, owner: Sender, sessions: SessionApi) -> Starlette:
    """Return the application of the socket."""
    return Starlette(
        routes=[*ControlRoutes(api, terminal, owner).routes(), *SessionRoutes(sessions).routes()],
        exception_handlers={LodgerError: _lodger_error},
    )


async def _findings(findings: AsyncIterator[Finding]) -> AsyncIterator[bytes]:
    async for finding in findings:
        yield line(plain(finding))


async def _lines(first: Mapping[str, Any], rest: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    yield line(first)
    async for event in rest:
        yield line(event)


async def _lodger_error(request: Request, error: Exception) -> Response:
    logger.info("control_request_refused", extra={"path": request.url.path, "error": type(error).__name__})
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 503)
    return JSONResponse({"error": str(error), "kind": type(error).__name__}, status_code=status)
