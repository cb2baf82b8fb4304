"""Whether a host stays as it is over 10,000 turns: its resident memory, and what a turn costs it.

A real host on Telegram. Each thousand is the same work: 50 new private chats in rotation, ten of
them at once, 20 turns each, so that the views of a thousand are as long as those of any other. What
grows is the database, and the number of chats that the host has met. The first thousand is the
warm-up; memory is read behind each.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from benchmarks.figures import MS, Figure
from benchmarks.procfs import cpu_seconds, rss_mb
from benchmarks.scale import Scale
from benchmarks.stage import Stage, open_stage, private_chats
from benchmarks.targets import FLAT, LATE_TURN

_CHATS = 50
_AT_ONCE = 10
_TURNS_EACH = 20
_SAMPLE = _CHATS * _TURNS_EACH


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    samples = scale.of(10, 2)
    chats = private_chats(samples * _CHATS)
    memory_mb: list[float] = []
    cpu_ms: list[float] = []
    async with open_stage() as stage:
        await stage.first_start()
        async with stage.host() as host:
            pid = host.process.pid
            for start in range(0, len(chats), _CHATS):
                before = cpu_seconds(pid)
                await _sample(stage, chats[start : start + _CHATS])
                cpu_ms.append((cpu_seconds(pid) - before) * MS / _SAMPLE)
                memory_mb.append(rss_mb(pid))
    for figure in _figures(samples * _SAMPLE, memory_mb, cpu_ms):
        yield figure


async def _sample(stage: Stage, chats: Sequence[int]) -> None:
    for _ in range(_TURNS_EACH):
        for start in range(0, len(chats), _AT_ONCE):
            await stage.together(chats[start : start + _AT_ONCE])


def _figures(turns: int, memory_mb: Sequence[float], cpu_ms: Sequence[float]) -> list[Figure]:
    first, last = memory_mb[0], memory_mb[-1]
    told = ", ".join(f"{value:.1f}" for value in memory_mb)
    costs = ", ".join(f"{value:.1f}" for value in cpu_ms)
    return [
        Figure(
            name=f"{turns:,} turns: memory more than at {_SAMPLE:,}",
            value=(last / first - 1) * 100,
            unit="%",
            target=FLAT,
            note=f"MB behind each {_SAMPLE:,}: {told}",
        ),
        Figure(
            name=f"{turns:,} turns: processor, last against second {_SAMPLE:,}",
            value=cpu_ms[-1] / cpu_ms[1],
            unit="times",
            target=LATE_TURN,
            note=f"ms a turn: {costs}",
            digits=2,
        ),
    ]
