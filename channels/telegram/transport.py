"""Calls to the Bot API; the one place that holds the SDK, and the one that holds the token."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from telegram import Bot
from telegram.error import NetworkError, TelegramError
from telegram.request import HTTPXRequest, RequestData

from channels.telegram.errors import flood_limit, translate
from channels.telegram.limits import CALLBACK_ANSWER_LIMIT_CHARS, UPDATE_BATCH_LIMIT
from channels.telegram.outbound import MessageCall

_ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")

_STAND_IN = "TOKEN"
"""What the SDK takes for the token; it may print it wherever it likes."""

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 15.0
_WRITE_SECONDS = 10.0
_POOL_SECONDS = 5.0
_CONNECTIONS = 64
_KEEPALIVE_SECONDS = 15.0


class BotApi:
    """One bot's Bot API. Calls may be made concurrently; each is made once and never repeated here.

    The token is put into a request behind the last place where SDK and HTTP client log, name
    or represent anything, so no log line, error or repr of theirs can hold it.
    """

    def __init__(self, token: str, api_base: str, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._base_url = f"{api_base.rstrip('/')}/bot"
        self._request = _BotRequest(_TokenTransport(token.strip()))
        self._bot = Bot(_STAND_IN, base_url=self._base_url, request=self._request, get_updates_request=self._request)

    async def me(self) -> tuple[int, str]:
        """Return the bot's id and username.

        Raises:
            ChannelError: See `channels.telegram.errors.translate`, here and below.
        """
        async with self._translated():
            user = await self._bot.get_me()
            return user.id, user.username or ""

    async def updates(self, offset: int | None, *, wait: timedelta) -> list[Any]:
        """Wait at most `wait` for updates, confirm those below `offset`, and return the rest as JSON.

        `Bot.get_updates` is not used: one update that it cannot parse costs the whole batch.
        """
        wait_seconds = int(wait.total_seconds())
        parameters = {
            "timeout": wait_seconds,
            "limit": UPDATE_BATCH_LIMIT,
            "allowed_updates": json.dumps(_ALLOWED_UPDATES),
            **({} if offset is None else {"offset": offset}),
        }
        async with self._translated():
            url = f"{self._base_url}{_STAND_IN}/getUpdates?{urlencode(parameters)}"
            result: Any = await self._request.post(url, read_timeout=wait_seconds + _READ_SECONDS)
            if not isinstance(result, list):
                raise NetworkError("the updates are no list")
            return result

    async def show(self, call: MessageCall) -> str:
        """Send or edit, and return the message's id."""
        async with self._translated():
            options = dict(call.options)
            if call.message_id is None:
                sent = await self._bot.send_message(chat_id=call.chat_id, text=call.text, api_kwargs=options)
                return str(sent.message_id)
            await self._bot.edit_message_text(
                chat_id=call.chat_id, message_id=call.message_id, text=call.text, api_kwargs=options
            )
            return str(call.message_id)

    async def typing(self, chat_id: int, thread_id: int | None) -> None:
        """Show "typing" in a chat for about five seconds."""
        async with self._translated():
            await self._bot.send_chat_action(chat_id=chat_id, action="typing", message_thread_id=thread_id)

    async def answer(self, query_id: str, text: str) -> None:
        """Answer a button press, with a notice that is cut to what fits."""
        async with self._translated():
            await self._bot.answer_callback_query(query_id, text=text[:CALLBACK_ANSWER_LIMIT_CHARS] or None)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._request.shutdown()

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except TelegramError as error:
            raise translate(error, self._mask) from error


class _BotRequest(HTTPXRequest):
    """The SDK's requests over our transport, with answers looked at before the SDK does."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        super().__init__(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            write_timeout=_WRITE_SECONDS,
            pool_timeout=_POOL_SECONDS,
            httpx_kwargs={"transport": transport},
        )

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        write_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        connect_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        pool_timeout: Any = HTTPXRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        status, payload = await super().do_request(
            url, method, request_data, read_timeout, write_timeout, connect_timeout, pool_timeout
        )
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise flood_limit(payload)
        if status < HTTPStatus.MULTIPLE_CHOICES and b'"result"' not in payload:
            raise NetworkError("the answer holds no result")  # a captive portal, a proxy's page
        return status, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> Any:
        """Parse like the SDK, but do not log what people wrote when it fails."""
        try:
            return json.loads(payload.decode("utf-8", "replace"))
        except ValueError as error:
            raise TelegramError("Invalid server response") from error


class _TokenTransport(httpx.AsyncBaseTransport):
    """Puts the token in the place of its stand-in, on the way out."""

    def __init__(self, token: str) -> None:
        self._stand_in = f"/bot{_STAND_IN}/".encode()
        self._real = f"/bot{quote(token, safe=':')}/".encode()
        limits = httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_KEEPALIVE_SECONDS)
        self._inner = httpx.AsyncHTTPTransport(limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.replace(self._stand_in, self._real, 1)
        return await self._inner.handle_async_request(
            httpx.Request(
                request.method,
                request.url.copy_with(raw_path=path),
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
        )

    async def aclose(self) -> None:
        await self._inner.aclose()
