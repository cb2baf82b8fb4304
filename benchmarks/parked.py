"""What 1,000 conversations cost that wait for an approval: memory and idle processor time.

Every conversation is a private chat of its own on a real host; each asks once, the model wants to
run a command, and the card is shown. Memory is read when the host is warm, with everything parked, and
after a restart on the same database, beside a restart with nothing parked. The goal speaks of
10,000; figures for each conversation are given so that they scale. More than 1,000 would take the
other benchmarks' time.

What a start does with them is read a second time in this process, on the same database: the
doorbells that the engine rings until all is quiet, by queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.doorbells import calls_at_start
from benchmarks.figures import MS, Figure
from benchmarks.procfs import cpu_seconds, rss_mb
from benchmarks.scale import Scale
from benchmarks.stage import WAIT_SECONDS, Stage, open_stage, private_chats
from benchmarks.targets import PARKED_CPU, PARKED_MEMORY
from tests.acceptance.processes import HostProcess
from tests.platforms.model_script import Answer, Call

_WARM_UP_CHATS = 50
_IDLE_SECONDS = 4.0
_QUIET_PERCENT = 5.0
_QUIET_AFTER_SECONDS = 60.0
_BATCH = 50
"""How many chats ask before the next ones do: a person's patience, not a flood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """A host at rest, and the processor time it used before it came to rest."""

    rss_mb: float
    cpu_percent: float
    busy_seconds: float


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    count = scale.of(1_000, 100)
    chats = private_chats(_WARM_UP_CHATS + count)
    async with open_stage() as stage:
        await stage.first_start()
        async with stage.host() as host:
            await stage.rotation(chats[:_WARM_UP_CHATS], _WARM_UP_CHATS)
            await _park(stage, chats[:_WARM_UP_CHATS])
            before = await _idle(host)
            began = time.monotonic()
            await _park(stage, chats[_WARM_UP_CHATS:])
            seconds = time.monotonic() - began
            live = await _idle(host)
        async with stage.host() as host:
            restarted = await _idle(host)
        calls = await calls_at_start(stage.place)
    async with open_stage() as stage:
        await stage.first_start()
        async with stage.host() as host:
            empty = await _idle(host)
    for figure in _figures(count, seconds, before, live, restarted, empty):
        yield figure
    told = ", ".join(f"{queue} {number:,}" for queue, number in sorted(calls.items()))
    yield Figure(name=f"{count:,} parked: handler calls at a start", value=calls.total(), unit="calls", note=told)


async def _park(stage: Stage, chats: list[int]) -> None:
    """Let every chat ask for something that needs a person's decision, and wait for the cards."""
    for start in range(0, len(chats), _BATCH):
        batch = chats[start : start + _BATCH]
        shown = {chat: len(stage.telegram.visible(chat)) for chat in batch}
        stage.model.answers.extend([_asking(chat) for chat in batch])
        for chat in batch:
            stage.telegram.user_says(chat, "please build it")
        await stage.telegram.wait_for(partial(_all_asked, stage, shown), WAIT_SECONDS)


def _all_asked(stage: Stage, shown: Mapping[int, int]) -> bool:
    """Return whether every chat has more messages than the number given for it."""
    return all(len(stage.telegram.visible(chat)) > before for chat, before in shown.items())


def _asking(chat: int) -> Answer:
    return Answer(calls=[Call(f"call_{chat}", "shell", '{"command": "make build"}')])


async def _idle(host: HostProcess) -> _Idle:
    """Wait until the host is quiet, then look at it for a while."""
    pid = host.process.pid
    began, busy_before = time.monotonic(), cpu_seconds(pid)
    while await _cpu_percent(pid, 1.0) > _QUIET_PERCENT and time.monotonic() - began < _QUIET_AFTER_SECONDS:
        pass
    busy_seconds = cpu_seconds(pid) - busy_before
    cpu_percent = await _cpu_percent(pid, _IDLE_SECONDS)
    return _Idle(rss_mb=rss_mb(pid), cpu_percent=cpu_percent, busy_seconds=busy_seconds)


async def _cpu_percent(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    await asyncio.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds * 100


def _figures(count: int, seconds: float, before: _Idle, live: _Idle, restarted: _Idle, empty: _Idle) -> list[Figure]:
    name = f"{count:,} parked"
    grown, kept = live.rss_mb - before.rss_mb, restarted.rss_mb - empty.rss_mb
    return [
        Figure(
            name=f"{name}: memory more than before",
            value=grown,
            unit="MB",
            target=PARKED_MEMORY,
            note=f"{before.rss_mb:.1f} to {live.rss_mb:.1f} MB, {grown * 1_000 / count:.1f} kB each",
        ),
        Figure(
            name=f"{name}: memory more, after a restart",
            value=kept,
            unit="MB",
            target=PARKED_MEMORY,
            note=f"{empty.rss_mb:.1f} MB with none, {restarted.rss_mb:.1f} MB with all",
        ),
        Figure(
            name=f"{name}: idle processor",
            value=live.cpu_percent,
            unit="%",
            target=PARKED_CPU,
            note=f"of one core; none parked {empty.cpu_percent:.2f}, after a restart {restarted.cpu_percent:.2f}",
            digits=2,
        ),
        Figure(
            name=f"{name}: processor to take up again",
            value=restarted.busy_seconds,
            unit="s",
            note=f"after a restart, until quiet; with none {empty.busy_seconds:.2f} s",
            digits=2,
        ),
        Figure(name=f"{name}: time to park one", value=seconds * MS / count, unit="ms", note=f"{_BATCH} chats at once"),
    ]
