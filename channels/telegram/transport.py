"""Calls to the Bot API, each made once and never repeated here; the one place that calls the SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from telegram import Bot, BotCommand, BotCommandScope, InputFile, ReactionTypeEmoji
from telegram.constants import ReactionEmoji
from telegram.error import TelegramError

from channels.telegram.connection import STAND_IN, BotRequest, TokenTransport, plain_client
from channels.telegram.errors import translate
from channels.telegram.files import FileCall, FileKind
from channels.telegram.limits import CALLBACK_ANSWER_LIMIT_CHARS, UPDATE_BATCH_LIMIT, Timing
from channels.telegram.outbound import MessageCall
from core.contracts.errors import SendUnknown

_ALLOWED_UPDATES = (
    "message",
    "edited_message",
    "callback_query",
    "my_chat_member",
    "chat_member",
    "message_reaction",
)

_EMOJI_STYLE = "\N{VARIATION SELECTOR-16}"
_REACTIONS = {emoji.value.replace(_EMOJI_STYLE, ""): emoji.value for emoji in ReactionEmoji}
"""Telegram's spelling of each reaction, by the one without style marks: it takes "❤" and not "❤️"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotIdentity:
    """The bot, as it sees itself; `reads_groups` is privacy mode switched off."""

    id: int
    username: str
    joins_groups: bool
    reads_groups: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookState:
    """What Telegram knows of a bot's webhook; `url` is empty while none is set."""

    url: str
    waiting: int
    """Updates that nobody has fetched or taken yet."""
    failed_at: datetime | None
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file on Telegram's side; `path` is what `BotApi.open_file` takes."""

    path: str
    size_bytes: int | None


class BotApi:
    """One bot's Bot API. Calls may be made concurrently.

    The token is put into a request behind the last place where SDK and HTTP client log, name
    or represent anything, so no log line, error or repr of theirs can hold it.
    """

    def __init__(self, token: str, api_base: str, mask: Callable[[str], str], timing: Timing | None = None) -> None:
        self._mask = mask
        self._timing = timing or Timing()
        read_seconds = self._timing.answer_timeout.total_seconds()
        base = api_base.rstrip("/")
        self._base_url = f"{base}/bot"
        self._file_url = f"{base}/file/bot{STAND_IN}/"
        transport = TokenTransport(token.strip(), base)
        self._request = BotRequest(transport, read_seconds=read_seconds)
        self._plain = plain_client(transport, read_seconds=read_seconds)
        self._bot = Bot(STAND_IN, base_url=self._base_url, request=self._request, get_updates_request=self._request)

    async def me(self) -> tuple[int, str]:
        """Return the bot's id and username.

        Raises:
            ChannelError: See `channels.telegram.errors.translate`, here and below.
        """
        identity = await self.identity()
        return identity.id, identity.username

    async def identity(self) -> BotIdentity:
        """Return who the bot is and what it may do in groups."""
        async with self._translated():
            user = await self._bot.get_me()
            return BotIdentity(
                id=user.id,
                username=user.username or "",
                joins_groups=user.can_join_groups is not False,
                reads_groups=user.can_read_all_group_messages is True,
            )

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
        result = await self._raw("getUpdates", parameters, patience=wait + self._timing.answer_timeout)
        if not isinstance(result, list):
            raise SendUnknown("the updates are no list")
        return result

    async def set_webhook(self, url: str, secret: str) -> None:
        """Let Telegram post updates to `url`, with `secret` in its header; what waits stays waiting."""
        async with self._translated():
            await self._bot.set_webhook(url, secret_token=secret, allowed_updates=_ALLOWED_UPDATES)

    async def webhook_url(self) -> str:
        """Return where Telegram posts updates now; empty while no webhook is set."""
        return (await self.webhook_state()).url

    async def webhook_state(self) -> WebhookState:
        """Return what Telegram tells of the webhook and of the updates that wait."""
        async with self._translated():
            info = await self._bot.get_webhook_info()
            return WebhookState(
                url=info.url,
                waiting=info.pending_update_count,
                failed_at=info.last_error_date,
                failure=self._mask(info.last_error_message or ""),
            )

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

    async def send_file(self, call: FileCall) -> str:
        """Send a file, read from its start while it goes out, and return the message's id."""
        file = InputFile(call.content, filename=call.name, read_file_handle=False)
        more: Any = {
            "caption": call.caption or None,
            "api_kwargs": dict(call.options),
            "read_timeout": self._timing.upload_timeout.total_seconds(),
        }
        async with self._translated():
            match call.kind:
                case FileKind.PHOTO:
                    sent = await self._bot.send_photo(call.chat_id, file, **more)
                case FileKind.VOICE:
                    sent = await self._bot.send_voice(call.chat_id, file, **more)
                case FileKind.DOCUMENT:
                    sent = await self._bot.send_document(call.chat_id, file, **more)
            return str(sent.message_id)

    async def react(self, chat_id: int, message_id: int, emoji: str) -> None:
        """Make `emoji` the bot's one reaction to a message; empty takes it back."""
        spelled = _REACTIONS.get(emoji.replace(_EMOJI_STYLE, ""), emoji)
        async with self._translated():
            reaction = [ReactionTypeEmoji(emoji=spelled)] if emoji else []
            await self._bot.set_message_reaction(chat_id, message_id, reaction)

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message."""
        async with self._translated():
            await self._bot.delete_message(chat_id, message_id)

    async def administrators(self, chat_id: int) -> list[Any]:
        """Return the owner and the administrators of a group as JSON, other bots left out.

        `Bot.get_chat_administrators` is not used: one member that it cannot parse costs all of them.
        """
        result = await self._raw("getChatAdministrators", {"chat_id": chat_id})
        if not isinstance(result, list):
            raise SendUnknown("the administrators are no list")
        return result

    async def leave(self, chat_id: int) -> None:
        """Leave a group."""
        async with self._translated():
            await self._bot.leave_chat(chat_id)

    async def act(self, chat_id: int, thread_id: int | None, action: str) -> None:
        """Show what the bot does ("typing", "upload_document") in a chat for about five seconds."""
        async with self._translated():
            await self._bot.send_chat_action(chat_id=chat_id, action=action, message_thread_id=thread_id)

    async def answer(self, query_id: str, text: str) -> None:
        """Answer a button press, with a notice that is cut to what fits."""
        async with self._translated():
            await self._bot.answer_callback_query(query_id, text=text[:CALLBACK_ANSWER_LIMIT_CHARS] or None)

    async def commands(self, scope: BotCommandScope) -> tuple[tuple[str, str], ...]:
        """Return the menu that is offered in a scope, as (name, help)."""
        async with self._translated():
            offered = await self._bot.get_my_commands(scope)
            return tuple((command.command, command.description) for command in offered)

    async def set_commands(self, scope: BotCommandScope, commands: Sequence[tuple[str, str]]) -> None:
        """Offer a menu in a scope."""
        async with self._translated():
            await self._bot.set_my_commands([BotCommand(name, text) for name, text in commands], scope)

    async def find_file(self, file_id: str) -> RemoteFile:
        """Ask where a file can be fetched; the answer is good for an hour.

        `Bot.get_file` is not used: it takes a path that happens to exist on this machine for that file.
        """
        file = await self._raw("getFile", {"file_id": file_id})
        size = file.get("file_size")
        return RemoteFile(path=str(file.get("file_path", "")), size_bytes=size if isinstance(size, int) else None)

    @asynccontextmanager
    async def open_file(self, path: str) -> AsyncIterator[httpx.Response]:
        """Open the answer that holds a file's bytes as they are; its status is not looked at.

        Raises:
            httpx.HTTPError: The connection failed, here or while the bytes are read.
        """
        headers = {"Accept-Encoding": "identity"}
        async with self._plain.stream("GET", self._file_url + quote(path), headers=headers) as response:
            yield response

    async def server_time(self) -> datetime | None:
        """Return the time on Telegram's clock, in whole seconds; None when it does not tell."""
        try:
            response = await self._plain.get(f"{self._base_url}{STAND_IN}/getMe")
            return parsedate_to_datetime(response.headers["date"])
        except (httpx.HTTPError, KeyError, ValueError):
            return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._plain.aclose()
        await self._request.shutdown()

    async def _raw(self, method: str, parameters: Mapping[str, object], *, patience: timedelta | None = None) -> Any:
        """Make a call whose result the SDK shall not make objects of."""
        read_timeout = (patience or self._timing.answer_timeout).total_seconds()
        async with self._translated():
            url = f"{self._base_url}{STAND_IN}/{method}?{urlencode(parameters)}"
            result: Any = await self._request.post(url, read_timeout=read_timeout)
            return result

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except TelegramError as error:
            raise translate(error, self._mask) from error
