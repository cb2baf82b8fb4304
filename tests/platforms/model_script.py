"""What a fake model server is told to do, in the terms of no provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web


@dataclass(frozen=True)
class Call:
    """A tool call that the fake model makes; `arguments` is sent as it is."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """A whole streamed answer. `gates[i]` is awaited before piece i of the text."""

    text: str | Sequence[str] = ""
    reasoning: str = ""
    signature: str = "sig1"
    calls: Sequence[Call] = ()
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    gates: Mapping[int, asyncio.Event] = field(default_factory=dict)

    @property
    def pieces(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else list(self.text)


@dataclass(frozen=True)
class Raw:
    """Bytes of a stream, item by item; an event is awaited; `cut` drops the connection at the end."""

    items: Sequence[str | bytes | asyncio.Event]
    cut: bool = False


@dataclass(frozen=True)
class Status:
    """An answer that is no stream."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


Reply: TypeAlias = Answer | Raw | Status
Step: TypeAlias = Reply | Callable[[dict[str, Any]], Reply]


@dataclass
class Seen:
    """One request as the server got it; `closed` is set when its connection is done with."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes
    refusal: str = ""
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class ModelServer:
    """A model server on a free port of the loopback address.

    It plays the script step by step and repeats the last step for ever. Requests that the real
    provider refuses are refused with its wording and use no step.
    """

    path = ""

    def __init__(self, script: Sequence[Step] = (Answer(text="ok"),), *, key: str = "", base_path: str = "") -> None:
        self.script = list(script)
        self.key = key
        self.base_path = base_path
        self.requests: list[Seen] = []
        self._played = 0
        self._peers: set[object] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}{self.base_path}"

    @property
    def connections(self) -> int:
        """How many connections brought requests so far."""
        return len(self._peers)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [seen.body for seen in self.requests]

    async def __aenter__(self):
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(self.base_path + self.path, self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        seen = Seen(path=request.path, headers=dict(request.headers), body=json.loads(raw), raw=raw)
        self.requests.append(seen)
        self._peers.add(request.transport.get_extra_info("peername"))
        try:
            refusal = self.refuse(seen)
            if refusal is not None:
                seen.refusal = refusal.body
                return _plain(refusal)
            reply = self._next_reply(seen.body)
            if isinstance(reply, Status):
                return _plain(reply)
            raw_reply = reply if isinstance(reply, Raw) else Raw(items=self.stream_items(reply, seen.body))
            return await _play(request, raw_reply)
        finally:
            seen.closed.set()

    def _next_reply(self, body: dict[str, Any]) -> Reply:
        step = self.script[min(self._played, len(self.script) - 1)]
        self._played += 1
        return step(body) if callable(step) else step

    def refuse(self, seen: Seen) -> Status | None:
        """Return the refusal that the real provider would send."""
        raise NotImplementedError

    def stream_items(self, answer: Answer, body: dict[str, Any]) -> list[str | asyncio.Event]:
        """Return the answer as the provider streams it."""
        raise NotImplementedError


def text_items(answer: Answer, event: Callable[[str], str]) -> list[str | asyncio.Event]:
    """Return the text's pieces, each behind its gate."""
    items: list[str | asyncio.Event] = []
    for number, piece in enumerate(answer.pieces):
        if number in answer.gates:
            items.append(answer.gates[number])
        if piece:
            items.append(event(piece))
    return items


def halves(text: str) -> tuple[str, str]:
    """Return a text in two pieces, as arguments arrive."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def _plain(reply: Status) -> web.Response:
    return web.Response(
        status=reply.status, text=reply.body, headers=dict(reply.headers), content_type=reply.content_type
    )


async def _play(request: web.Request, reply: Raw) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for item in reply.items:
        if isinstance(item, asyncio.Event):
            await item.wait()
        else:
            await response.write(item if isinstance(item, bytes) else item.encode("utf-8", "surrogatepass"))
    if reply.cut:
        request.transport.abort()
        return response
    await response.write_eof()
    return response
