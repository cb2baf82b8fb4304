"""What proofs by kill -9 share: a person on Telegram, a model that answers what it reads, and what must hold after."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bot.conversations.outbox import ANSWER_IN_DOUBT
from tests.acceptance.processes import OWNER, HostProcess, Place, make_place, openai_model, start_host
from tests.platforms.model_script import Answer, Call, Seen
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.slack_server import SlackServer
from tests.platforms.telegram_server import TOKEN, TelegramServer

WAIT = 60.0
"""Far longer than anything takes: hosts that are killed by the hundred are started on a busy machine."""
HEARD = re.compile(r"Heard ([\w-]+)\.")
BEGUN = "Hea"
"""The first piece of every answer."""
RULES = '[[permissions.rules]]\ntool = "shell"\naction = "allow"\n'


class Model:
    """Answers "Heard X." to all that has no answer yet; before that it runs the `commands` of each, in one step."""

    def __init__(
        self, commands: Callable[[str], Sequence[str]], *, hesitate: Callable[[], asyncio.Event] | None = None
    ):
        self.server = OpenAIServer([self._step])
        self._commands = commands
        self._hesitate = hesitate
        self._held: list[int] = []
        self._calls = 0

    def hold_next(self, *, piece: int = 0) -> None:
        """Never let the next request's answer get to this piece: its host is to be killed there."""
        self._held.append(piece)

    def hold_none(self) -> None:
        """Hold no request that comes from here on."""
        self._held.clear()

    def _step(self, body: Mapping[str, Any]) -> Answer:
        gates = {0: self._hesitate(), 1: self._hesitate()} if self._hesitate else {}
        if self._held:
            gates[self._held.pop(0)] = asyncio.Event()
        waiting = unanswered(body["messages"])
        made = {command for command, _ in outcomes(body["messages"])}
        for word, _ in waiting:
            if fresh := [command for command in self._commands(word) if command not in made]:
                return Answer(text=[""], calls=[self._call(command) for command in fresh], gates=gates)
        text = heard(waiting)
        return Answer(text=[BEGUN, text.removeprefix(BEGUN)], gates=gates)

    def _call(self, command: str) -> Call:
        self._calls += 1
        return Call(f"call-{self._calls}", "shell", json.dumps({"command": command}))


Segment = tuple[str, list[dict[str, Any]]]
"""What a person said, and everything that followed it up to the next."""


def segments(messages: Sequence[dict[str, Any]]) -> list[Segment]:
    found: list[Segment] = []
    for message in messages:
        words = [text for text in _texts(message) if not text.startswith("<system-")]
        if message["role"] == "user":
            found.extend((word, []) for word in words)
        elif message["role"] != "system" and found:
            found[-1][1].append(message)
    return found


def unanswered(messages: Sequence[dict[str, Any]]) -> list[Segment]:
    """Return what was said behind the last answer in words."""
    talk = segments(messages)
    answered = [number for number, (_, behind) in enumerate(talk, start=1) if words_in(behind)]
    return talk[max(answered, default=0) :]


def heard(talk: Sequence[Segment]) -> str:
    """Return the answer to all that was said there."""
    return " ".join(f"Heard {word}." for word, _ in talk)


def words_in(behind: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the model said there, steps without words left out."""
    return [text for message in behind if message["role"] == "assistant" for text in _texts(message) if text]


def outcomes(messages: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return every command that was called, with what the model was told of it, in the order of the results."""
    calls = {
        call["id"]: call["function"]["arguments"] for message in messages for call in message.get("tool_calls", ())
    }
    told = [(message["tool_call_id"], "\n".join(_texts(message))) for message in messages if message["role"] == "tool"]
    return [(json.loads(calls[call_id])["command"], text) for call_id, text in told]


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or []
    return [content] if isinstance(content, str) else [block["text"] for block in content if block["type"] == "text"]


class Lives:
    """One place with its platform and its model, over the lives of several hosts."""

    place: Place
    model: Model
    server: TelegramServer | SlackServer

    def shown(self) -> list[str]:
        """Return the texts that stand in the chat."""
        raise NotImplementedError

    @property
    def requests(self) -> list[Seen]:
        return self.model.server.requests

    def heard(self) -> Counter[str]:
        """Return how many visible messages answer each word."""
        return Counter(word for text in self.shown() for word in HEARD.findall(text))

    async def hears(self, *words: str) -> None:
        try:
            await self.server.wait_for(lambda: self.heard().keys() >= set(words), timeout=WAIT)
        except TimeoutError:
            raise AssertionError(f"{words} are not all answered: {self.shown()}") from None

    def ran(self) -> list[str]:
        """Return the lines that commands appended to the file of effects."""
        file = self.place.workspace / "ran.txt"
        return file.read_text().split() if file.exists() else []

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read the host's database from outside."""
        database = self.place.data / "host.db"
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=WAIT)) as connection:
            return connection.execute(query).fetchall()

    async def asked(self, number: int) -> None:
        """Wait until the model has got so many requests."""
        await until(lambda: len(self.requests) >= number)


@dataclass(frozen=True)
class Scene(Lives):
    """A chat on Telegram; `said` is what the owner said."""

    place: Place
    telegram: TelegramServer
    model: Model
    said: list[str] = field(default_factory=list)

    @property
    def server(self) -> TelegramServer:
        return self.telegram

    def says(self, word: str, **more: Any) -> None:
        """Let the owner say one word, which is said once only."""
        self.said.append(word)
        self.telegram.user_says(OWNER, word, **more)

    def shown(self) -> list[str]:
        return [message.text for message in self.telegram.visible(OWNER)]

    def heard(self) -> Counter[str]:
        """Return how many visible messages answer each word; one, where it is said that none may have arrived."""
        counts = super().heard()
        if ANSWER_IN_DOUBT in self.shown():
            missing = {word for text in self.doubted() for word in HEARD.findall(text)} - counts.keys()
            counts.update(missing)
        return counts

    def doubted(self) -> list[str]:
        """Return the answers that the host gave up, as it could not know whether they arrived."""
        given_up = self.rows("SELECT content FROM outbox WHERE state = 'unknown'")
        return [json.loads(content)["markdown"] for (content,) in given_up]


@asynccontextmanager
async def scene(
    root, *, commands: Mapping[str, Sequence[str]] | None = None, more: str = RULES
) -> AsyncIterator[Scene]:
    """Set everything up but the host; `commands` may be changed as long as the model has not been asked."""
    plans: Mapping[str, Sequence[str]] = {} if commands is None else commands
    model = Model(lambda word: plans.get(word, ()))
    async with TelegramServer(TOKEN) as telegram, model.server as server:
        settings = openai_model(server.base_url)
        place = make_place(root, telegram_base=telegram.api_base, token=TOKEN, model=settings, more=more)
        yield Scene(place, telegram, model)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something outside of the fake servers."""
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.002)


async def happens(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), WAIT)


async def let_pass(telegram: TelegramServer, seconds: float) -> None:
    with suppress(TimeoutError):
        await telegram.wait_for(lambda: False, timeout=seconds)


@asynccontextmanager
async def serving_host(place: Place) -> AsyncIterator[HostProcess]:
    """Start a host, wait until it serves, and kill it with the block."""
    async with starting_host(place) as host:
        await host.wait_line("Lodger is running", WAIT)
        yield host


@asynccontextmanager
async def starting_host(place: Place) -> AsyncIterator[HostProcess]:
    """Start a host, do not wait until it serves, and kill it with the block."""
    host = await start_host(place)
    try:
        yield host
    finally:
        await host.kill()


async def require_sound(scene: Scene, *, doubles: int = 0) -> None:
    """Start a host once more: all that was said is answered once, and the conversation goes on.

    Args:
        doubles: How many answers may be seen a second time, and no more than that.
    """
    async with serving_host(scene.place) as host:
        await scene.hears(*scene.said)
        scene.says("afterwards")
        await scene.hears("afterwards")
        assert await host.stop() == 0
        assert "Traceback" not in host.output
    require_transcript(scene)
    counts = scene.heard()
    assert counts.keys() == set(scene.said)
    assert max(counts.values()) <= 1 + bool(doubles)
    assert counts.total() - len(scene.said) <= doubles, scene.shown()


def require_transcript(scene: Scene) -> None:
    """The model got nothing twice or out of order, refused nothing, and answered each word once."""
    bodies = [seen.body for seen in scene.requests]
    assert [seen.refusal for seen in scene.requests if seen.refusal] == []
    talk = segments(bodies[-1]["messages"])
    assert [word for word, _ in talk] == scene.said
    told = [word for _, behind in talk for text in words_in(behind) for word in HEARD.findall(text)]
    last = [word for word, _ in unanswered(bodies[-1]["messages"])]
    assert told + last == scene.said
    for before, after in pairwise(bodies):
        assert after["tools"] == before["tools"]
        assert len(after["messages"]) >= len(before["messages"])
        for old, new in zip(before["messages"], after["messages"], strict=False):
            assert new == old
