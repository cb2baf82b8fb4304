"""The methods of a fake Bot API: a call's parameters, and what carries it out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from core.contracts.clock import Clock
from tests.platforms.telegram_account import Menus, Queries, WebhookPosts
from tests.platforms.telegram_chats import Chat, Chats, Message, charge, refuse_while_flooded
from tests.platforms.telegram_files import Files, Upload
from tests.platforms.telegram_refusals import Refusal
from tests.platforms.telegram_updates import UpdateQueue

_UPLOADS = ("sendPhoto", "sendVoice", "sendDocument")

Params = dict[str, Any]


@dataclass
class Call:
    """One request as it arrived; `status` is 0 until it is answered, and if it never was."""

    method: str
    params: Params
    at: float
    status: int = 0


class Methods:
    """Carries calls out, under the rules of those who keep what they are about."""

    def __init__(
        self,
        *,
        bot: dict[str, Any],
        clock: Clock,
        chats: Chats,
        files: Files,
        menus: Menus,
        queries: Queries,
        updates: UpdateQueue,
        webhook: WebhookPosts,
    ) -> None:
        self._bot = bot
        self._clock = clock
        self._chats = chats
        self._updates = updates
        self._of_bot: dict[str, Callable[[Params], Any]] = {
            "getMe": lambda _: bot,
            "answerCallbackQuery": queries.answer,
            "getMyCommands": menus.get,
            "setMyCommands": menus.set,
            "deleteMyCommands": menus.delete,
            "getFile": files.describe,
            "setWebhook": webhook.set,
            "deleteWebhook": webhook.delete,
            "getWebhookInfo": lambda _: webhook.describe(),
        }
        self._uncounted: dict[str, Callable[[Chat, Params], Any]] = {
            "getChatAdministrators": lambda chat, _: chats.administrators(chat, bot),
            "leaveChat": lambda chat, _: chats.leave(chat),
            "sendChatAction": lambda chat, _: refuse_while_flooded(chat, clock.monotonic()) or True,
        }
        self._counted: dict[str, Callable[[Chat, Params], Message | bool]] = {
            "sendMessage": chats.send,
            "editMessageText": chats.edit,
            "deleteMessage": chats.delete,
            "setMessageReaction": chats.react,
        }

    async def carry_out(self, call: Call, min_interval: float) -> Any:
        """Return the result of a call.

        Args:
            min_interval: The shortest time, in seconds, between calls in a chat.

        Raises:
            Refusal: It is not carried out.
        """
        if call.method == "getUpdates":
            return await self._updates.get(call.params)
        if (of_bot := self._of_bot.get(call.method)) is not None:
            return of_bot(call.params)
        if (uncounted := self._uncounted.get(call.method)) is not None:
            return uncounted(self._chats.find(call.params), call.params)
        return self._counted_call(call, min_interval)

    def _counted_call(self, call: Call, min_interval: float) -> Any:
        """Carry out what counts against a chat's pace."""
        if call.method not in {*self._counted, *_UPLOADS}:
            raise Refusal(404, "Not Found")
        chat = self._chats.find(call.params)
        charge(chat, self._clock.monotonic(), min_interval)
        if call.method in _UPLOADS:
            result: Message | bool = self._chats.send_file(chat, call.method, call.params)
        else:
            result = self._counted[call.method](chat, call.params)
        return result if isinstance(result, bool) else self._chats.as_json(chat, result, self._bot)


async def read_params(request: web.Request) -> Params:
    """Read a call's parameters: query string, form, multipart or JSON; nested values are JSON texts."""
    raw: Params = dict(request.query)
    if request.content_type == "application/json":
        raw |= await request.json()
    else:
        raw |= await request.post()
    return {name: _decoded(name, value) for name, value in raw.items()}


def _decoded(name: str, value: Any) -> Any:
    if isinstance(value, web.FileField):
        with value.file as file:  # a request that is never answered would leave it open
            return Upload(name=value.filename, media_type=value.content_type, data=file.read())
    if name in {"text", "caption"} or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
