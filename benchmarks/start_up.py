"""How long `lodger up` takes to say that it is running, and `lodger --help` to end; memory when idle.

Each start is a new process on the same directory; the first one also creates the database and has
a figure of its own. The first `--help` may have to compile and is left out.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from benchmarks.figures import MS, Figure, spread
from benchmarks.procfs import cpu_seconds, rss_mb
from benchmarks.scale import Scale
from benchmarks.stage import Stage, environment, open_stage
from benchmarks.targets import HELP, MEMORY, READY
from tests.acceptance.processes import Place, make_place

_IDLE_SECONDS = 1.0


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    rounds = scale.of(5, 2)
    async with open_stage() as stage:
        help_ms = await _repeat(lambda: _help(stage.place), rounds)
        yield Figure(
            name="lodger --help", value=statistics.median(help_ms), unit="ms", target=HELP, note=spread(help_ms, "ms")
        )
        began = time.monotonic()
        async with stage.program() as host:
            first_ms, first_mb = (time.monotonic() - began) * MS, rss_mb(host.process.pid)
        yield Figure(name="lodger up, first start: until running", value=first_ms, unit="ms", note="once")
        yield Figure(name="lodger up, first start: resident memory", value=first_mb, unit="MB", note="once")
        for figure in await _starts("Telegram", stage, rounds):
            yield figure
        make_place(stage.place.root)  # the same directory without a channel, with the demo model
        for figure in await _starts("no channel", stage, min(rounds, 3)):
            yield figure


async def _repeat(once: Callable[[], Awaitable[float]], rounds: int) -> list[float]:
    """Return the milliseconds of each round but the first."""
    return [await once() * MS for _ in range(rounds + 1)][1:]


async def _help(place: Place) -> float:
    script = Path(sys.executable).with_name("lodger")
    command = [str(script), "--help"] if script.exists() else place.command("--help")
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command, env=environment(place), cwd=place.root, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    return time.monotonic() - began


async def _starts(what: str, stage: Stage, rounds: int) -> list[Figure]:
    idle_mb: list[float] = []
    idle_share: list[float] = []

    async def start() -> float:
        began = time.monotonic()
        async with stage.program() as host:
            ready_seconds = time.monotonic() - began
            before = cpu_seconds(host.process.pid)
            await asyncio.sleep(_IDLE_SECONDS)
            idle_share.append((cpu_seconds(host.process.pid) - before) / _IDLE_SECONDS * 100)
            idle_mb.append(rss_mb(host.process.pid))
        return ready_seconds

    ready_ms = await _repeat(start, rounds)
    return [
        Figure(
            name=f"lodger up, {what}: until running",
            value=statistics.median(ready_ms),
            unit="ms",
            target=READY,
            note=spread(ready_ms, "ms"),
        ),
        Figure(
            name=f"lodger up, {what}: resident memory, idle",
            value=statistics.median(idle_mb),
            unit="MB",
            target=MEMORY,
        ),
        Figure(
            name=f"lodger up, {what}: processor, first second",
            value=statistics.median(idle_share),
            unit="%",
            note="of one core",
        ),
    ]
