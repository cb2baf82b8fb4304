"""The host's share of a plain Telegram turn: time, processor time and memory, beside the floor bot's.

A real `lodger up` and, after it, the floor bot answer sequential turns of 20 private chats in
rotation. One chat alone would measure the host's pace (Telegram takes one message a second in a
chat), so a second, shorter series uses one chat at a person's pace.

Added time: from the update's leaving the fake server to the arrival of the call that shows the
whole answer, less the time the fake model had the request. Processor time: of the whole process,
from /proc, polling included. Memory: of a host that found its database there.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator
from dataclasses import dataclass

from benchmarks.figures import MS, NO_TARGET, Figure, percentile, spread
from benchmarks.procfs import cpu_seconds, rss_mb
from benchmarks.scale import Scale
from benchmarks.stage import Stage, open_stage, private_chats
from benchmarks.targets import CPU, CPU_RATIO, MEMORY, MEMORY_RATIO, TURN, TURN_RATIO
from tests.acceptance.processes import HostProcess

_CHATS = 20
_WARM_UP_TURNS = 20
_LONE_CHAT = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What a series of turns cost. `lone_ms` are those of one chat at a person's pace."""

    added_ms: list[float]
    cpu_ms: float
    rss_first_mb: float
    rss_last_mb: float
    lone_ms: list[float]

    @property
    def p50_ms(self) -> float:
        return statistics.median(self.added_ms)

    @property
    def p99_ms(self) -> float:
        return percentile(self.added_ms, 0.99)


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    for client, turns in (("direct", scale.of(200, 30)), ("litellm", scale.of(60, 20))):
        async with open_stage(client=client) as stage:
            await stage.first_start()
            async with stage.host() as host:
                ours = await _cost(stage, host, turns=turns, lone_turns=scale.of(10, 0) if client == "direct" else 0)
            for figure in _figures(f"turn, {client}", ours):
                yield figure
        async with open_stage(client=client) as stage:
            async with stage.floor() as bot:
                floor = await _cost(stage, bot, turns=turns, lone_turns=0)
            for figure in _figures(f"floor, {client}", floor):
                yield figure
        for figure in _ratios(client, ours, floor):
            yield figure


async def _cost(stage: Stage, program: HostProcess, *, turns: int, lone_turns: int) -> _Cost:
    chats = private_chats(_CHATS)
    pid = program.process.pid
    await stage.rotation(chats, _WARM_UP_TURNS)
    rss_first_mb, cpu_before = rss_mb(pid), cpu_seconds(pid)
    added = await stage.rotation(chats, turns)
    cpu_after, rss_last_mb = cpu_seconds(pid), rss_mb(pid)
    lone = await stage.rotation([_LONE_CHAT], lone_turns)
    return _Cost(
        added_ms=[seconds * MS for seconds in added],
        cpu_ms=(cpu_after - cpu_before) * MS / turns,
        rss_first_mb=rss_first_mb,
        rss_last_mb=rss_last_mb,
        lone_ms=[seconds * MS for seconds in lone],
    )


def _figures(name: str, cost: _Cost) -> list[Figure]:
    """Return the figures of a series; goals are the host's alone."""
    time, processor, memory = (NO_TARGET,) * 3 if name.startswith("floor") else (TURN, CPU, MEMORY)
    when_warm = f"{cost.rss_first_mb:.1f} MB when warm"
    figures = [
        Figure(name=f"{name}: added p50", value=cost.p50_ms, unit="ms", target=time, note=spread(cost.added_ms, "ms")),
        Figure(name=f"{name}: added p99", value=cost.p99_ms, unit="ms", note=f"{cost.p99_ms / cost.p50_ms:.1f}x p50"),
        Figure(name=f"{name}: processor a turn", value=cost.cpu_ms, unit="ms", target=processor),
        Figure(name=f"{name}: resident memory", value=cost.rss_last_mb, unit="MB", target=memory, note=when_warm),
    ]
    if cost.lone_ms:
        middle, note = statistics.median(cost.lone_ms), spread(cost.lone_ms, "ms")
        figures.append(Figure(name=f"{name}: added p50, one chat", value=middle, unit="ms", note=note))
    return figures


def _ratios(client: str, ours: _Cost, floor: _Cost) -> list[Figure]:
    name = f"turn / floor, {client}"
    return [
        Figure(name=f"{name}: added p50", value=ours.p50_ms / floor.p50_ms, unit="times", target=TURN_RATIO),
        Figure(name=f"{name}: processor", value=ours.cpu_ms / floor.cpu_ms, unit="times", target=CPU_RATIO),
        Figure(name=f"{name}: memory", value=ours.rss_last_mb / floor.rss_last_mb, unit="times", target=MEMORY_RATIO),
    ]
