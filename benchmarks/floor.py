"""The floor: the least a Telegram bot with a memory of its chats can do; the yardstick of the same run.

python-telegram-bot's own polling, one SQLite file with two commits a turn, the answer streamed from
the model through httpx (or litellm) and sent in one piece. It has no tools, no approvals, no
previews, and it loses what it fetched when it is killed. Not part of the product.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
from telegram import Update
from telegram.ext import Application, ApplicationBuilder, ContextTypes, MessageHandler, filters

Stream = Callable[[list[dict[str, str]]], AsyncIterator[str]]

_SCHEMA = "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, chat INTEGER, role TEXT, content TEXT)"
_SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
_KEY = "sk-" + "a" * 20


class FloorBot:
    """Keeps every chat's messages and asks the model with all of them."""

    def __init__(self, database: Path, stream: Stream) -> None:
        self._database = sqlite3.connect(database, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_SCHEMA)
        self._stream = stream

    async def answer(self, update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        """Answer one message."""
        assert update.effective_chat is not None
        assert update.effective_message is not None
        chat = update.effective_chat.id
        self._keep(chat, "user", update.effective_message.text or "")
        text = "".join([piece async for piece in self._stream([_SYSTEM, *self._messages(chat)])])
        await context.bot.send_message(chat_id=chat, text=text)
        self._keep(chat, "assistant", text)

    def _keep(self, chat: int, role: str, content: str) -> None:
        self._database.execute("INSERT INTO messages (chat, role, content) VALUES (?, ?, ?)", (chat, role, content))

    def _messages(self, chat: int) -> list[dict[str, str]]:
        rows = self._database.execute("SELECT role, content FROM messages WHERE chat = ? ORDER BY id", (chat,))
        return [{"role": role, "content": content} for role, content in rows]


def httpx_stream(base_url: str) -> Stream:
    """Return a stream over one pool of connections."""
    http = httpx.AsyncClient(timeout=60)

    async def stream(messages: list[dict[str, str]]) -> AsyncIterator[str]:
        body = {"model": "m1", "messages": messages, "stream": True}
        headers = {"Authorization": f"Bearer {_KEY}"}
        async with http.stream("POST", f"{base_url}/chat/completions", json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[len("data: ") :])["choices"]:
                        yield choice["delta"].get("content") or ""

    return stream


def litellm_stream(base_url: str) -> Stream:
    """Return a stream through litellm."""
    os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
    import litellm  # the variables above are read at import

    litellm.suppress_debug_info = True

    async def stream(messages: list[dict[str, str]]) -> AsyncIterator[str]:
        answer: Any = await litellm.acompletion(
            model="openai/m1", messages=messages, api_base=base_url, api_key=_KEY, stream=True
        )
        async for chunk in answer:
            for choice in chunk.choices:
                yield choice.delta.content or ""

    return stream


def build(options: argparse.Namespace) -> Application[Any, Any, Any, Any, Any, Any]:
    """Return the bot, ready to poll."""
    stream = (litellm_stream if options.client == "litellm" else httpx_stream)(options.model)
    bot = FloorBot(options.database, stream)
    builder = ApplicationBuilder().token(options.token).base_url(f"{options.telegram}/bot")
    application = builder.post_init(_announce).build()
    application.add_handler(MessageHandler(filters.TEXT, bot.answer))
    return application


async def _announce(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    del application
    print("floor is running", flush=True)


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description="The floor bot of the benchmarks.")
    parser.add_argument("--token", required=True)
    parser.add_argument("--telegram", required=True, metavar="URL")
    parser.add_argument("--model", required=True, metavar="URL")
    parser.add_argument("--client", choices=("direct", "litellm"), default="direct")
    parser.add_argument("--database", required=True, type=Path)
    asyncio.set_event_loop(asyncio.new_event_loop())  # run_polling takes the current one
    build(parser.parse_args()).run_polling(timeout=25)


if __name__ == "__main__":
    main()
