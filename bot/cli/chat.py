"""`lodger chat`: a conversation in this terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

from bot.cli.session import with_host
from bot.control.client import HostClient, HostGone, HostRefused
from channels.terminal.render import TerminalChat, clean
from core.contracts.ids import new_id
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE

_RETRY_SECONDS = 1.0
_GONE = "  (The host stopped. What you sent is kept. This chat goes on when it runs again: lodger up)"
_BACK = "  (The host is back.)"


def run(options: argparse.Namespace) -> int:
    """Talk until end of input; what is printed while a line is typed does not disturb it."""

    async def work(client: HostClient) -> int:
        answering = (await client.get("/agents"))[0]["name"]
        if options.agent not in {"", answering}:
            told = (
                f"in the terminal {answering!r} answers; ask another with: lodger run --agent {options.agent} -p TEXT"
            )
            print(f"lodger: {told}", file=sys.stderr)
            return EXIT_USAGE
        chat = _Chat(client, options.name, answering)
        await chat.catch_up()
        print(f"Talking to {answering}. /help lists commands, #N presses a button, Ctrl-D ends.")
        async with asyncio.TaskGroup() as group:
            follower = group.create_task(chat.follow())
            try:
                await chat.followed.wait()
                return await (_talk(chat) if sys.stdin.isatty() else _talk_through_pipe(chat))
            finally:
                follower.cancel()

    return with_host(options, work)


class _Chat:
    """One viewer of one chat: draws its feed, and hands in what is typed."""

    def __init__(self, client: HostClient, name: str, agent: str) -> None:
        self._client = client
        self._path = f"/chats/{name}"
        self._screen = TerminalChat(agent)
        self._drawn: dict[str, Any] = {}
        self._key = new_id("say")
        self.followed = asyncio.Event()

    async def catch_up(self) -> None:
        """Draw what the history has and this screen has not."""
        for entry in await self._client.get(self._path):
            if entry["name"]:
                self._draw_said(entry)
            else:
                self._draw({"type": "shown", "external_id": entry["external_id"], "content": entry["content"]})

    async def follow(self) -> None:
        """Draw the feed. A host that goes away is told, waited for, and what was missed is drawn."""
        away = False
        while True:
            try:
                async with aclosing(self._client.stream(f"{self._path}/feed")) as events:
                    async for event in events:
                        if event["type"] != "ready":
                            self._draw(event)
                            continue
                        if away:
                            print(_BACK)
                            away = False
                        # After the feed is open, so that nothing falls between the two.
                        await self.catch_up()
                        self.followed.set()
            except (HostGone, HostRefused):
                self.followed.set()
            if not away:
                print(_GONE)
                away = True
            await asyncio.sleep(_RETRY_SECONDS)

    async def hand_in(self, text: str) -> str:
        """Send a message or press a button; return what kept it from that, or nothing.

        A text that failed keeps its key until it is stored, so that however often it is tried it
        counts once.
        """
        pressed = self._screen.press(text)
        if pressed is None and self._screen.is_press(text):
            return "there is no such button"
        try:
            if pressed is not None:
                token, card = pressed
                await self._client.post(f"{self._path}/press", {"token": token, "card": card})
            else:
                # The answer to it is no surprise: what was typed stands on the screen already.
                self._drawn[self._key] = text
                await self._client.post(f"{self._path}/say", {"text": text, "key": self._key})
                self._key = new_id("say")
        except HostGone:
            return "not sent, the host is not running"
        except HostRefused as error:
            return f"not sent: {error}"
        return ""

    def _draw(self, event: dict[str, Any]) -> None:
        if event["type"] == "shown":
            if self._drawn.get(event["external_id"]) == event["content"]:
                return
            self._drawn[event["external_id"]] = event["content"]
        sys.stdout.write(self._screen.draw(event))
        sys.stdout.flush()

    def _draw_said(self, entry: dict[str, Any]) -> None:
        if entry["external_id"] not in self._drawn:
            self._drawn[entry["external_id"]] = entry["content"]
            print(f"{clean(entry['name'])}: {clean(entry['content']['markdown'])}")


async def _talk(chat: _Chat) -> int:
    """Hand in line after line; one that failed stands in the prompt again."""
    unsent = ""
    async with aclosing(_Prompt().lines()) as lines:
        async for text in lines:
            problem = await chat.hand_in(text) if text.strip() else ""
            unsent = text if problem.startswith("not sent") else ""
            if problem:
                print(f"  ({problem})")
    return 0
