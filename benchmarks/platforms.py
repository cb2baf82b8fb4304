"""Telegram, Slack and Discord in one host: its memory, what a turn costs on each, and 200 conversations at once.

The time of a turn counts from a person's message to the moment when the platform has the whole
answer, less the time the fake model had the request; it is the same for all three, and not that of
`telegram_turn`, which begins when the update left the server. Direct conversations all, with a
person each, in rotation, so that no chat's pace is in the figure.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.figures import MS, Figure, percentile, spread
from benchmarks.procfs import cpu_seconds, rss_mb
from benchmarks.scale import Scale
from benchmarks.servers import TimedOpenAI
from benchmarks.stage import OPEN_TO_ALL, PACE_SECONDS, WAIT_SECONDS, model_lines, private_chats, running
from benchmarks.targets import CPU, THREE_CHANNELS, TURN
from tests.acceptance.processes import HostProcess, Place, make_place
from tests.platforms.discord_guilds import User
from tests.platforms.discord_server import DiscordServer
from tests.platforms.model_script import Answer
from tests.platforms.slack_server import SlackServer
from tests.platforms.telegram_server import TOKEN, TelegramServer

_CHATS = 20
_AT_ONCE = {"Telegram": 68, "Slack": 66, "Discord": 66}


class _Chat(Protocol):
    """One conversation of one person."""

    def say(self, text: str) -> Callable[[], list[str]]:
        """Write a message; return what says which answers stand there."""
        ...


@dataclass(frozen=True, slots=True)
class _TelegramChat:
    server: TelegramServer
    chat: int

    def say(self, text: str) -> Callable[[], list[str]]:
        self.server.user_says(self.chat, text)
        return lambda: [message.text for message in self.server.visible(self.chat)]


@dataclass(frozen=True, slots=True)
class _SlackChat:
    server: SlackServer
    user: str

    def say(self, text: str) -> Callable[[], list[str]]:
        channel = self.server.workspace.direct(self.user).id
        root = self.server.user_says(channel, self.user, text)
        return lambda: [message.text for message in self.server.visible(channel, root)]


@dataclass(frozen=True, slots=True)
class _DiscordChat:
    server: DiscordServer
    user: int

    def say(self, text: str) -> Callable[[], list[str]]:
        channel = self.server.dm(self.user)
        self.server.user_says(channel, self.user, text)
        return lambda: [message.text for message in self.server.visible(channel)]


@dataclass
class _World:
    """Three platforms, a model, and a directory for the host."""

    telegram: TelegramServer
    slack: SlackServer
    discord: DiscordServer
    model: TimedOpenAI
    place: Place
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def chats(self, platform: str, count: int) -> list[_Chat]:
        """Return direct conversations with so many people."""
        match platform:
            case "Telegram":
                return [_TelegramChat(self.telegram, chat) for chat in private_chats(count)]
            case "Slack":
                people = [self.slack.workspace.add_person(f"U{number:04}BENCH").id for number in range(count)]
                return [_SlackChat(self.slack, user) for user in people]
            case _:
                guild = next(iter(self.discord.directory.guilds.values()))
                for user in range(50_000, 50_000 + count):
                    self.discord.directory.users.setdefault(user, User(user, f"Person {user}"))
                    self.discord.directory.join(guild, user)
                return [_DiscordChat(self.discord, user) for user in range(50_000, 50_000 + count)]

    @asynccontextmanager
    async def host(self) -> AsyncIterator[HostProcess]:
        """Run `lodger up` and wait until it hears all three."""
        async with running(self.place.command("up"), self.place, ready="Lodger is running") as host:
            await self.telegram.wait_for(lambda: self.telegram.updates.is_polled, WAIT_SECONDS)
            await self.slack.wait_for(lambda: self.slack.sockets.is_open, WAIT_SECONDS)
            await self.discord.wait_for(lambda: self.discord.gateway.is_live, WAIT_SECONDS)
            yield host

    async def rotation(self, chats: Sequence[_Chat], turns: int) -> list[float]:
        """Take turns one after the other, each in the next chat, and return the seconds added to each."""
        used_at: dict[int, float] = {}
        added = []
        for index in itertools.islice(itertools.cycle(range(len(chats))), turns):
            await asyncio.sleep(max(0.0, used_at.get(index, 0.0) + PACE_SECONDS - time.monotonic()))
            added.append(await self._turn(chats[index], f"answer {next(self._numbers)}"))
            used_at[index] = time.monotonic()
        return added

    async def together(self, chats: Sequence[_Chat], answer: str) -> float:
        """Let somebody write in every chat at once; return the seconds until the last has its answer."""
        self.model.answers.extend([Answer(text=answer)] * len(chats))
        began = time.monotonic()
        shown = [chat.say(f"question before {answer}") for chat in chats]
        async with asyncio.timeout(WAIT_SECONDS):
            while not all(answer in texts() for texts in shown):
                await asyncio.sleep(0.005)
        return time.monotonic() - began

    async def _turn(self, chat: _Chat, answer: str) -> float:
        self.model.answers.append(Answer(text=answer))
        known = len(self.model.busy_seconds)
        began = time.monotonic()
        shown = chat.say(f"question before {answer}")
        async with asyncio.timeout(WAIT_SECONDS):
            while answer not in shown():
                await asyncio.sleep(0)
        return time.monotonic() - began - sum(self.model.busy_seconds[known:])


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    async with _open_world() as world:
        async with world.host():
            pass  # The first start makes the database.
        async with world.host() as host:
            pid = host.process.pid
            yield _memory("idle", rss_mb(pid))
            for platform in _AT_ONCE:
                for figure in await _turns(world, host, platform, scale.of(100, 20)):
                    yield figure
            for figure in await _crowd(world, host, scale.of(5, 2)):
                yield figure
            yield _memory("after all turns", rss_mb(pid))


async def _turns(world: _World, host: HostProcess, platform: str, turns: int) -> list[Figure]:
    chats = world.chats(platform, _CHATS)
    await world.rotation(chats, _CHATS)
    before = cpu_seconds(host.process.pid)
    added = [seconds * MS for seconds in await world.rotation(chats, turns)]
    cpu_ms = (cpu_seconds(host.process.pid) - before) * MS / turns
    name, middle = f"{platform}, one of three", statistics.median(added)
    p99 = percentile(added, 0.99)
    return [
        Figure(name=f"{name}: added p50", value=middle, unit="ms", target=TURN, note=spread(added, "ms")),
        Figure(name=f"{name}: added p99", value=p99, unit="ms", note=f"{p99 / middle:.1f}x p50"),
        Figure(name=f"{name}: processor a turn", value=cpu_ms, unit="ms", target=CPU),
    ]


async def _crowd(world: _World, host: HostProcess, rounds: int) -> list[Figure]:
    chats = [chat for platform, count in _AT_ONCE.items() for chat in world.chats(platform, count)]
    await world.together(chats, "warm")
    before = cpu_seconds(host.process.pid)
    until_last = []
    for number in range(rounds):
        await asyncio.sleep(PACE_SECONDS)
        until_last.append(await world.together(chats, f"answer of round {number}") * MS)
    cpu_ms = (cpu_seconds(host.process.pid) - before) * MS / (rounds * len(chats))
    name = f"{len(chats)} conversations of three platforms at once"
    note = spread(until_last, "ms", digits=0)
    return [
        Figure(name=f"{name}: until the last", value=statistics.median(until_last), unit="ms", note=note),
        Figure(name=f"{name}: processor a turn", value=cpu_ms, unit="ms", target=CPU),
    ]


def _memory(when: str, megabytes: float) -> Figure:
    return Figure(name=f"three channels: resident memory, {when}", value=megabytes, unit="MB", target=THREE_CHANNELS)


@asynccontextmanager
async def _open_world() -> AsyncIterator[_World]:
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="lodger-bench-"))
        telegram = await stack.enter_async_context(TelegramServer(TOKEN))
        slack = await stack.enter_async_context(SlackServer())
        discord = await stack.enter_async_context(DiscordServer())
        model = await stack.enter_async_context(TimedOpenAI())
        place = make_place(
            Path(directory),
            telegram_base=telegram.api_base,
            token=TOKEN,
            model=model_lines("openai", model.base_url, "direct"),
            more=f"""{OPEN_TO_ALL}
[channels.slack]
bot_token = "{slack.token}"
app_token = "{slack.app_token}"
api_base = "{slack.api_base}"
[channels.discord]
token = "{discord.token}"
api_base = "{discord.api_base}"
gateway_url = "{discord.gateway_url}"
""",
        )
        yield _World(telegram, slack, discord, model, place)
