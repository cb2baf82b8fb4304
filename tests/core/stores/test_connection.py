"""One writer, readers beside it, and what a failing disk or another process does to them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from sqlalchemy import Connection, insert, select

from core.contracts.errors import InvalidInput, StorageFull, StoreUnavailable
from core.contracts.people import AuditEntry
from core.stores.connection import Database, SqlTransaction
from core.stores.tables.people import AUDIT, PEOPLE
from tests.core.stores.samples import START, open_world


@pytest.fixture
async def database(tmp_path):
    opened = Database.open(tmp_path / "host.db")
    yield opened
    await opened.close()


def add_person(tx: SqlTransaction, person_id: str) -> str:
    tx.connection.execute(insert(PEOPLE).values(id=person_id, name="x", created_at=START))
    return person_id


def person_ids(connection: Connection) -> list[str]:
    return list(connection.execute(select(PEOPLE.c.id).order_by(PEOPLE.c.id)).scalars())


async def test_a_write_is_durable_and_seen_by_the_next_read(database):
    assert await database.write(lambda tx: add_person(tx, "p1")) == "p1"
    assert await database.read(person_ids) == ["p1"]


async def test_what_an_operation_raises_rolls_it_back(database):
    def operation(tx: SqlTransaction) -> None:
        add_person(tx, "p1")
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(operation)
    assert await database.read(person_ids) == []
    await database.write(lambda tx: add_person(tx, "p2"))


async def test_a_constraint_of_the_schema_is_the_callers_mistake(database):
    await database.write(lambda tx: add_person(tx, "p1"))
    with pytest.raises(InvalidInput):
        await database.write(lambda tx: add_person(tx, "p1"))


async def test_errors_do_not_repeat_what_was_stored(database):
    await database.write(lambda tx: add_person(tx, "told in confidence"))
    with pytest.raises(InvalidInput) as refused:
        await database.write(lambda tx: add_person(tx, "told in confidence"))
    assert "people.id" in str(refused.value.__cause__)
    assert "confidence" not in str(refused.value) + str(refused.value.__cause__)


async def test_callbacks_run_in_order_once_the_transaction_is_durable(database, tmp_path):
    seen = []

    def look(name: str) -> None:
        other = sqlite3.connect(tmp_path / "host.db")
        seen.append((name, other.execute("SELECT count(*) FROM people").fetchone()[0]))
        other.close()

    def operation(tx: SqlTransaction) -> None:
        tx.after_commit(lambda: look("first"))
        tx.after_commit(lambda: look("second"))
        add_person(tx, "p1")

    await database.write(operation)
    assert seen == [("first", 1), ("second", 1)]


async def test_callbacks_of_a_rolled_back_transaction_never_run(database):
    ran = []

    def operation(tx: SqlTransaction) -> None:
        tx.after_commit(lambda: ran.append(1))
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(operation)
    assert ran == []


@pytest.mark.parametrize("path", ["file", ":memory:"])
async def test_a_read_cannot_write(path, tmp_path):
    database = Database.open(tmp_path / "host.db" if path == "file" else path)
    with pytest.raises(StoreUnavailable):
        await database.read(lambda connection: add_person(SqlTransaction(connection), "p1"))
    await database.write(lambda tx: add_person(tx, "p2"))
    assert await database.read(person_ids) == ["p2"]
    await database.close()


async def test_readers_do_not_wait_for_a_writer(database):
    go_on = threading.Event()

    def slow(tx: SqlTransaction) -> None:
        add_person(tx, "p1")
        assert go_on.wait(10)

    writing = asyncio.create_task(database.write(slow))
    async with asyncio.timeout(60):
        assert await database.read(person_ids) == []
    go_on.set()
    await writing
    assert await database.read(person_ids) == ["p1"]


async def test_a_read_is_one_snapshot(database, tmp_path):
    def twice(connection: Connection) -> tuple[list[str], list[str]]:
        before = person_ids(connection)
        other = sqlite3.connect(tmp_path / "host.db")
        with other:
            other.execute("INSERT INTO people VALUES ('p1', 'x', 0)")
        other.close()
        return before, person_ids(connection)

    assert await database.read(twice) == ([], [])
    assert await database.read(person_ids) == ["p1"]


async def test_cancelling_a_caller_does_not_tear_its_transaction(database):
    begun, go_on = threading.Event(), threading.Event()

    def operation(tx: SqlTransaction) -> None:
        add_person(tx, "p1")
        begun.set()
        assert go_on.wait(10)
        add_person(tx, "p2")

    writing = asyncio.create_task(database.write(operation))
    async with asyncio.timeout(60):
        await asyncio.to_thread(begun.wait)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()
    await database.write(lambda tx: None)  # behind it in the queue
    assert await database.read(person_ids) == ["p1", "p2"]


async def test_closing_finishes_what_was_queued(tmp_path):
    database = Database.open(tmp_path / "host.db")
    writes = [asyncio.create_task(database.write(lambda tx, n=n: add_person(tx, f"p{n}"))) for n in range(5)]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*writes) == [f"p{n}" for n in range(5)]
    await database.close()


async def test_a_closed_database_is_unavailable(tmp_path):
    database = Database.open(tmp_path / "host.db")
    await database.close()
    with pytest.raises(StoreUnavailable):
        await database.write(lambda tx: None)
    with pytest.raises(StoreUnavailable):
        await database.read(person_ids)


async def test_the_database_is_set_up_for_durability(database):
    def pragmas(tx: SqlTransaction) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        return [tx.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]

    assert await database.write(pragmas) == ["wal", 2, 1, 30_000]


async def test_only_its_owner_may_read_the_database(database, tmp_path):
    await database.write(lambda tx: add_person(tx, "p1"))
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "host.db": 0o600,
        "host.db-wal": 0o600,
        "host.db-shm": 0o600,
    }


async def test_a_full_disk_keeps_nothing_of_the_operation(tmp_path):
    async with open_world(tmp_path / "host.db") as world:
        await world.stores.people.record(AuditEntry(at=START, who="a", what="fits", detail={}))

        def shrink(tx: SqlTransaction) -> None:
            pages = tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            tx.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

        await world.stores.database.write(shrink)

        def too_much(tx: SqlTransaction) -> None:
            add_person(tx, "before")
            tx.connection.execute(insert(AUDIT).values(at=START, who="a", what="x" * 100_000, detail="{}"))

        with pytest.raises(StorageFull):
            await world.stores.database.write(too_much)
        assert await world.stores.database.read(person_ids) == []
        assert [entry.what for entry in await world.stores.people.audit()] == ["fits"]

        def grow(tx: SqlTransaction) -> None:
            tx.connection.exec_driver_sql("PRAGMA max_page_count = 100000")

        await world.stores.database.write(grow)
        await world.stores.database.write(too_much)
        assert await world.stores.database.read(person_ids) == ["before"]


async def test_a_file_that_is_no_database_is_unavailable(tmp_path):
    (tmp_path / "host.db").write_bytes(b"this is not a database, and long enough to look at" * 100)
    with pytest.raises(StoreUnavailable):
        Database.open(tmp_path / "host.db")


async def test_a_directory_that_does_not_exist_is_unavailable(tmp_path):
    with pytest.raises(StoreUnavailable):
        Database.open(tmp_path / "nowhere" / "host.db")
