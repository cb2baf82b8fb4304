"""What a plain turn asks of the database: commits, hops to its threads, and statements.

Counted in this process on the real wiring and a database file, with a scripted model and a fake chat,
in a conversation that has had a few turns. Without an engine: storing a doorbell is part of a commit
that is counted, removing many of them is one more. Counts do not depend on the machine: where a turn
became slower and these did not grow, the time is elsewhere.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from benchmarks.figures import Figure
from benchmarks.scale import Scale
from benchmarks.targets import COMMITS
from core.models.scripted import ScriptedModel, says
from core.stores.connection import Database
from tests.bot.conversations.hosting import hosting

_TURNS_BEFORE = 5
WRITES, READS = "BEGIN IMMEDIATE", "BEGIN"
"""What a transaction begins with; each is one hop to a thread of the store."""


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    del scale
    counts = await plain_turn()
    writes, reads = counts.pop(WRITES), counts.pop(READS)
    yield Figure(name="a plain turn: commits", value=writes, unit="", target=COMMITS, digits=0)
    note = f"{writes} to write, {reads} to read"
    yield Figure(name="a plain turn: hops to the database", value=writes + reads, unit="", note=note, digits=0)
    yield Figure(name="a plain turn: statements", value=counts.total(), unit="", digits=0)


async def plain_turn() -> Counter[str]:
    """Return the statements of one turn, by their text."""
    with tempfile.TemporaryDirectory(prefix="lodger-bench-") as directory, _statements() as counts:
        database = await asyncio.to_thread(Database.open, Path(directory) / "host.db")
        try:
            model = ScriptedModel(itertools.repeat(says("a short answer")))
            async with hosting(Path(directory), database=database, model=model) as host:
                for _ in range(_TURNS_BEFORE):
                    await host.says("a short question")
                counts.clear()
                await host.says("a short question")
                return counts.copy()
        finally:
            await database.close()


@contextmanager
def _statements() -> Iterator[Counter[str]]:
    """Count what is executed on any engine of this process."""
    counts: Counter[str] = Counter()

    def executed(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        del connection, cursor, more
        counts[statement] += 1

    event.listen(Engine, "before_cursor_execute", executed)
    try:
        yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
