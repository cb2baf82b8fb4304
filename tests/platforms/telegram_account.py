"""What a fake Telegram keeps of one bot beside its chats: presses, menus, the webhook."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from core.contracts.clock import Clock
from tests.platforms.telegram_chats import CALLBACK_ANSWER_LIMIT_CHARS, Chats
from tests.platforms.telegram_faults import Fault, FaultScript
from tests.platforms.telegram_refusals import bad_request
from tests.platforms.telegram_updates import UpdateQueue

COMMANDS_LIMIT = 100
COMMAND_HELP_LIMIT_CHARS = 256
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
WEBHOOK_PORTS = {None, 443, 80, 88, 8443}

_COMMAND_NAME = re.compile(r"[a-z0-9_]{1,32}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


@dataclass
class Query:
    """A button press that waits for its answer."""

    id: str
    pressed_at: float
    answer: str | None = None


class Queries:
    """Presses, each of which takes one answer, in time."""

    def __init__(self, clock: Clock, ttl: float) -> None:
        self.by_id: dict[str, Query] = {}
        self._clock = clock
        self._ttl = ttl
        self._ids = itertools.count(7_000_001)

    def begin(self) -> Query:
        query = Query(id=str(next(self._ids)), pressed_at=self._clock.monotonic())
        self.by_id[query.id] = query
        return query

    def answer(self, params: dict[str, Any]) -> bool:
        """Carry out answerCallbackQuery."""
        query = self.by_id.get(str(params.get("callback_query_id")))
        expired = query is None or query.answer is not None
        if query is None or expired or self._clock.monotonic() - query.pressed_at > self._ttl:
            raise bad_request(_TOO_OLD)
        text = str(params.get("text", ""))
        if len(text) > CALLBACK_ANSWER_LIMIT_CHARS:
            raise bad_request("MESSAGE_TOO_LONG")
        query.answer = text
        return True


class Menus:
    """The commands that clients offer, by scope."""

    def __init__(self, chats: Chats) -> None:
        self._chats = chats
        self._commands: dict[str, list[dict[str, str]]] = {}

    def shown(self, scope: str, chat_id: int | None = None) -> dict[str, str]:
        """Return names and descriptions of the commands in a scope, in their order."""
        chat = {} if chat_id is None else {"chat_id": chat_id}
        commands = self.get({"scope": {"type": scope} | chat})
        return {command["command"]: command["description"] for command in commands}

    def get(self, params: dict[str, Any]) -> list[dict[str, str]]:
        """Carry out getMyCommands."""
        return self._commands.get(self._key(params), [])

    def set(self, params: dict[str, Any]) -> bool:
        """Carry out setMyCommands."""
        commands = params.get("commands") or []
        if len(commands) > COMMANDS_LIMIT:
            raise bad_request("BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            if not _COMMAND_NAME.fullmatch(command["command"]):
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= COMMAND_HELP_LIMIT_CHARS:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        self._commands[self._key(params)] = commands
        return True

    def delete(self, params: dict[str, Any]) -> bool:
        """Carry out deleteMyCommands."""
        self._commands.pop(self._key(params), None)
        return True

    def _key(self, params: dict[str, Any]) -> str:
        scope = params.get("scope") or {"type": "default"}
        if scope["type"] == "chat" and int(scope["chat_id"]) not in self._chats.by_id:
            raise bad_request("chat not found")
        return json.dumps(scope, sort_keys=True)


class WebhookPosts:
    """Posts the updates of a queue to the bot's webhook, one after the other, until each is taken.

    `proxies` says what stands behind the public addresses: {"https://bot.example": "http://127.0.0.1:1234"}.
    """

    def __init__(self, updates: UpdateQueue, clock: Clock, script: FaultScript, on_change: Callable[[], None]) -> None:
        self.proxies: dict[str, str] = {}
        self.retry_interval = timedelta(seconds=1)
        self.statuses: list[int] = []
        self._updates = updates
        self._clock = clock
        self._script = script
        self._on_change = on_change
        self._secret = ""
        self._settings: dict[str, Any] = {}
        self._failure: dict[str, Any] = {}
        self._changed = asyncio.Event()

    def set(self, params: dict[str, Any]) -> bool:
        """Carry out setWebhook."""
        url = str(params.get("url", ""))
        secret = str(params.get("secret_token", ""))
        if url and urlsplit(url).scheme != "https":
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if url and urlsplit(url).port not in WEBHOOK_PORTS:
            raise bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        if secret and not _SECRET.fullmatch(secret):
            raise bad_request("secret token contains unallowed characters")
        self._updates.webhook_url, self._secret, self._failure = url, secret, {}
        self._updates.wanted = tuple(params.get("allowed_updates") or self._updates.wanted)
        self._settings = {"allowed_updates": list(self._updates.wanted)}
        if params.get("drop_pending_updates"):
            self._updates.unconfirmed.clear()
        self._updates.end_poll("conflict")
        self.wake()
        return True

    def delete(self, params: dict[str, Any]) -> bool:
        """Carry out deleteWebhook."""
        return self.set({"drop_pending_updates": params.get("drop_pending_updates")})

    def describe(self) -> dict[str, Any]:
        """Carry out getWebhookInfo."""
        return {
            "url": self._updates.webhook_url,
            "has_custom_certificate": False,
            "pending_update_count": len(self._updates.unconfirmed),
            **self._settings,
            **self._failure,
        }

    def wake(self) -> None:
        """Look again whether there is something to post."""
        self._changed.set()

    async def run(self) -> None:
        """Post what there is to post until cancelled."""
        async with aiohttp.ClientSession() as client:
            while True:
                if self._updates.webhook_url and self._updates.unconfirmed:
                    await self._post_next(client)
                else:
                    self._changed.clear()
                    await self._changed.wait()

    async def _post_next(self, client: aiohttp.ClientSession) -> None:
        planned = self._script.take("webhook")
        fault = None if planned is None else planned.fault
        update = self._updates.unconfirmed[-1 if fault is Fault.REORDERED else 0]
        if fault is Fault.DUPLICATED:
            await self.post(client, update)
        if await self.post(client, update, drops_answer=fault is Fault.LOST_RESPONSE):
            self._updates.unconfirmed.remove(update)
            self._on_change()
        else:
            await self._clock.sleep(self.retry_interval)

    async def post(self, client: aiohttp.ClientSession, update: dict[str, Any], *, drops_answer: bool = False) -> bool:
        """Post one update, and return whether it was taken as far as Telegram knows."""
        url = self._updates.webhook_url
        local = next(
            (url.replace(public, behind, 1) for public, behind in self.proxies.items() if url.startswith(public)), ""
        )
        headers = {SECRET_HEADER: self._secret} if self._secret else {}
        try:
            if not local:
                raise aiohttp.ClientConnectionError("Connection refused")
            async with client.post(local, json=update, headers=headers) as response:
                self.statuses.append(response.status)
                if 200 <= response.status < 300 and not drops_answer:
                    return True
                problem = f"Wrong response from the webhook: {response.status} {response.reason}"
        except aiohttp.ClientError as error:
            problem = str(error)
        date = int(self._clock.now().timestamp())
        self._failure = {"last_error_date": date, "last_error_message": problem}
        self._on_change()
        return False
