"""One moment of the SQLite database, copied by its own backup interface while writers go on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from core.contracts.backup import DatabaseFreezer, FrozenDatabase
from core.contracts.errors import StorageFull, StoreUnavailable
from core.stores.connection import Database, SqlTransaction
from core.stores.sqlite import BUSY_TIMEOUT_SECONDS

T = TypeVar("T")

_PAGES_A_STEP: Final = 1024
_PRIMARY_CODE: Final = 0xFF


class SqliteFreezer:
    """Freezes the database in `file`, which `database` has open.

    The moment is made in the writer's queue: its transaction holds the write lock while a
    connection of our own begins to read. In WAL mode that connection goes on to see exactly what
    was committed by then, so the lock is given back at once and the copying disturbs nobody.
    """

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file

    @asynccontextmanager
    async def frozen(self, beside: Callable[[], T]) -> AsyncIterator[tuple[SqliteMoment, T]]:
        moment = await asyncio.to_thread(SqliteMoment, self._file)
        try:

            def freeze(_: SqlTransaction) -> T:
                moment.begin()
                return beside()

            yield moment, await self._database.write(freeze)
        finally:
            await asyncio.to_thread(moment.close)


class SqliteMoment:
    """A connection that reads what was committed when `begin` was called."""

    def __init__(self, file: Path) -> None:
        with _translated():
            self._source = sqlite3.connect(
                file, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_SECONDS
            )
        self._revision = ""

    @property
    def revision(self) -> str:
        return self._revision

    def begin(self) -> None:
        """Fix the moment: a transaction sees what was committed when it read for the first time."""
        with _translated():
            self._source.execute("BEGIN")
            (self._revision,) = self._source.execute("SELECT version_num FROM alembic_version").fetchone()

    def copy_to(self, file: Path, *, stopped: Callable[[], bool]) -> None:
        def stop_in_time(*_: int) -> None:
            if stopped():
                raise _Stopped

        with _translated(), closing(sqlite3.connect(file, isolation_level=None)) as copy:
            # What a crash leaves is thrown away, so the copy needs neither a journal nor waiting for the disk.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            with suppress(_Stopped):
                self._source.backup(copy, pages=_PAGES_A_STEP, progress=stop_in_time)
            # The log of writes could not be emptied meanwhile.
            self._source.execute("ROLLBACK")

    def close(self) -> None:
        """Let the moment go."""
        self._source.close()


class _Stopped(Exception):
    """Nobody wants the copy any more."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of ours; it carries no code
        raise
    except sqlite3.Error as error:
        if error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_FULL:
            raise StorageFull(str(error)) from error
        raise StoreUnavailable(str(error)) from error


if TYPE_CHECKING:
    _freezer: type[DatabaseFreezer] = SqliteFreezer
    _moment: type[FrozenDatabase] = SqliteMoment
