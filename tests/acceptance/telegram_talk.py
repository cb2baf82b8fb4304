"""People on a fake Telegram, the real host, and a model that answers by what was said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.processes import OWNER, HostProcess, Place, make_place, openai_model, running_host
from tests.platforms.model_script import Answer, Reply, Step
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_chats import Message
from tests.platforms.telegram_server import TOKEN, TelegramServer

WAIT = 40.0
"""Seconds, for a machine that does much else."""
MENTION = "@lodger_bot"
"""The bot's name: a text that begins with it is for the bot."""


class Mind:
    """A model that knows replies by what people said, and repeats what it has none for."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._replies: dict[str, list[Step]] = {}

    def on(self, words: str, *replies: Step) -> None:
        """Give these replies, one after the other, in the turn whose newest message holds `words`."""
        self._replies[words] = list(replies)

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.bodies.append(body)
        said = user_texts(body)
        for text in reversed(said):
            replies = next((left for words, left in self._replies.items() if left and words in text), None)
            if replies is not None:
                reply = replies.pop(0)
                return reply(body) if callable(reply) else reply
        return Answer(text=f"I heard: {said[-1]}")

    def asked(self, words: str) -> list[dict[str, Any]]:
        """Return the requests whose newest message of a person holds `words`."""
        return [body for body in self.bodies if words in user_texts(body)[-1]]


@dataclass
class Talk:
    """A running host with everybody it talks to."""

    telegram: TelegramServer
    mind: Mind
    place: Place
    host: HostProcess

    async def said(self, part: str, chat: int = OWNER) -> Message:
        """Wait for a message of the bot that holds `part`."""
        await self.telegram.wait_for(lambda: self.shown(part, chat), timeout=WAIT)
        return self.shown(part, chat)[-1]

    def shown(self, part: str, chat: int = OWNER) -> list[Message]:
        """Return the bot's messages in a chat that hold `part`."""
        return [message for message in self.telegram.visible(chat) if part in message.text]

    async def answered(self, query: str) -> str:
        """Wait for the answer to a press."""
        await self.telegram.wait_for(lambda: query in self.telegram.answers, timeout=WAIT)
        return self.telegram.answers[query]

    async def is_heard(self, person: int) -> None:
        """Return when the host has routed what that person, or anybody before, said in the private chat."""
        self.telegram.user_says(person, "/whoami")
        await self.said("You are", person)

    def joins(self, chat: int, *, was: str = "left", now: str = "member", by: int = OWNER) -> None:
        """Let somebody change whether the bot is in a group."""
        group = self.telegram.open_chat(chat)
        member = {"user": self.telegram.bot, "status": now}
        change = {"old_chat_member": {"user": self.telegram.bot, "status": was}, "new_chat_member": member}
        sender = {"id": by, "is_bot": False, "first_name": "Alice"}
        date = int(self.telegram.clock.now().timestamp())
        self.telegram.push_update({"my_chat_member": {"chat": group.as_json(), "from": sender, "date": date} | change})

    async def admitted(self, chat: int, **kind: Any) -> None:
        """Let the bot into a group, by its owner."""
        self.telegram.open_chat(chat, **kind)
        self.joins(chat)
        card = await self.said("I do not work here yet", chat)
        self.telegram.press(chat, card.id, card.buttons["Allow here"], user=OWNER)
        await self.said("lets me work here", chat)

    def mentions(self, chat: int, text: str, user: int = OWNER, **extra: Any) -> int:
        """Say something to the bot in a group, and return the message's id."""
        entity = {"type": "mention", "offset": 0, "length": len(MENTION)}
        return self.telegram.user_says(chat, f"{MENTION} {text}", user=user, entities=[entity], **extra)


@asynccontextmanager
async def talking(root: Path, *, more: str = "", reach: str = "") -> AsyncIterator[Talk]:
    """Run a host for a Telegram bot whose model is a `Mind`.

    Args:
        more: Lines of configuration, the first of them in `[access]`.
        reach: Lines of `[channels.telegram]`.
    """
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(TelegramServer(TOKEN))
        mind = Mind()
        model = await stack.enter_async_context(OpenAIServer([mind]))
        place = make_place(
            root, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(model.base_url), more=more
        )
        if reach:
            text = place.config.read_text().replace("[channels.telegram]", f"[channels.telegram]\n{reach}")
            place.config.write_text(text)
        host = await stack.enter_async_context(running_host(place))
        yield Talk(telegram=telegram, mind=mind, place=place, host=host)


def blocks(message: dict[str, Any]) -> list[str]:
    """Return the texts of one message of a request."""
    content = message["content"] or ""
    return [content] if isinstance(content, str) else [block.get("text", "") for block in content]


def user_texts(body: dict[str, Any]) -> list[str]:
    """Return what people said in a request, reminders left out."""
    said = [text for message in body["messages"] if message["role"] == "user" for text in blocks(message)]
    return [text for text in said if not text.startswith("<system-")]


def new_part(body: dict[str, Any]) -> str:
    """Return what a request holds behind the last answer of the model, reminders and results too."""
    messages = body["messages"]
    last = max((n for n, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return "\n".join(text for message in messages[last + 1 :] for text in blocks(message))
