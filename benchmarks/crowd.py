"""100 conversations that ask at the same moment: how long until the last of them has its answer.

Every conversation is a private chat that has had a turn before. Nothing is taken off for the model
(it answers at once): beside the floor bot of the same run, what differs is the host. Where the
floor answers one after the other, so would a host whose turns waited for each other.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator

from benchmarks.figures import MS, NO_TARGET, Figure, Target, spread
from benchmarks.procfs import cpu_seconds
from benchmarks.scale import Scale
from benchmarks.stage import Stage, open_stage, private_chats
from benchmarks.targets import CPU, CPU_RATIO, TURN_RATIO
from tests.acceptance.processes import HostProcess

_CHATS = 100


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    count, rounds = scale.of(_CHATS, 20), scale.of(5, 2)
    async with open_stage() as stage, stage.host() as host:
        ours = await _rounds(stage, host, count, rounds)
    async with open_stage() as stage, stage.floor() as bot:
        floor = await _rounds(stage, bot, count, rounds)
    name = f"{count} conversations at once"
    for figure in _figures(name, ours, CPU):
        yield figure
    for figure in _figures(f"floor, {name}", floor, NO_TARGET):
        yield figure
    last = statistics.median(ours[0]) / statistics.median(floor[0])
    yield Figure(name=f"{name} / floor: until the last", value=last, unit="times", target=TURN_RATIO)
    yield Figure(name=f"{name} / floor: processor", value=ours[1] / floor[1], unit="times", target=CPU_RATIO)


async def _rounds(stage: Stage, program: HostProcess, count: int, rounds: int) -> tuple[list[float], float]:
    """Return the milliseconds until the last answer of each round, and the processor milliseconds of a turn."""
    chats = private_chats(count)
    await stage.together(chats)
    before = cpu_seconds(program.process.pid)
    until_last = [await stage.together(chats) * MS for _ in range(rounds)]
    return until_last, (cpu_seconds(program.process.pid) - before) * MS / (rounds * count)


def _figures(name: str, cost: tuple[list[float], float], processor: Target) -> list[Figure]:
    until_last, cpu_ms = cost
    note = spread(until_last, "ms", digits=0)
    return [
        Figure(name=f"{name}: until the last", value=statistics.median(until_last), unit="ms", note=note),
        Figure(name=f"{name}: processor a turn", value=cpu_ms, unit="ms", target=processor),
    ]
