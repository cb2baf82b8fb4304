"""`lodger chat`: a conversation in this terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

from bot.cli.session import default_agent, with_host
from bot.control.client import HostClient, HostGone, HostRefused
from channels.terminal.render import TerminalChat, clean
from core.contracts.ids import new_id
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE

_RETRY_SECONDS = 1.0
_QUIET_SECONDS = 1.0
"""An idle agent that shows nothing for so long has answered."""
_GONE = "  (The host stopped. What you sent is kept. This chat goes on when it runs again: lodger up)"
_BACK = "  (The host is back.)"


def run(options: argparse.Namespace) -> int:
    """Talk until end of input; what is printed while a line is typed does not disturb it."""
    if "/" in options.name:
        print("lodger: the name of a chat has no '/'", file=sys.stderr)
        return EXIT_USAGE

    async def work(client: HostClient) -> int:
        answering = default_agent(options)
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
        self._path = f"/chats/{quote(name, safe='')}"
        self._screen = TerminalChat(agent)
        self._drawn: dict[str, Any] = {}
        self._tried = ""
        self._key = ""
        self._is_busy = False
        self._stirred = asyncio.Event()
        self.followed = asyncio.Event()
        self.is_away = False

    async def catch_up(self) -> None:
        """Draw what the history has and this screen has not."""
        for entry in await self._client.get(self._path):
            if entry["name"]:
                self._draw_said(entry)
            else:
                self._draw({"type": "shown", "external_id": entry["external_id"], "content": entry["content"]})

    async def follow(self) -> None:
        """Draw the feed. A host that goes away is told, waited for, and what was missed is drawn."""
        while True:
            try:
                if await self._follow_once():
                    continue
            except (HostGone, HostRefused):
                pass
            self.followed.set()
            if not self.is_away:
                print(_GONE, flush=True)
                self.is_away = True
            self._is_busy = False
            self._stirred.set()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _follow_once(self) -> bool:
        """Draw one feed to its end; True when it ended because this screen was too slow for it."""
        async with aclosing(self._client.stream(f"{self._path}/feed")) as events:
            async for event in events:
                match event["type"]:
                    case "ready":
                        if self.is_away:
                            print(_BACK, flush=True)
                            self.is_away = False
                        # After the feed is open, so that nothing falls between the two.
                        await self.catch_up()
                        self.followed.set()
                    case "behind":
                        return True
                    case _:
                        self._note(event)
                        self._draw(event)
        return False

    def _note(self, event: dict[str, Any]) -> None:
        """Remember what the agent is doing; what a person said is no sign of it."""
        if event["type"] == "status":
            self._is_busy = bool(event["status"])
        if event["type"] != "said":
            self._stirred.set()

    async def answered(self) -> None:
        """Return when what was handed in last has been answered, or waits for a decision."""
        await self._stirred.wait()
        while True:
            self._stirred.clear()
            try:
                async with asyncio.timeout(_QUIET_SECONDS):
                    await self._stirred.wait()
            except TimeoutError:
                if not self._is_busy:
                    return

    async def hand_in(self, text: str) -> str:
        """Send a message or press a button; return what kept it from that, or nothing.

        A text keeps its key until it is stored, so that however often it is tried it counts once.
        """
        pressed = self._screen.press(text)
        if pressed is None and self._screen.is_press(text):
            return "there is no such button"
        if text != self._tried:
            self._tried, self._key = text, new_id("say")
        self._stirred.clear()
        try:
            if pressed is not None:
                token, card = pressed
                await self._client.post(f"{self._path}/press", {"token": token, "card": card})
            else:
                # What was typed stands on the screen already.
                self._drawn[self._key] = text
                await self._client.post(f"{self._path}/say", {"text": text, "key": self._key})
        except HostGone:
            return "not sent, the host is not running"
        except HostRefused as error:
            return f"not sent: {error}"
        self._tried = ""
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
    """Hand in line after line; one that was not sent stands in the prompt again.

    Ctrl-C empties a line; on an empty one it ends the chat, as Ctrl-D does.
    """
    session: PromptSession[str] = PromptSession("> ")
    unsent = ""
    with patch_stdout(raw=True):
        while True:
            try:
                text = await session.prompt_async(default=unsent)
            except EOFError:
                return 0
            except KeyboardInterrupt:
                if not session.default_buffer.text:
                    return 0
                unsent = ""
                continue
            problem = await chat.hand_in(text) if text.strip() else ""
            unsent = text if problem else ""
            if problem:
                print(f"  ({problem})")


async def _talk_through_pipe(chat: _Chat) -> int:
    """Hand in line after line, each when the one before it was answered.

    The first that was not sent, or whose answer a host took with it, ends it.
    """
    while text := await asyncio.to_thread(sys.stdin.readline):
        if not text.strip():
            continue
        problem = await chat.hand_in(text.rstrip("\n"))
        if not problem:
            await chat.answered()
            problem = "the host stopped before the answer came" if chat.is_away else ""
        if problem:
            print(f"lodger: {problem}", file=sys.stderr)
            return EXIT_ERROR
    return 0
