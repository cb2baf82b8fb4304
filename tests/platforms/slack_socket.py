"""Socket Mode of a fake Slack: sockets that the app opens, envelopes, acknowledgements, refreshes.

After docs.slack.dev/apis/events-api/using-socket-mode as read on 2026-11-30.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from core.contracts.clock import Clock
from tests.platforms.slack_deliveries import Deliveries, Delivery
from tests.platforms.slack_faults import Fault, FaultScript, Planned
from tests.platforms.slack_workspace import APP

Json = dict[str, Any]

SOCKETS_LIMIT = 10


@dataclass
class Socket:
    """One socket of the app. `is_deaf`: it stays open, and nothing comes through it any more."""

    number: int
    response: web.WebSocketResponse
    transport: asyncio.Transport
    outgoing: asyncio.Queue[tuple[Json, Planned | None]] = field(default_factory=asyncio.Queue)
    received: list[Json] = field(default_factory=list)
    pings: int = 0
    is_deaf: bool = False
    is_leaving: bool = False

    def abort(self) -> None:
        """End the connection without a word."""
        self.transport.abort()


class Sockets:
    """The open sockets of an app; each envelope goes to one of them, by turns."""

    def __init__(
        self, clock: Clock, script: FaultScript, deliveries: Deliveries, on_change: Callable[[], None]
    ) -> None:
        self.open: list[Socket] = []
        self.unknown_acks: list[Json] = []
        self._clock = clock
        self._script = script
        self._deliveries = deliveries
        self._on_change = on_change
        self._numbers = itertools.count(1)
        self._turns = itertools.count()
        self._tickets: set[str] = set()
        self._envelopes: dict[str, Delivery] = {}
        self._held: list[Json] = []

    @property
    def is_open(self) -> bool:
        return any(not socket.is_leaving for socket in self.open)

    # What tests do

    def cut(self) -> None:
        """End every connection without a word, as a broken network does."""
        for socket in self.open:
            socket.abort()

    def deafen(self) -> None:
        """Let every open socket stay open and dead: nothing comes, no ping is answered, no ack is heard."""
        for socket in self.open:
            socket.is_deaf = True

    def say(self, frame: Json) -> None:
        """Send a frame to every socket."""
        for socket in self.open:
            socket.outgoing.put_nowait((frame, None))

    def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask the app to open other sockets: refresh_requested, warning, link_disabled or too_many_websockets.

        No event is sent to the old ones from here on, but for a mere warning.
        """
        self.say({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})
        for socket in self.open:
            socket.is_leaving = reason != "warning"

    async def ping(self) -> None:
        """Send a PING frame to every socket, as Slack does all the time."""
        for socket in self.open:
            if not socket.is_deaf:
                with suppress(ConnectionError):
                    await socket.response.ping(f"Ping from applink-{socket.number}".encode())

    # Envelopes

    def send(self, delivery: Delivery) -> None:
        """Put a delivery into an envelope and send it to one socket."""
        envelope = self._envelope(delivery)
        planned = self._script.take("envelope", delivery.event.get("channel"))
        match None if planned is None else planned.fault:
            case Fault.LOST_REQUEST:
                return
            case Fault.REORDERED:
                self._held.append(envelope)
                return
            case Fault.DUPLICATED:
                self._queue(envelope)
        self._queue(envelope, planned)
        held, self._held = self._held, []
        for late in held:
            self._queue(late)

    def _envelope(self, delivery: Delivery) -> Json:
        envelope_id = f"envelope-{len(self._envelopes) + 1}"
        self._envelopes[envelope_id] = delivery
        delivery.envelope_ids.append(envelope_id)
        envelope: Json = {"envelope_id": envelope_id, "payload": delivery.payload, "type": delivery.kind}
        envelope["accepts_response_payload"] = delivery.kind != "events_api"
        if delivery.kind == "events_api":
            envelope["retry_attempt"] = len(delivery.retries)
            envelope["retry_reason"] = delivery.retries[-1] if delivery.retries else ""
        return envelope

    def _queue(self, envelope: Json, planned: Planned | None = None) -> None:
        ready = [socket for socket in self.open if not socket.is_leaving]
        ready[next(self._turns) % len(ready)].outgoing.put_nowait((envelope, planned))

    # Connections

    def ticket(self) -> str:
        """Return a new ticket, good for one socket."""
        ticket = f"ticket-{next(self._numbers)}"
        self._tickets.add(ticket)
        return ticket

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Be one socket until either side ends it."""
        planned = self._script.take("link")
        if planned is not None:
            await planned.delay(self._clock)
        if planned is not None and (answer := planned.answer) is not None:
            if planned.drops and request.transport is not None:
                request.transport.abort()
            return web.json_response(answer[0], status=answer[1], headers=answer[2])
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden
        self._tickets.remove(ticket)
        response = web.WebSocketResponse(autoping=False)
        await response.prepare(request)
        assert isinstance(request.transport, asyncio.Transport)
        socket = Socket(int(ticket.partition("-")[2]), response, request.transport)
        writing = asyncio.create_task(self._write(socket))
        try:
            self._greet(socket)
            await self._read(socket)
        finally:
            self._left(socket)
            writing.cancel()
            await asyncio.wait({writing})
        return response

    def _greet(self, socket: Socket) -> None:
        if len(self.open) >= SOCKETS_LIMIT:
            frame = {"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}}
            socket.outgoing.put_nowait((frame, None))
            socket.is_leaving = True
        self.open.append(socket)
        hello = {
            "type": "hello",
            "num_connections": len(self.open),
            "connection_info": {"app_id": APP},
            "debug_info": {"host": f"applink-{socket.number}", "approximate_connection_time": 18060},
        }
        if not socket.is_leaving:
            socket.outgoing.put_nowait((hello, None))
            self._deliveries.flush()
        self._on_change()

    async def _read(self, socket: Socket) -> None:
        async for message in socket.response:
            if message.type is WSMsgType.PING:
                socket.pings += 1
                if not socket.is_deaf:
                    with suppress(ConnectionError):
                        await socket.response.pong(message.data)
            elif message.type is WSMsgType.TEXT and not socket.is_deaf:
                self._heard(socket, json.loads(message.data))
            self._on_change()

    def _heard(self, socket: Socket, frame: Json) -> None:
        socket.received.append(frame)
        delivery = self._envelopes.get(str(frame.get("envelope_id")))
        if delivery is None:
            self.unknown_acks.append(frame)
        elif self._script.take("ack", delivery.event.get("channel")) is None:
            self._deliveries.acked(delivery, frame.get("payload") or {})

    async def _write(self, socket: Socket) -> None:
        while True:
            frame, planned = await socket.outgoing.get()
            if planned is not None and planned.fault is Fault.SLOW:
                await planned.delay(self._clock)
            if not socket.is_deaf:
                with suppress(ConnectionError):  # it ends while something is written
                    await socket.response.send_str(json.dumps(frame))

    def _left(self, socket: Socket) -> None:
        self.open.remove(socket)
        self._on_change()
