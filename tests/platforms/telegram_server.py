"""A fake Telegram Bot API over real sockets, for the real SDK to talk to.

    async with TelegramServer(token) as server:
        channel = TelegramChannel(token=token, api_base=server.api_base, ...)
        server.user_says(111, "hello")
        await server.wait_for(lambda: server.visible(111))

It enforces what the platform enforces: confirmation of updates by offset and redelivery of the
unconfirmed, one poller at a time, sizes, pace, expiry of presses. Tests make it misbehave with
`fail_next`, `gate_next`, `gate_answer`, `flood`, `block`, `updates.webhook_url`, `revoked`, and read `calls`,
`visible` and `answers`. Nothing here sleeps; time is the injected clock's.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from core.contracts.clock import Clock, SystemClock
from tests.platforms.telegram_chats import (
    BOT_USERNAME,
    CALLBACK_ANSWER_LIMIT_CHARS,
    Chat,
    Chats,
    Message,
    Query,
    Refusal,
    bad_request,
    charge,
    refuse_while_flooded,
)
from tests.platforms.telegram_updates import UpdateQueue

TOKEN = "123456789:" + "D" * 35
_ACCEPTED = ("setMyCommands", "deleteMyCommands", "setChatMenuButton", "setMessageReaction", "logOut", "close")
_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


@dataclass
class Call:
    """One request as it arrived; `status` is 0 until it is answered, and if it never was."""

    method: str
    params: dict[str, Any]
    at: float
    status: int = 0


@dataclass
class Fault:
    """What happens to one call instead of success."""

    status: int = 500
    body: dict[str, Any] | None = None
    drop: str = ""
    chat_id: int | None = None


@dataclass
class Gate:
    """Holds one call after it arrived, before it is carried out or before that is answered."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


async def _pass_one(gates: deque[Gate]) -> None:
    """Wait at the first gate, if there is any."""
    if gates:
        gate = gates.popleft()
        gate.entered.set()
        await gate.opened.wait()


class TelegramServer:
    """One bot's Bot API. `min_interval` is the shortest time, in seconds, between calls in a chat."""

    def __init__(
        self, token: str = TOKEN, *, clock: Clock | None = None, min_interval: float = 0.0, query_ttl: float = 15.0
    ) -> None:
        self.token = token
        self.clock: Clock = clock or SystemClock()
        self.min_interval = min_interval
        self.query_ttl = query_ttl
        self.bot = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Lodger",
            "username": BOT_USERNAME,
        }
        self.chats = Chats(self.bot["id"])
        self.calls: list[Call] = []
        self.updates = UpdateQueue(self.clock, self._wake)
        self.revoked = False
        self._query_ids = itertools.count(7_000_001)
        self._queries: dict[str, Query] = {}
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._gates: dict[str, deque[Gate]] = defaultdict(deque)
        self._answer_gates: dict[str, deque[Gate]] = defaultdict(deque)
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
        app = web.Application()
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse connections, as in an outage."""
        for gates in (*self._gates.values(), *self._answer_gates.values()):
            for gate in gates:
                gate.opened.set()
        self.updates.end_poll("closed")
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    # What people do

    def user_says(
        self, chat_id: int, text: str, *, user: int | None = None, thread: int | None = None, **extra: Any
    ) -> int:
        """Post a message of a person and return its id; the chat exists from then on.

        `extra` goes into the message's JSON as it is, over the other fields.
        """
        chat = self.open_chat(chat_id)
        message = self.chats.add(chat, text=text, from_bot=False, thread=thread)
        shown = self.chats.as_json(chat, message, _person(user or abs(chat_id)), self._date())
        self.push_update({"message": shown | extra})
        return message.id

    def user_edits(self, chat_id: int, message_id: int, text: str, *, user: int | None = None) -> None:
        """Change a person's message."""
        chat = self.chats.by_id[chat_id]
        message = chat.messages[message_id]
        message.text = text
        shown = self.chats.as_json(chat, message, _person(user or abs(chat_id)), self._date())
        self.push_update({"edited_message": shown | {"edit_date": self._date()}})

    def press(self, chat_id: int, message_id: int, data: str, *, user: int | None = None, stale: bool = False) -> str:
        """Press the button that carries `data` and return the query's id.

        Args:
            stale: The presser's screen is old: the button need not be there any more.
        """
        chat = self.chats.by_id[chat_id]
        message = chat.messages[message_id]
        assert stale or data in message.buttons.values(), f"no button carries {data!r} on message {message_id}"
        query = Query(id=str(next(self._query_ids)), pressed_at=self.clock.monotonic())
        self._queries[query.id] = query
        self.push_update(
            {
                "callback_query": {
                    "id": query.id,
                    "from": _person(user or abs(chat_id)),
                    "chat_instance": "1",
                    "data": data,
                    "message": self.chats.as_json(chat, message, self.bot, self._date()),
                }
            }
        )
        return query.id

    def push_update(self, update: dict[str, Any]) -> int:
        """Queue a raw update and return its id."""
        return self.updates.push(update)

    def open_chat(self, chat_id: int, kind: str = "", title: str = "", topics: tuple[int, ...] = ()) -> Chat:
        """Let the chat exist; bots cannot write to people who never wrote to them."""
        chat = self.chats.open(chat_id, kind or ("private" if chat_id > 0 else "supergroup"), title)
        chat.topics.update(topics)
        return chat

    def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message, as a person can."""
        del self.chats.by_id[chat_id].messages[message_id]

    # What goes wrong

    def fail_next(
        self,
        method: str,
        status: int = 500,
        body: dict[str, Any] | None = None,
        *,
        drop_before: bool = False,
        drop_after: bool = False,
        chat_id: int | None = None,
        times: int = 1,
    ) -> None:
        """Let the next calls of `method` (in that chat) fail.

        With `drop_before` the connection ends before the call is carried out, with `drop_after`
        it is carried out and its answer lost. Otherwise `status` is answered, with `body` or a
        plain error of that status.
        """
        drop = "before" if drop_before else "after" if drop_after else ""
        fault = Fault(status=status, body=body, drop=drop, chat_id=chat_id)
        self._faults[method].extend([fault] * times)

    def gate_next(self, method: str) -> Gate:
        """Hold the next call of `method` until the gate is opened."""
        gate = Gate()
        self._gates[method].append(gate)
        return gate

    def gate_answer(self, method: str) -> Gate:
        """Carry out the next call of `method` and hold its answer until the gate is opened."""
        gate = Gate()
        self._answer_gates[method].append(gate)
        return gate

    def flood(self, chat_id: int, seconds: float) -> None:
        """Answer 429 to every message and edit of the chat for that long."""
        self.open_chat(chat_id).flooded_until = self.clock.monotonic() + seconds

    def block(self, chat_id: int, blocked: bool = True) -> None:
        """Let the person block the bot."""
        self.open_chat(chat_id).blocked = blocked

    # What can be seen

    def visible(self, chat_id: int, *, everyone: bool = False) -> list[Message]:
        """Return the bot's messages in the chat as they look now, oldest first; or everyone's."""
        chat = self.chats.by_id.get(chat_id)
        return [message for message in chat.messages.values() if everyone or message.from_bot] if chat else []

    def calls_of(self, method: str, chat_id: int | None = None) -> list[Call]:
        """Return the calls of one method, in one chat if it is given, oldest first."""
        of_method = [call for call in self.calls if call.method == method]
        return [call for call in of_method if chat_id is None or call.params.get("chat_id") == chat_id]

    @property
    def answers(self) -> dict[str, str]:
        """The texts of the presses that were answered, by query id."""
        return {query.id: query.answer for query in self._queries.values() if query.answer is not None}

    async def wait_for(self, condition: Callable[[], Any], timeout: float = 5.0) -> Any:
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

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        call = Call(method=method, params=await _params(request), at=self.clock.monotonic())
        self.calls.append(call)
        self._wake()
        await _pass_one(self._gates[method])
        fault = self._take_fault(call)
        body, status = await self._outcome(request.match_info["token"], call, fault)
        await _pass_one(self._answer_gates[method])
        call.status = status
        if fault is not None and fault.drop:
            call.status = 0
            assert request.transport is not None
            request.transport.abort()
        self._wake()
        return web.json_response(body, status=call.status or 500)

    def _take_fault(self, call: Call) -> Fault | None:
        faults = self._faults[call.method]
        for fault in faults:
            if fault.chat_id in {None, call.params.get("chat_id")}:
                faults.remove(fault)
                return fault
        return None

    async def _outcome(self, token: str, call: Call, fault: Fault | None) -> tuple[dict[str, Any], int]:
        if fault is not None and fault.drop != "after":
            return fault.body or {"ok": False, "error_code": fault.status, "description": "Error"}, fault.status
        if self.revoked or token != self.token:
            return {"ok": False, "error_code": 401, "description": "Unauthorized"}, 401
        try:
            return {"ok": True, "result": await self._perform(call)}, 200
        except Refusal as refusal:
            error = {"ok": False, "error_code": refusal.status, "description": refusal.description}
            parameters = {"parameters": refusal.parameters} if refusal.parameters else {}
            return error | parameters, refusal.status

    async def _perform(self, call: Call) -> Any:  # noqa: PLR0911 - one line for each method of the API
        match call.method:
            case "getMe":
                return self.bot
            case "getUpdates":
                return await self.updates.get(call.params)
            case "sendMessage" | "editMessageText" | "deleteMessage" | "sendChatAction":
                return self._in_chat(call)
            case "answerCallbackQuery":
                return self._answer(call.params)
            case "getWebhookInfo":
                return {"url": self.updates.webhook_url, "pending_update_count": len(self.updates.unconfirmed)}
            case "deleteWebhook":
                self.updates.webhook_url = ""
                return True
            case method if method in _ACCEPTED:
                return True
            case _:
                raise Refusal(404, "Not Found")

    def _in_chat(self, call: Call) -> Any:
        chat = self.chats.find(call.params)
        now = self.clock.monotonic()
        if call.method == "sendChatAction":
            refuse_while_flooded(chat, now)
            return True
        charge(chat, now, self.min_interval)
        if call.method == "deleteMessage":
            return self.chats.delete(chat, call.params)
        carry_out = self.chats.send if call.method == "sendMessage" else self.chats.edit
        return self.chats.as_json(chat, carry_out(chat, call.params), self.bot, self._date())

    def _answer(self, params: dict[str, Any]) -> bool:
        query = self._queries.get(str(params.get("callback_query_id")))
        expired = query is None or query.answer is not None
        if query is None or expired or self.clock.monotonic() - query.pressed_at > self.query_ttl:
            raise bad_request(_TOO_OLD)
        text = str(params.get("text", ""))
        if len(text) > CALLBACK_ANSWER_LIMIT_CHARS:
            raise bad_request("MESSAGE_TOO_LONG")
        query.answer = text
        return True

    def _date(self) -> int:
        return int(self.clock.now().timestamp())

    def _wake(self) -> None:
        """Let everybody who waits in `wait_for` look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


def _person(user: int) -> dict[str, Any]:
    names = {111: "Alice", 222: "Bob"}
    return {"id": user, "is_bot": False, "first_name": names.get(user, f"User {user}")}


async def _params(request: web.Request) -> dict[str, Any]:
    """Read a call's parameters: query string, form, multipart or JSON; nested values are JSON texts."""
    raw: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        raw |= await request.json()
    else:
        raw |= await request.post()
    return {name: _decoded(name, value) for name, value in raw.items()}


def _decoded(name: str, value: Any) -> Any:
    if name == "text" or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
