"""SQLite through SQLAlchemy: how connections are set up and what its errors mean."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, IntegrityError
from sqlalchemy.pool import QueuePool, StaticPool

from core.contracts.errors import InvalidInput, StorageFull, StoreError, StoreUnavailable

BUSY_TIMEOUT_SECONDS: Final = 30
_JOURNAL_SIZE_LIMIT_BYTES: Final = 64 * 1024 * 1024

_WRITER_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA journal_size_limit = {_JOURNAL_SIZE_LIMIT_BYTES}",
)
_READER_PRAGMAS: Final = ("PRAGMA query_only = ON",)
_MEMORY_PRAGMAS: Final = ("PRAGMA foreign_keys = ON",)


def create_private(path: Path) -> None:
    """Create an empty database file that only its owner may read; SQLite gives its other files the same mode.

    An existing file is not touched: closing a second descriptor of it would drop SQLite's locks.

    Raises:
        StoreUnavailable: The file cannot be created.
    """
    if path.exists():
        return
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be created: {error.strerror}") from error


def writer_engine(path: Path) -> Engine:
    """Return the engine of the one writer: it takes the write lock when a transaction begins.

    A transaction that reads first and asks for the lock at its first write can fail half-way
    with "database is locked"; one that begins with the lock waits for it.
    """
    engine = _file_engine(path, _WRITER_PRAGMAS, connections=1)
    event.listen(engine, "begin", _begin_immediate)
    return engine


def reader_engine(path: Path, *, connections: int) -> Engine:
    """Return the engine of readers: each transaction sees one snapshot and cannot write."""
    engine = _file_engine(path, _READER_PRAGMAS, connections=connections)
    event.listen(engine, "begin", _begin_deferred)
    return engine


def memory_engine() -> Engine:
    """Return an engine on one private database in memory, for one thread at a time."""
    engine = create_engine(
        "sqlite://",
        poolclass=StaticPool,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )
    event.listen(engine, "connect", functools.partial(_prepare, _MEMORY_PRAGMAS))
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _file_engine(path: Path, pragmas: tuple[str, ...], *, connections: int) -> Engine:
    # isolation_level None: sqlite3 begins nothing by itself, the "begin" listeners do.
    arguments = {"check_same_thread": False, "isolation_level": None, "timeout": BUSY_TIMEOUT_SECONDS}
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        hide_parameters=True,  # bound values are people's words; errors end up in logs
        connect_args=arguments,
    )
    event.listen(engine, "connect", functools.partial(_prepare, pragmas))
    return engine


def _prepare(pragmas: tuple[str, ...], connection: sqlite3.Connection, _record: Any) -> None:
    # Rows of old may hold bytes that are no UTF-8; they must not block their conversation.
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
    for pragma in pragmas:
        connection.execute(pragma).close()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_deferred(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise the store's errors in place of the database's.

    Raises:
        StorageFull: No space was left, or the database reached its size limit.
        StoreUnavailable: Locked for too long, read-only, damaged, gone, or no database at all.
        InvalidInput: A constraint of the schema refused a row.
    """
    try:
        yield
    except IntegrityError as error:
        raise InvalidInput(str(error.orig)) from error
    except DatabaseError as error:
        translated = _translated(error.orig)
        if translated is None:
            raise
        raise translated from error


_PRIMARY_CODE: Final = 0xFF
_UNAVAILABLE: Final = frozenset({
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
})  # fmt: skip


def _translated(error: BaseException | None) -> StoreError | None:
    """Return what a database error means, or None for a mistake in a statement of ours."""
    code = error.sqlite_errorcode & _PRIMARY_CODE if isinstance(error, sqlite3.Error) else None
    if code == sqlite3.SQLITE_FULL:
        return StorageFull(str(error))
    if code in _UNAVAILABLE:
        return StoreUnavailable(str(error))
    return None
