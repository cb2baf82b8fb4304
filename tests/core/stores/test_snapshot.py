"""A moment of the database is exact, and the writer hardly notices that it was taken."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from core.contracts.errors import StoreUnavailable
from core.contracts.people import AuditEntry
from core.stores import schema
from core.stores.connection import Database
from core.stores.snapshot import SqliteFreezer
from tests.core.stores.samples import START, open_world


@pytest.fixture
async def world(tmp_path):
    async with open_world(tmp_path / "host.db") as opened:
        yield opened


@pytest.fixture
def freezer(world, tmp_path):
    return SqliteFreezer(world.stores.database, tmp_path / "host.db")


async def note(world, text: str) -> None:
    await world.stores.people.record(AuditEntry(at=START, who="a", what=text, detail={}))


def notes(file) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [what for (what,) in connection.execute("SELECT what FROM audit ORDER BY id")]


def never() -> bool:
    return False


async def copied(moment, file, stopped=never):
    await asyncio.to_thread(moment.copy_to, file, stopped=stopped)
    return file


async def test_a_copy_holds_what_was_committed_then_and_nothing_of_later(world, freezer, tmp_path):
    await note(world, "before")
    async with freezer.frozen(lambda: None) as (moment, _):
        await note(world, "meanwhile")
        copy = await copied(moment, tmp_path / "copy.db")
    assert notes(copy) == ["before"]
    assert notes(tmp_path / "host.db") == ["before", "meanwhile"]


async def test_a_copy_is_one_sound_file_of_the_same_schema(world, freezer, tmp_path):
    await note(world, "x" * 100_000)
    async with freezer.frozen(lambda: None) as (moment, _):
        copy = await copied(moment, tmp_path / "copies.db")
        assert moment.revision == schema.HEAD
    assert [path.name for path in tmp_path.glob("copies*")] == ["copies.db"]
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    await Database.open(copy).close()


async def test_nothing_is_committed_while_something_is_looked_at_beside(world, freezer, tmp_path):
    """The proof interleaves: writes are under way before, during and behind each of many moments."""
    stopping = asyncio.Event()

    async def write_on() -> None:
        number = 0
        while not stopping.is_set():
            await note(world, str(number))
            number += 1

    def look() -> list[str]:
        seen = [notes(tmp_path / "host.db") for _ in range(5)]
        assert all(each == seen[0] for each in seen)
        return seen[0]

    writing = [asyncio.create_task(write_on()) for _ in range(4)]
    counts = []
    for number in range(15):
        async with freezer.frozen(look) as (moment, seen):
            assert notes(await copied(moment, tmp_path / f"copy{number}.db")) == seen
            counts.append(len(seen))
    stopping.set()
    await asyncio.gather(*writing)
    assert counts == sorted(counts)
    assert len(set(counts)) > 10


async def test_writers_go_on_while_a_moment_is_held(world, freezer):
    async with freezer.frozen(lambda: None), asyncio.timeout(60):
        for number in range(20):
            await note(world, str(number))


async def test_the_log_of_writes_can_be_emptied_as_soon_as_the_copy_is_made(world, freezer, tmp_path):
    def emptied() -> bool:
        with closing(sqlite3.connect(tmp_path / "host.db")) as connection:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    await note(world, "before")
    async with freezer.frozen(lambda: None) as (moment, _):
        await note(world, "meanwhile")
        await copied(moment, tmp_path / "copy.db")
        assert await asyncio.to_thread(emptied)
        assert notes(tmp_path / "copy.db") == ["before"]


async def test_a_copy_that_nobody_wants_ends_early(world, freezer, tmp_path):
    for _ in range(12):
        await note(world, "x" * 1_000_000)
    asked = []

    def stopped() -> bool:
        asked.append(True)
        return True

    async with freezer.frozen(lambda: None) as (moment, _):
        await copied(moment, tmp_path / "copy.db", stopped)
    async with freezer.frozen(lambda: None) as (moment, _):
        whole = await copied(moment, tmp_path / "whole.db")
    assert asked == [True]
    assert (tmp_path / "copy.db").stat().st_size < whole.stat().st_size


async def test_a_place_that_cannot_be_written_is_a_store_error(freezer, tmp_path):
    async with freezer.frozen(lambda: None) as (moment, _):
        with pytest.raises(StoreUnavailable):
            await copied(moment, tmp_path / "nowhere" / "copy.db")


async def test_what_is_raised_beside_comes_out_and_leaves_the_writer_free(world, freezer):
    def broken() -> None:
        raise StoreUnavailable("the memory cannot be read")

    with pytest.raises(StoreUnavailable, match="the memory"):
        async with freezer.frozen(broken):
            pass
    await note(world, "still written")


async def test_a_closed_database_has_no_moments(tmp_path):
    database = Database.open(tmp_path / "host.db")
    await database.close()
    with pytest.raises(StoreUnavailable):
        async with SqliteFreezer(database, tmp_path / "host.db").frozen(lambda: None):
            pass
