"""A fake Discord over real sockets, for the real SDK to talk to.

    async with DiscordServer() as server:
        discord.http.Route.BASE = server.api_base
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(server.gateway_url)
        ...
        server.user_says(GENERAL, ALICE, f"<@{BOT}> hello")
        await server.wait_for(lambda: server.visible(GENERAL))

There is one guild (`discord_guilds` has the ids) and a direct conversation with everybody (`dm`).
What people do: `user_says`, `user_edits`, `embeds_added`, `user_deletes`, `user_reacts`, `presses`,
`submits_modal`, `runs_command`, `uses_message_command`, `says_in_new_thread`, `posts_in_forum`,
`archives_thread`, `removes_bot`, `adds_bot`; `people` can do more. It enforces what the platform
enforces: intents, permissions, sizes, nonces, deadlines of interactions, links that run out. Tests
make it misbehave with `fault`, `fail_next`, `gate_next`, `gate_answer`, `gateway`, `pace`, `account`,
and read `calls`, `visible`, `interactions`, `commands` and `files`. Nothing here sleeps; time is the
injected clock's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any, Self

from aiohttp import web

from core.contracts.clock import Clock, SystemClock
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_calls import Call, read_body
from tests.platforms.discord_faults import Answer, answer_of, limited
from tests.platforms.discord_files import REQUEST_LIMIT_BYTES
from tests.platforms.discord_gateway import Close
from tests.platforms.discord_message import Message
from tests.platforms.discord_pace import Pace
from tests.platforms.discord_refusals import Refusal, not_found, unauthorized
from tests.platforms.discord_routes import Route
from tests.platforms.discord_world import World
from tests.platforms.telegram_faults import Fault, FaultScript, Gate, Gates, Planned

_API = "/api/v10"
_MARGIN_BYTES = 10_000_000


class DiscordServer:
    """One bot's Discord: its API, its gateway and its files."""

    def __init__(self, token: str = TOKEN, *, clock: Clock | None = None) -> None:
        self.token = token
        self.clock: Clock = clock or SystemClock()
        self.calls: list[Call] = []
        self.clock_skew = timedelta(0)
        self.pace = Pace(self.clock)
        self._script = FaultScript()
        self._gates = Gates()
        self._answer_gates = Gates()
        world = World(token, self.clock, self._script, self._wake)
        self.account, self.directory, self.gateway = world.account, world.directory, world.gateway
        self.messages, self.threads, self.files = world.messages, world.threads, world.files
        self.commands, self.interactions, self.people = world.commands, world.interactions, world.people
        self.dm = world.people.dm
        self.user_says = world.people.says
        self.user_edits = world.people.edits
        self.embeds_added = world.people.embeds_added
        self.user_deletes = world.people.deletes
        self.user_reacts = world.people.reacts
        self.says_in_new_thread = world.people.says_in_new_thread
        self.posts_in_forum = world.people.posts_in_forum
        self.archives_thread = world.people.archives
        self.removes_bot = world.people.removes_bot
        self.adds_bot = world.people.adds_bot
        self.presses = world.presses.presses
        self.submits_modal = world.presses.submits_modal
        self.runs_command = world.presses.runs_command
        self.uses_message_command = world.presses.uses_message_command
        self._routes = world.routes
        self._waiters: list[asyncio.Future[None]] = []
        self._runner: web.AppRunner | None = None
        self._port = 0

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen on a loopback port; after `stop` it is the same port again, nothing forgotten."""
        app = web.Application(client_max_size=REQUEST_LIMIT_BYTES + _MARGIN_BYTES)
        for route in self._routes:
            app.router.add_route(route.method, _API + route.path, partial(self._serve, route))
        app.router.add_get("/gw", self.gateway.serve)
        app.router.add_get("/gw-resume", self.gateway.serve)
        app.router.add_get(r"/attachments/{channel_id:\d+}/{attachment_id:\d+}/{name}", self._serve_file)
        app.router.add_route("*", "/{path:.*}", self._serve_unknown)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.gateway.url = self.gateway_url
        self.files.origin = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Refuse connections, as in an outage."""
        self._gates.open_all()
        self._answer_gates.open_all()
        self.gateway.cut()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self._port}{_API}"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/gw"

    # What goes wrong

    def fault(
        self,
        route: str,
        fault: Fault,
        *,
        times: int = 1,
        channel_id: int | None = None,
        seconds: float = 0.0,
        location: str = "",
        is_global: bool = False,
    ) -> Planned:
        """Let the next calls of a route (in that channel) go wrong; returns what waits for the last of them.

        A download is of route `download`. An event of the gateway is of the route that has its
        name, such as `MESSAGE_CREATE`, and can be duplicated, or reordered: it comes after the next one.
        """
        body = {"global": True} if is_global else None
        planned = [
            Planned(fault, chat_id=channel_id, seconds=float(seconds), location=location, body=body)
            for _ in range(times)
        ]
        self._script.plan(route, planned)
        return planned[-1]

    def fail_next(
        self,
        route: str,
        status: int = 500,
        body: dict[str, Any] | None = None,
        *,
        channel_id: int | None = None,
        times: int = 1,
    ) -> None:
        """Let the next calls of a route (in that channel) be answered by a status, with `body` or a plain error."""
        planned = [Planned(Fault.ANSWERED, chat_id=channel_id, status=status, body=body) for _ in range(times)]
        self._script.plan(route, planned)

    def revoke_token(self) -> None:
        """Let the token be worth nothing any more, on the gateway too."""
        self.account.revoked = True
        self.gateway.close(Close.AUTHENTICATION_FAILED)

    def gate_next(self, route: str) -> Gate:
        """Hold the next call of a route until the gate is opened."""
        return self._gates.add(route)

    def gate_answer(self, route: str) -> Gate:
        """Carry out the next call of a route and hold its answer until the gate is opened."""
        return self._answer_gates.add(route)

    # What can be seen

    def visible(self, channel_id: int, *, everyone: bool = False) -> list[Message]:
        """Return the bot's messages in a channel as they look now, oldest first; or everyone's."""
        messages = self.messages.by_channel.get(channel_id, {}).values()
        return [message for message in messages if everyone or message.from_bot]

    def calls_of(self, route: str, channel_id: int | None = None) -> list[Call]:
        """Return the calls of one route, in one channel if it is given, oldest first."""
        of_route = [call for call in self.calls if call.route == route]
        return [call for call in of_route if channel_id is None or call.channel_id == channel_id]

    async def wait_for(self, condition: Callable[[], Any], timeout: float = 30.0) -> Any:
        """Return the first true value of `condition`, looked at after everything that happens here.

        Raises:
            TimeoutError: It stayed false for `timeout` seconds of real time.
        """
        async with asyncio.timeout(timeout):
            while not (value := condition()):
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter
            return value

    # Requests

    async def _serve(self, route: Route, request: web.Request) -> web.StreamResponse:
        call = Call(route.name, dict(request.match_info), dict(request.query), self.clock.monotonic())
        problem = await self._read(request, call)
        self.calls.append(call)
        self._wake()
        await self._gates.pass_one(route.name)
        planned = self._script.take(route.name, call.channel_id)
        if planned is not None:
            planned.entered.set()
            await self._delay(planned)
        status, body, headers = self._outcome(request, route, call, planned, problem)
        await self._answer_gates.pass_one(route.name)
        call.status = status
        if planned is not None and planned.drops:
            call.status = 0
            assert request.transport is not None
            request.transport.abort()
        self._wake()
        date = format_datetime(self.clock.now() + self.clock_skew, usegmt=True)
        return _answer(status, body, {"Date": date} | self.pace.headers(call) | headers)

    async def _read(self, request: web.Request, call: Call) -> Refusal | None:
        try:
            await read_body(request, call)
        except Refusal as refusal:
            return refusal
        return None

    async def _delay(self, planned: Planned) -> None:
        if planned.fault is Fault.SLOW:
            await self.clock.sleep(planned.duration)
        if planned.fault is Fault.HALF_OPEN:
            await asyncio.Event().wait()  # until the bot hangs up, or this server stops

    def _outcome(
        self, request: web.Request, route: Route, call: Call, planned: Planned | None, problem: Refusal | None
    ) -> tuple[int, Any, dict[str, str]]:
        """Carry a call out, or not, and return status, body and headers of its answer."""
        answered: Answer | None = None if planned is None else answer_of(planned)
        if answered is not None:
            return answered
        try:
            if not route.is_open and not self._knows(request):
                raise unauthorized()
            wait = 0.0 if route.is_unlimited else self.pace.charge(call)
            if wait > 0:
                return limited(wait)
            if problem is not None:
                raise problem
            body = route.run(call)
        except Refusal as refusal:
            return refusal.status, refusal.as_json(), {}
        return (204 if body is None else 200), body, {}

    def _knows(self, request: web.Request) -> bool:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        return kind == "Bot" and self.account.accepts(token)

    async def _serve_file(self, request: web.Request) -> web.StreamResponse:
        call = Call("download", dict(request.match_info), dict(request.query), self.clock.monotonic())
        self.calls.append(call)
        self._wake()
        return await self.files.download(request, self._script.take("download"))

    async def _serve_unknown(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(Call("unknown", {"path": request.path}, dict(request.query), self.clock.monotonic()))
        return _answer(404, not_found().as_json(), {})

    def _wake(self) -> None:
        """Let everybody who waits in `wait_for` look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


def _answer(status: int, body: Any, headers: dict[str, str]) -> web.Response:
    """Return an answer; its media type names no charset, which the SDK would not take for JSON."""
    if body is None:
        return web.Response(status=status, headers=headers)
    return web.Response(
        status=status, body=json.dumps(body).encode(), headers=headers | {"Content-Type": "application/json"}
    )
