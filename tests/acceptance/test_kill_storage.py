"""kill -9 inside a memory commit and inside a migration: what was said to be done is there, the rest is not."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.store import GitMemoryStore
from core.stores import schema
from tests.acceptance.processes import ROOT
from tests.acceptance.storage_child import MEMORY
from tests.core.stores.first_release import make_first_release

WAIT = 60.0
KILLS = 4
INBOX_ROWS = 2_000
"""All of them must be there afterwards."""


@asynccontextmanager
async def child(task: str, path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process that works on `path`; it is killed at the end of the block."""
    command = (sys.executable, "-m", "tests.acceptance.storage_child", task, str(path))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(WAIT):
        assert process.stdout is not None
        assert await process.stdout.readline() == b"begins\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(WAIT):
            await process.wait()


async def kill_within(process: asyncio.subprocess.Process, seconds: float) -> None:
    """Kill a process, unless it ends by itself before."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), timeout=seconds)
    if process.returncode is None:
        process.kill()


async def killed_while_committing(root, chance: random.Random) -> list[str]:
    """Return the revisions that a process said it had committed before it was killed."""
    told: list[str] = []
    async with child("commit", root) as process:
        for _ in range(chance.randint(1, 6)):
            async with asyncio.timeout(WAIT):
                told.append((await process.stdout.readline()).decode().strip())
        await kill_within(process, chance.uniform(0, 0.02))  # somewhere inside the next commit
        async with asyncio.timeout(WAIT):
            told += (await process.stdout.read()).decode().split()
    return told


@pytest.mark.parametrize("seed", range(2))
async def test_a_process_killed_inside_a_memory_commit_loses_no_commit_it_told_of(tmp_path, seed):
    chance = random.Random(seed)
    await GitMemoryStore(tmp_path, SystemClock(), str).create(MEMORY, ())
    told: list[str] = []
    for _ in range(KILLS):
        told += await killed_while_committing(tmp_path, chance)
        store = GitMemoryStore(tmp_path, SystemClock(), str)
        history = [commit.revision for commit in await store.log(MEMORY, limit=10_000)]
        assert [revision for revision in reversed(history) if revision in set(told)] == told
        snapshot = await store.snapshot(MEMORY, Audience())
        assert snapshot.revision == history[0]
        assert any(file.path == "human.md" for file in snapshot.files)
    origin = CommitOrigin(author="lodger", audience=Audience())
    change = MemoryChange(kind=ChangeKind.REPLACE, path="human.md", text="After all.", description="human")
    await store.commit(MEMORY, [change], message="after", origin=origin)


@pytest.mark.parametrize("seed", range(3))
async def test_a_process_killed_inside_a_migration_leaves_one_release_or_the_other(tmp_path, seed):
    chance = random.Random(seed)
    path = tmp_path / "host.db"
    make_first_release(path, inbox_rows=INBOX_ROWS)
    async with child("migrate", path) as process:
        await kill_within(process, chance.uniform(0.0, 0.5))
    revision, rows = read(path)
    assert revision in schema.KNOWN
    assert rows == INBOX_ROWS
    async with child("migrate", path) as process, asyncio.timeout(WAIT):
        assert await process.stdout.readline() == b"migrated\n"
        assert await process.wait() == 0
    assert read(path) == (schema.HEAD, INBOX_ROWS)


def read(path) -> tuple[str, int]:
    """Return the revision of a database and how many events it holds; it is sound."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        (rows,) = connection.execute("SELECT count(*) FROM inbox").fetchone()
        return revision, rows
    finally:
        connection.close()
