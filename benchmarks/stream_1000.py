"""The time added to an answer that the model streams in 1,000 chunks, beside the floor bot's.

Each turn is in a chat of its own. Added time: from the update's leaving to the arrival of the call
that shows the whole text, less the time the fake model was writing. It writes each chunk as one
event, as fast as the connection takes them; what overlaps with the host's reading is its own time.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator

from benchmarks.figures import MS, NO_TARGET, Figure, spread
from benchmarks.procfs import cpu_seconds
from benchmarks.scale import Scale
from benchmarks.stage import Stage, open_stage, private_chats
from benchmarks.targets import STREAM, STREAM_RATIO
from tests.acceptance.processes import HostProcess
from tests.platforms.model_script import Answer

CHUNKS = 1_000
_WARM_UP_TURNS = 4


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    turns = scale.of(20, 4)
    async with open_stage() as stage, stage.host() as host:
        ours = await _series(stage, host, turns)
    for figure in _figures("stream 1,000 chunks, direct", *ours):
        yield figure
    async with open_stage() as stage, stage.floor() as bot:
        floor = await _series(stage, bot, turns)
    for figure in _figures("floor, stream 1,000 chunks, direct", *floor):
        yield figure
    ratio = statistics.median(ours[0]) / statistics.median(floor[0])
    yield Figure(name="stream 1,000 / floor, direct: added p50", value=ratio, unit="times", target=STREAM_RATIO)


async def _series(stage: Stage, program: HostProcess, turns: int) -> tuple[list[float], float]:
    """Return the milliseconds added to each turn, and the processor milliseconds of a turn."""
    chats = private_chats(_WARM_UP_TURNS + turns)
    added = []
    before = 0.0
    for number, chat in enumerate(chats):
        if number == _WARM_UP_TURNS:
            before = cpu_seconds(program.process.pid)
        pieces = [f"{number:03} ", *["abc "] * (CHUNKS - 1)]
        added.append(await stage.turn(chat, answers=[Answer(text=pieces)]) * MS)
    return added[_WARM_UP_TURNS:], (cpu_seconds(program.process.pid) - before) * MS / turns


def _figures(name: str, added_ms: list[float], cpu_ms: float) -> list[Figure]:
    return [
        Figure(
            name=f"{name}: added p50",
            value=statistics.median(added_ms),
            unit="ms",
            target=NO_TARGET if name.startswith("floor") else STREAM,
            note=spread(added_ms, "ms"),
        ),
        Figure(name=f"{name}: processor a turn", value=cpu_ms, unit="ms"),
    ]
