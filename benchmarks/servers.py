"""The tests' fake platforms with a stopwatch: when an update went out, when a text came in, what the model took."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from aiohttp import web

from tests.platforms.anthropic_server import AnthropicServer
from tests.platforms.model_script import Answer, ModelServer
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_server import Call, TelegramServer

IDLE_ANSWER = Answer(text="ok")


class TimedTelegram(TelegramServer):
    """Notes in seconds of the monotonic clock when messages left and texts arrived.

    `handed_out_at` goes by the id of a person's message, `arrived_at` by chat and text.
    """

    def __init__(self, token: str) -> None:
        super().__init__(token)
        self.handed_out_at: dict[int, float] = {}
        self.arrived_at: dict[tuple[int, str], float] = {}

    async def _perform(self, call: Call) -> Any:
        result = await super()._perform(call)
        match call.method:
            case "getUpdates":
                now = time.monotonic()
                for update in result:
                    if "message" in update:
                        self.handed_out_at.setdefault(update["message"]["message_id"], now)
            case "sendMessage" | "editMessageText":
                self.arrived_at.setdefault((int(call.params["chat_id"]), str(call.params["text"]).strip()), call.at)
        return result


class _Timed(ModelServer):
    """Answers from a queue, and counts how long each request was in its hands."""

    def __init__(self) -> None:
        super().__init__([self._next_answer])
        self.answers: deque[Answer] = deque()
        self.busy_seconds: list[float] = []

    def _next_answer(self, body: dict[str, Any]) -> Answer:
        del body
        return self.answers.popleft() if self.answers else IDLE_ANSWER

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        began = time.monotonic()
        try:
            return await super()._serve(request)
        finally:
            self.busy_seconds.append(time.monotonic() - began)


class TimedOpenAI(_Timed, OpenAIServer):
    """The OpenAI form."""


class TimedAnthropic(_Timed, AnthropicServer):
    """The Anthropic form."""
