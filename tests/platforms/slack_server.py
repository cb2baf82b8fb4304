"""A fake Slack over real sockets, for the real SDK to talk to.

    async with SlackServer() as server:
        client = AsyncWebClient(token=server.token, base_url=server.api_base)
        app = AsyncApp(client=client)
        await AsyncSocketModeHandler(app, server.app_token).connect_async()
        server.user_says(ROOM, ALICE, "<@U0BOT> hello")
        await server.wait_for(lambda: server.visible(ROOM))

It enforces what the platform enforces: tokens and scopes, membership, sizes of texts and blocks,
pace, threads, streams, triggers and response URLs that expire, signatures. Tests make it misbehave
with `fault`, `fail_next`, `gate_next`, `gate_answer`, `flood`, `sockets`, `access`, `messages`, and
read `calls`, `visible`, `ephemeral`, `deliveries` and `files`. Nothing here sleeps; time is the
injected clock's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from aiohttp import web

from core.contracts.clock import Clock, SystemClock
from tests.platforms import slack_api
from tests.platforms.slack_agents import Agents
from tests.platforms.slack_deliveries import Deliveries, Delivery
from tests.platforms.slack_directory import Directory
from tests.platforms.slack_downloads import Downloads
from tests.platforms.slack_faults import Fault, FaultScript, Planned
from tests.platforms.slack_files import Files, StoredFile
from tests.platforms.slack_history import History
from tests.platforms.slack_http import Answer, Posts, Signing
from tests.platforms.slack_interactions import Interactions
from tests.platforms.slack_message import Message
from tests.platforms.slack_messages import Messages
from tests.platforms.slack_methods import Access, Call, Methods, Pace, read_call
from tests.platforms.slack_people import People
from tests.platforms.slack_refusals import Refusal
from tests.platforms.slack_socket import Sockets
from tests.platforms.slack_streams import Streams
from tests.platforms.slack_views import Views
from tests.platforms.slack_workspace import ALICE, ROOM, Json, Workspace
from tests.platforms.telegram_faults import Gate, Gates

TOKEN = "xoxb-1-2-" + "d" * 24
APP_TOKEN = "xapp-1-A0APP-2-" + "d" * 24
SIGNING_SECRET = "5" * 32
_REQUEST_LIMIT_BYTES = 60_000_000


class SlackServer:
    """One app in one workspace. `min_interval` is the shortest time, in seconds, between posts in a channel.

    With `tiers` the documented number of calls a minute is enforced, method by method.
    """

    def __init__(
        self,
        token: str = TOKEN,
        app_token: str = APP_TOKEN,
        *,
        signing_secret: str = SIGNING_SECRET,
        clock: Clock | None = None,
        min_interval: float = 0.0,
        tiers: bool = False,
    ) -> None:
        self.token = token
        self.app_token = app_token
        self.signing_secret = signing_secret
        self.clock: Clock = clock or SystemClock()
        self.calls: list[Call] = []
        self.access = Access(token, app_token, set(slack_api.SCOPES))
        self.pace = Pace(self.clock, min_interval, tiers=tiers)
        self.workspace = Workspace(self.clock)
        self.files = Files(self.clock, lambda: self.base)
        self.downloads = Downloads(self.clock, self.files)
        self.deliveries = Deliveries(self.clock, self.workspace, self._wake)
        self.messages = Messages(self.clock, self.workspace, self.deliveries.event)
        self._script = FaultScript()
        self.sockets = Sockets(self.clock, self._script, self.deliveries, self._wake)
        self.posts = Posts(self.clock, signing_secret, self._script, self.deliveries, self._wake)
        self.deliveries.over(self.posts, self.sockets)
        self.interactions = Interactions(self.clock, self.workspace, self.messages, lambda: self.base)
        directory = Directory(self.workspace, self.deliveries.event)
        self.people = People(
            workspace=self.workspace,
            messages=self.messages,
            directory=directory,
            deliveries=self.deliveries,
            interactions=self.interactions,
        )
        self.agents = Agents(self.clock, self.workspace)
        self.streams = Streams(self.clock, self.workspace, self.messages, self.agents.move)
        self.views = Views(self.workspace, self.deliveries, self.interactions)
        table = (
            slack_api.of_messages(self.messages, History(self.workspace))
            | slack_api.of_directory(directory)
            | slack_api.of_files(self.files, self.messages.share)
            | slack_api.of_streams(self.streams)
            | slack_api.of_agents(self.agents)
            | slack_api.of_views(self.views)
            | slack_api.of_sockets(self._open_connection)
        )
        self._methods = Methods(table, self.access, self.pace, self._kind_of)
        self._gates = Gates()
        self._answer_gates = Gates()
        self._waiters: list[asyncio.Future[None]] = []
        self._runner: web.AppRunner | None = None
        self._posting: asyncio.Task[None] | None = None
        self._port = 0

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen on a loopback port; after `stop` it is the same port again, nothing forgotten."""
        app = web.Application(client_max_size=_REQUEST_LIMIT_BYTES)
        app.router.add_route("*", "/api/{method}", self._serve)
        app.router.add_get("/link", self.sockets.serve)
        app.router.add_post("/actions/{key:.+}", self._respond)
        app.router.add_post("/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/T0TEAM-{file}/{name:.+}", self._download)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self._posting = asyncio.create_task(self.posts.run())

    async def stop(self) -> None:
        """End every connection and refuse new ones, as in an outage."""
        self._gates.open_all()
        self._answer_gates.open_all()
        self.sockets.cut()
        if self._posting is not None:
            self._posting.cancel()
            with suppress(asyncio.CancelledError):
                await self._posting
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def api_base(self) -> str:
        """What a client takes as its `base_url`."""
        return f"{self.base}/api/"

    # What people do

    def user_says(
        self,
        channel: str,
        user: str,
        text: str,
        thread_ts: str | None = None,
        files: tuple[StoredFile, ...] = (),
        **extra: Any,
    ) -> str:
        """Post a message of a person and return its ts; `extra` goes into the events over the other fields."""
        return self.people.says(channel, user, text, thread_ts, files, extra)

    def user_edits(self, channel: str, ts: str, text: str) -> None:
        """Let whoever wrote a message change it."""
        self.people.edits(channel, ts, text)

    def user_deletes(self, channel: str, ts: str) -> None:
        """Delete a message, the app's too; a root with replies leaves its place."""
        self.people.deletes(channel, ts)

    def user_reacts(self, channel: str, user: str, ts: str, name: str, *, removed: bool = False) -> None:
        """Add a reaction to a message, or take it back."""
        self.people.reacts(channel, user, ts, name, removed=removed)

    def link_unfurls(self, channel: str, ts: str, url: str = "https://example.com/") -> None:
        """Let Slack put the preview of a link under a message: it changes, and nobody edited it."""
        self.people.unfurls(channel, ts, url)

    def presses(
        self, user: str, channel: str, ts: str, action: str, *, option: str = "", stale: bool = False
    ) -> Delivery:
        """Press what has that action id, value or label on a message.

        Args:
            option: The value or text of what is chosen, for a menu.
            stale: The presser's screen is old: the button need not be there any more.
        """
        return self.people.presses(user, channel, ts, action, option=option, stale=stale)

    def presses_in_view(self, user: str, action: str, option: str = "") -> Delivery:
        """Press what has that action id, value or label in the modal on top, or else in the person's home."""
        return self.views.presses(user, action, option)

    def submits(self, user: str, values: dict[str, str] | None = None, view_id: str = "") -> Delivery:
        """Send the modal on top, or that one; `values` by action id or block id."""
        return self.views.submits(user, values or {}, view_id)

    def closes(self, user: str, view_id: str = "") -> Delivery | None:
        """Close the modal on top, or that one; the app is told if the view asked for it."""
        return self.views.closes(user, view_id)

    def opens_home(self, user: str, tab: str = "home") -> Delivery:
        """Look at the app's home or, with the tab `messages`, at the direct channel."""
        return self.views.opens_home(user, tab)

    def runs_command(self, command: str, text: str = "", user: str = ALICE, channel: str = ROOM) -> Delivery:
        """Type a slash command; what comes with its acknowledgement is shown to that person."""
        return self.people.runs(command, text, user, channel)

    def uses_shortcut(self, callback_id: str, user: str = ALICE, channel: str = "", ts: str = "") -> Delivery:
        """Choose a shortcut: of a message if there is a ts, otherwise the global one."""
        return self.people.uses_shortcut(callback_id, user, channel, ts)

    def stops_session(self, channel: str, user: str, thread_ts: str) -> Delivery:
        """Press the stop button of a session; Slack ends the streams of that thread by itself."""
        return self.people.stops_session(channel, user, thread_ts)

    def invites_bot(self, channel: str, user: str = ALICE) -> None:
        """Bring the bot into a channel; one that is not there yet is made."""
        self.people.invites_bot(channel, user)

    def removes_bot(self, channel: str, user: str = ALICE) -> None:
        """Throw the bot out of a channel."""
        self.people.removes_bot(channel, user)

    def joins(self, channel: str, user: str) -> None:
        """Let somebody become a member of a channel."""
        self.people.joins(channel, user)

    def deliver(self, event: Json) -> Delivery:
        """Tell a raw event."""
        return self.deliveries.event(event)

    def redeliver(self, *deliveries: Delivery, reason: str = "timeout") -> None:
        """Tell those once more, as a retry; without any it is every event that was not acknowledged."""
        for delivery in deliveries or self.deliveries.unacked():
            self.deliveries.redeliver(delivery, reason)

    async def post_event(
        self, url: str, payload: Json, kind: str = "events_api", *, signing: Signing | None = None, retry: str = ""
    ) -> Answer:
        """Post something to a URL once, by hand; see `Posts.post`. For all that happens set `posts.url`."""
        return await self.posts.post(url, payload, kind, signing=signing, retry=retry)

    async def verify_url(self, url: str) -> Answer:
        """Ask an app whether the URL is its own, as the settings page does; it has to answer the challenge."""
        return await self.post_event(url, {"type": "url_verification", "challenge": "3eZbrw1aB", "token": "x"})

    # What goes wrong

    def fault(
        self,
        method: str,
        fault: Fault,
        *,
        times: int = 1,
        channel: str | None = None,
        seconds: float = 0.0,
        location: str = "",
    ) -> Planned:
        """Let the next calls of `method` (in that channel) go wrong; returns what waits for the last of them.

        Beside the Web API's there are the methods `link` (the app opens a socket), `envelope`
        (something is sent through one), `ack` (one is heard), `event` (something is posted to the
        app), `respond` (the app posts to a response URL), `upload` and `download`.
        """
        planned = [Planned(fault, channel=channel, seconds=float(seconds), location=location) for _ in range(times)]
        self._script.plan(method, planned)
        return planned[-1]

    def fail_next(
        self,
        method: str,
        status: int = 500,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        channel: str | None = None,
        times: int = 1,
    ) -> None:
        """Answer the next calls of `method` (in that channel) with a status, and `body` or a plain error."""
        fault = Planned(Fault.ANSWERED, channel=channel, status=status, body=body, headers=headers or {})
        self._script.plan(method, [fault] * times)

    def refuse_next(self, method: str, error: str, *, channel: str | None = None, times: int = 1) -> None:
        """Answer the next calls of `method` (in that channel) with one of Slack's errors."""
        self.fail_next(method, 200, {"ok": False, "error": error}, channel=channel, times=times)

    def gate_next(self, method: str) -> Gate:
        """Hold the next call of `method` until the gate is opened."""
        return self._gates.add(method)

    def gate_answer(self, method: str) -> Gate:
        """Carry out the next call of `method` and hold its answer until the gate is opened."""
        return self._answer_gates.add(method)

    def flood(self, method: str, seconds: float, channel: str | None = None) -> None:
        """Answer 429 to every call of `method` (in that channel) for that long."""
        self.pace.flood(method, seconds, channel)

    def revoke(self, error: str = "token_revoked") -> None:
        """Refuse every call from now on: token_revoked, account_inactive, invalid_auth; empty: allow them again."""
        self.access.error = error

    def take_scope(self, *scopes: str) -> None:
        """Let the app have those scopes no more."""
        self.access.scopes.difference_update(scopes)

    # What can be seen

    def visible(self, channel: str, thread: str | None = None, *, everyone: bool = False) -> list[Message]:
        """Return the app's messages in a channel as they look now, oldest first; or everyone's.

        With `thread` it is those of that thread, its root among them.
        """
        place = self.workspace.channels.get(channel)
        shown = [message for message in place.messages.values() if not message.is_gone] if place else []
        if thread is not None:
            shown = [message for message in shown if thread in {message.ts, message.thread_ts}]
        return [message for message in shown if everyone or message.from_bot]

    def ephemeral(self, channel: str, user: str | None = None) -> list[Message]:
        """Return the messages that one person alone saw in a channel; or all such."""
        place = self.workspace.channels.get(channel)
        return [m for m in place.ephemeral if user in {None, m.shown_to}] if place else []

    def calls_of(self, method: str, channel: str | None = None) -> list[Call]:
        """Return the calls of one method, in one channel if it is given, oldest first."""
        of_method = [call for call in self.calls if call.method == method]
        return [call for call in of_method if channel in {None, call.channel}]

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

    async def acked(self, delivery: Delivery, timeout: float = 30.0) -> Json:
        """Wait until the app acknowledged something, and return what came with that.

        Raises:
            TimeoutError: It did not, in `timeout` seconds of real time.
        """
        await self.wait_for(lambda: delivery.acked_at is not None, timeout)
        return delivery.answer

    # Requests

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        call = await read_call(request, self.clock.monotonic())
        self.calls.append(call)
        self._wake()
        await self._gates.pass_one(call.method)
        planned = self._script.take(call.method, call.channel)
        if planned is not None:
            await planned.delay(self.clock)
        body, status, headers = self._outcome(call, planned)
        await self._answer_gates.pass_one(call.method)
        call.status = status
        if planned is not None and planned.drops:
            call.status = 0
            assert request.transport is not None
            request.transport.abort()
        self._wake()
        headers = {"X-OAuth-Scopes": ",".join(sorted(self.access.scopes)), **headers}
        if not isinstance(body, dict):
            return web.Response(text=str(body), status=call.status or 500, headers=headers, content_type="text/html")
        call.error = str(body.get("error", ""))
        return web.json_response(body, status=call.status or 500, headers=headers)

    def _outcome(self, call: Call, planned: Planned | None) -> tuple[Any, int, dict[str, str]]:
        if planned is not None and planned.answer is not None:
            return planned.answer
        try:
            return self._methods.carry_out(call), 200, {}
        except Refusal as refusal:
            return refusal.as_json(), refusal.status, refusal.headers

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        call = self._noted("respond", await request.json(), request)
        await self._gates.pass_one("respond")
        planned = self._script.take("respond")
        if planned is not None:
            await planned.delay(self.clock)
        body, call.status, headers = self._responded(request.match_info["key"], call, planned)
        if planned is not None and planned.drops:
            call.status = 0
            assert request.transport is not None
            request.transport.abort()
        self._wake()
        if call.status == 200:
            return web.Response(text="ok")
        call.error = str(body.get("error", "")) if isinstance(body, dict) else ""
        return web.json_response(body, status=call.status or 500, headers=headers)

    def _responded(self, key: str, call: Call, planned: Planned | None) -> tuple[Any, int, dict[str, str]]:
        if planned is not None and planned.answer is not None:
            return planned.answer
        try:
            self.interactions.respond(key, call.params)
        except Refusal as refusal:
            return refusal.as_json(), refusal.status if refusal.status != 200 else 400, refusal.headers
        return {}, 200, {}

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        call = self._noted("upload", {"file": request.match_info["file"]}, request)
        await self._gates.pass_one("upload")
        planned = self._script.take("upload")
        answer = await self.downloads.upload(request, planned)
        call.status = 0 if planned is not None and planned.drops else answer.status
        return answer

    async def _download(self, request: web.Request) -> web.StreamResponse:
        call = self._noted("download", {"file": request.match_info["file"]}, request)
        await self._gates.pass_one("download")
        allowed = call.token == self.token and not self.access.error and "files:read" in self.access.scopes
        planned = self._script.take("download")
        answer = await self.downloads.download(request, planned, allowed=allowed)
        call.status = 0 if planned is not None and planned.drops else answer.status
        return answer

    def _noted(self, method: str, params: Json, request: web.Request) -> Call:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        call = Call(method=method, params=params, token=token, at=self.clock.monotonic())
        self.calls.append(call)
        self._wake()
        return call

    def _open_connection(self, _: Json) -> Json:
        return {"url": f"ws://127.0.0.1:{self._port}/link?ticket={self.sockets.ticket()}&app_id=A0APP"}

    def _kind_of(self, channel: str) -> str:
        place = self.workspace.channels.get(channel)
        return place.kind if place else ""

    def _wake(self) -> None:
        """Let everybody who waits in `wait_for` look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
