"""A fake Telegram Bot API over real sockets, for the real SDK to talk to.

    async with TelegramServer(token) as server:
        channel = TelegramChannel(token=token, api_base=server.api_base, ...)
        server.user_says(111, "hello")
        await server.wait_for(lambda: server.visible(111))

It enforces what the platform enforces: confirmation of updates by offset and redelivery of the
unconfirmed, one poller at a time, sizes, entities, topics, pace, expiry of presses. Tests make it
misbehave with `fault`, `fail_next`, `gate_next`, `gate_answer`, `flood`, `bar`, `migrate`,
`revoked`, `clock_skew`, and read `calls`, `visible`, `answers`, `menus` and `files`. Nothing here
sleeps; time is the injected clock's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from typing import Any, Self

from aiohttp import web

from core.contracts.clock import Clock, SystemClock
from tests.platforms.telegram_account import Menus, Queries, WebhookPosts
from tests.platforms.telegram_chats import BOT_USERNAME, Chat, Chats, Message
from tests.platforms.telegram_faults import Fault, FaultScript, Gate, Gates, Planned
from tests.platforms.telegram_files import Files
from tests.platforms.telegram_members import ADMINISTERING, member, person
from tests.platforms.telegram_methods import Call, Methods, read_params
from tests.platforms.telegram_refusals import Refusal
from tests.platforms.telegram_updates import UpdateQueue

TOKEN = "123456789:" + "D" * 35
_REQUEST_LIMIT_BYTES = 60_000_000
_FIRST_SUPERGROUP = -1_000_000_000_000


class TelegramServer:
    """One bot's Bot API. `min_interval` is the shortest time, in seconds, between calls in a chat."""

    def __init__(
        self, token: str = TOKEN, *, clock: Clock | None = None, min_interval: float = 0.0, query_ttl: float = 15.0
    ) -> None:
        self.token = token
        self.clock: Clock = clock or SystemClock()
        self.clock_skew = timedelta(0)
        self.min_interval = min_interval
        self.bot: dict[str, Any] = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Lodger",
            "username": BOT_USERNAME,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
        }
        self.files = Files(self.clock)
        self.chats = Chats(self.clock, self.files)
        self.menus = Menus(self.chats)
        self.calls: list[Call] = []
        self.updates = UpdateQueue(self.clock, self._wake)
        self.revoked = False
        self._queries = Queries(self.clock, query_ttl)
        self._script = FaultScript()
        self._gates = Gates()
        self._answer_gates = Gates()
        self.webhook = WebhookPosts(self.updates, self.clock, self._script, self._wake)
        self._methods = Methods(
            bot=self.bot,
            clock=self.clock,
            chats=self.chats,
            files=self.files,
            menus=self.menus,
            queries=self._queries,
            updates=self.updates,
            webhook=self.webhook,
        )
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
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{path:.+}", self._serve_file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self._posting = asyncio.create_task(self.webhook.run())

    async def stop(self) -> None:
        """Refuse connections, as in an outage."""
        self._gates.open_all()
        self._answer_gates.open_all()
        self.updates.end_poll("closed")
        if self._posting is not None:
            self._posting.cancel()
            await asyncio.wait({self._posting})
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
        shown = self.chats.as_json(chat, message, person(user or abs(chat_id)))
        self.push_update({"message": shown | extra})
        return message.id

    def user_edits(self, chat_id: int, message_id: int, text: str, *, user: int | None = None) -> None:
        """Change a person's message."""
        chat = self.chats.by_id[chat_id]
        message = chat.messages[message_id]
        message.text = text
        shown = self.chats.as_json(chat, message, person(user or abs(chat_id)))
        self.push_update({"edited_message": shown | {"edit_date": self._date()}})

    def press(self, chat_id: int, message_id: int, data: str, *, user: int | None = None, stale: bool = False) -> str:
        """Press the button that carries `data` and return the query's id.

        Args:
            stale: The presser's screen is old: the button need not be there any more.
        """
        chat = self.chats.by_id[chat_id]
        message = chat.messages[message_id]
        assert stale or data in message.buttons.values(), f"no button carries {data!r} on message {message_id}"
        query = self._queries.begin()
        self.push_update(
            {
                "callback_query": {
                    "id": query.id,
                    "from": person(user or abs(chat_id)),
                    "chat_instance": "1",
                    "data": data,
                    "message": self.chats.as_json(chat, message, self.bot),
                }
            }
        )
        return query.id

    def push_update(self, update: dict[str, Any]) -> int:
        """Queue a raw update and return its id."""
        return self.updates.push(update)

    def open_chat(self, chat_id: int, kind: str = "", title: str = "", topics: tuple[int, ...] = ()) -> Chat:
        """Let the chat exist; bots cannot write to people who never wrote to them."""
        chat = self.chats.open(chat_id, kind or _kind_of(chat_id), title)
        chat.topics.update(topics)
        chat.is_forum = chat.is_forum or bool(topics)
        return chat

    def appoint(self, chat_id: int, user: int, status: str = "administrator") -> None:
        """Give somebody another standing in a group; `member` and `left` end the one they had.

        The bot is always told of its own; of others' only as an administrator who asked for it.
        """
        chat = self.open_chat(chat_id)
        is_bot = user == self.bot["id"]
        shown = self.bot if is_bot else person(user)
        change = {
            "chat": chat.as_json(),
            "from": person(111),
            "date": self._date(),
            "old_chat_member": member(shown, chat.standings.get(user, "member")),
            "new_chat_member": member(shown, status),
        }
        chat.standings[user] = status
        if is_bot:
            self.push_update({"my_chat_member": change})
        elif chat.standings.get(self.bot["id"]) in ADMINISTERING and "chat_member" in self.updates.wanted:
            self.push_update({"chat_member": change})

    def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message, as a person can."""
        del self.chats.by_id[chat_id].messages[message_id]

    def migrate(self, chat_id: int, new_id: int, *, told: bool = True) -> None:
        """Make a supergroup of a group: nothing can be done under its old id any more.

        Args:
            told: Both service messages are sent to the bot.
        """
        old = self.open_chat(chat_id)
        new = self.open_chat(new_id, "supergroup", old.title)
        old.moved_to, new.standings = new_id, dict(old.standings)
        if told:
            for chat, told_of in ((old, {"migrate_to_chat_id": new_id}), (new, {"migrate_from_chat_id": chat_id})):
                message = self.chats.add(chat, text="", from_bot=False)
                shown = self.chats.as_json(chat, message, person(111))
                del shown["text"]
                self.push_update({"message": shown | told_of})

    # What goes wrong

    def fault(
        self,
        method: str,
        fault: Fault,
        *,
        times: int = 1,
        chat_id: int | None = None,
        seconds: float = 0.0,
        location: str = "",
    ) -> Planned:
        """Let the next calls of `method` (in that chat) go wrong; returns what waits for the last of them.

        A download is of method `download`, an update that is posted of method `webhook`.
        """
        planned = [Planned(fault, chat_id=chat_id, seconds=float(seconds), location=location) for _ in range(times)]
        self._script.plan(method, planned)
        return planned[-1]

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
        lost = Fault.LOST_REQUEST if drop_before else Fault.LOST_RESPONSE
        fault = lost if drop_before or drop_after else Fault.ANSWERED
        self._script.plan(method, [Planned(fault, chat_id=chat_id, status=status, body=body) for _ in range(times)])

    def gate_next(self, method: str) -> Gate:
        """Hold the next call of `method` until the gate is opened."""
        return self._gates.add(method)

    def gate_answer(self, method: str) -> Gate:
        """Carry out the next call of `method` and hold its answer until the gate is opened."""
        return self._answer_gates.add(method)

    def flood(self, chat_id: int, seconds: float) -> None:
        """Answer 429 to every message and edit of the chat for that long."""
        self.open_chat(chat_id).flooded_until = self.clock.monotonic() + seconds

    def block(self, chat_id: int, blocked: bool = True) -> None:
        """Let the person block the bot."""
        self.bar(chat_id, "bot was blocked by the user" if blocked else "")

    def bar(self, chat_id: int, why: str) -> None:
        """Let the bot do nothing in a chat any more, for a reason in Telegram's words; empty: let it again."""
        self.open_chat(chat_id).barred = why

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
        return {query.id: query.answer for query in self._queries.by_id.values() if query.answer is not None}

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

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        call = Call(method=method, params=await read_params(request), at=self.clock.monotonic())
        self.calls.append(call)
        self._wake()
        await self._gates.pass_one(method)
        planned = self._script.take(method, call.params.get("chat_id"))
        if planned is not None:
            planned.entered.set()
            await self._delay(planned)
        body, status = await self._outcome(request.match_info["token"], call, planned)
        await self._answer_gates.pass_one(method)
        call.status = status
        if planned is not None and planned.drops:
            call.status = 0
            assert request.transport is not None
            request.transport.abort()
        self._wake()
        date = format_datetime(self.clock.now() + self.clock_skew, usegmt=True)
        return web.json_response(body, status=call.status or 500, headers={"Date": date})

    async def _serve_file(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.calls.append(Call(method="download", params={"path": path}, at=self.clock.monotonic()))
        planned = self._script.take("download")
        if request.match_info["token"] != self.token:
            raise web.HTTPNotFound
        return await self.files.download(request, path, planned)

    async def _delay(self, planned: Planned) -> None:
        if planned.fault is Fault.SLOW:
            await self.clock.sleep(planned.duration)
        if planned.fault is Fault.HALF_OPEN:
            await asyncio.Event().wait()  # until the bot hangs up, or this server stops

    async def _outcome(self, token: str, call: Call, planned: Planned | None) -> tuple[dict[str, Any], int]:
        if planned is not None and planned.answer is not None:
            return planned.answer
        if self.revoked or token != self.token:
            return {"ok": False, "error_code": 401, "description": "Unauthorized"}, 401
        try:
            result = await self._perform(call)
        except Refusal as refusal:
            return refusal.as_json(), refusal.status
        if planned is not None and planned.fault is Fault.DUPLICATED:
            result = [*result, *result]
        if planned is not None and planned.fault is Fault.REORDERED:
            result = result[::-1]
        return {"ok": True, "result": result}, 200

    async def _perform(self, call: Call) -> Any:
        return await self._methods.carry_out(call, self.min_interval)

    def _date(self) -> int:
        return int(self.clock.now().timestamp())

    def _wake(self) -> None:
        """Let everybody who waits in `wait_for`, and the webhook, look again."""
        self.webhook.wake()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


def _kind_of(chat_id: int) -> str:
    if chat_id > 0:
        return "private"
    return "supergroup" if chat_id < _FIRST_SUPERGROUP else "group"
