"""One benchmark's world: fake servers in this process, the measured program in another."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.servers import TimedAnthropic, TimedOpenAI, TimedTelegram
from tests.acceptance.processes import OWNER, ROOT, HostProcess, Place, make_place
from tests.platforms.model_script import Answer
from tests.platforms.telegram_server import TOKEN

WAIT_SECONDS = 60.0
PACE_SECONDS = 1.2
"""A chat is used no oftener: the host itself keeps to one message in 1.1 s, and that is no cost of a turn."""
OPEN_TO_ALL = 'direct_messages = "open"'
_STOP_SECONDS = 30.0
_KEY = "sk-" + "a" * 20


@dataclass
class Stage:
    """Fake Telegram, fake model, and a directory that outlives the measured program."""

    telegram: TimedTelegram
    model: TimedOpenAI | TimedAnthropic
    place: Place
    form: str
    client: str
    _last_used_at: dict[int, float] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def turn(self, chat: int, words: str = "", answers: Sequence[Answer] = ()) -> float:
        """Let a person write, wait for the last answer's text, and return the seconds that were added.

        That is the time from the update's leaving to the arrival of the call that shows the whole
        text, less what the model server took. Without `answers` the model says one short line.
        """
        number = next(self._numbers)
        answers = answers or [Answer(text=f"answer {number}")]
        expected = "".join(answers[-1].pieces).strip()
        await self._wait_for_pace(chat)
        self.model.answers.extend(answers)
        known = len(self.model.busy_seconds)
        message = self.telegram.user_says(chat, words or f"question {number}")
        await self.telegram.wait_for(lambda: (chat, expected) in self.telegram.arrived_at, WAIT_SECONDS)
        self._last_used_at[chat] = time.monotonic()
        took = self.telegram.arrived_at[chat, expected] - self.telegram.handed_out_at[message]
        return took - sum(self.model.busy_seconds[known:])

    async def command(self, chat: int, words: str) -> str:
        """Give a chat command and return the host's reply."""
        await self._wait_for_pace(chat)
        shown = len(self.telegram.visible(chat))
        self.telegram.user_says(chat, words)
        await self.telegram.wait_for(lambda: len(self.telegram.visible(chat)) > shown, WAIT_SECONDS)
        self._last_used_at[chat] = time.monotonic()
        return self.telegram.visible(chat)[-1].text

    async def rotation(self, chats: Sequence[int], turns: int) -> list[float]:
        """Take turns one after the other, each in the next chat, and return the seconds added to each."""
        return [await self.turn(chat) for chat in itertools.islice(itertools.cycle(chats), turns)]

    async def together(self, chats: Sequence[int]) -> float:
        """Let somebody write in every chat at once and wait for all answers; return the seconds until the last.

        They count from the first update's leaving, and the model's time is in them.
        """
        number = next(self._numbers)
        answer = f"answer {number}"
        for chat in chats:
            await self._wait_for_pace(chat)
        self.model.answers.extend([Answer(text=answer)] * len(chats))
        messages = [self.telegram.user_says(chat, f"question {number}") for chat in chats]
        arrived = self.telegram.arrived_at
        await self.telegram.wait_for(lambda: all((chat, answer) in arrived for chat in chats), WAIT_SECONDS)
        self._last_used_at.update(dict.fromkeys(chats, time.monotonic()))
        last = max(arrived[chat, answer] for chat in chats)
        return last - min(self.telegram.handed_out_at[message] for message in messages)

    async def _wait_for_pace(self, chat: int) -> None:
        due_at = self._last_used_at.get(chat, 0.0) + PACE_SECONDS
        await asyncio.sleep(max(0.0, due_at - time.monotonic()))

    @asynccontextmanager
    async def program(self) -> AsyncIterator[HostProcess]:
        """Run `lodger up` on this stage's directory."""
        async with running(self.place.command("up"), self.place, ready="Lodger is running") as host:
            yield host

    @asynccontextmanager
    async def host(self) -> AsyncIterator[HostProcess]:
        """Run `lodger up` and wait until it polls Telegram."""
        async with self.program() as host:
            await self.telegram.wait_for(lambda: self.telegram.updates.is_polled, WAIT_SECONDS)
            yield host

    async def first_start(self) -> None:
        """Start and stop the host once: the first start creates the database and loads what that takes."""
        async with self.host():
            pass

    @asynccontextmanager
    async def floor(self) -> AsyncIterator[HostProcess]:
        """Run the floor bot in the host's place, with a database of its own."""
        command = [
            sys.executable, "-m", "benchmarks.floor", "--token", TOKEN, "--telegram", self.telegram.api_base,
            "--model", self.model.base_url, "--client", self.client, "--database", str(self.place.root / "floor.db"),
        ]  # fmt: skip
        async with running(command, self.place, ready="floor is running") as bot:
            await self.telegram.wait_for(lambda: self.telegram.updates.is_polled, WAIT_SECONDS)
            yield bot


@asynccontextmanager
async def open_stage(
    *, form: str = "openai", client: str = "direct", files: Mapping[str, str] | None = None
) -> AsyncIterator[Stage]:
    """Start both servers and write a configuration; everything is gone with the block.

    Args:
        form: `openai` or `anthropic`.
        client: `direct` or `litellm`.
        files: Texts of the workspace by name.
    """
    with tempfile.TemporaryDirectory(prefix="lodger-bench-") as directory:
        server = TimedOpenAI() if form == "openai" else TimedAnthropic()
        async with TimedTelegram(TOKEN) as telegram, server as model:
            place = make_place(
                Path(directory),
                telegram_base=telegram.api_base,
                token=TOKEN,
                model=model_lines(form, model.base_url, client),
                more=OPEN_TO_ALL,
            )
            for name, text in (files or {}).items():
                (place.workspace / name).write_text(text, encoding="utf-8")
            yield Stage(telegram=telegram, model=model, place=place, form=form, client=client)


def model_lines(form: str, base_url: str, client: str) -> str:
    """Return the `[models.main]` lines of the configuration."""
    return f'model = "{form}/m1"\napi_key = "{_KEY}"\napi_base = "{base_url}"\nclient = "{client}"'


@asynccontextmanager
async def running(command: Sequence[str], place: Place, *, ready: str) -> AsyncIterator[HostProcess]:
    """Start a program, wait until it prints `ready`, and end it with the block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment(place),
        cwd=place.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    program = HostProcess(process)
    try:
        await program.wait_line(ready, WAIT_SECONDS)
        yield program
    finally:
        await program.stop(seconds=_STOP_SECONDS)


def environment(place: Place) -> dict[str, str]:
    """Return a clean environment as users have it: the tests' one without warnings as errors."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(place.root), "PYTHONPATH": str(ROOT)}


def private_chats(count: int) -> list[int]:
    """Return ids of private chats, each with a person of its own; the first one's is the owner."""
    return [OWNER + number * 1_000 for number in range(count)]
