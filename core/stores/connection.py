"""The database: one writer behind a queue, readers beside it, one thread hop per operation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import Connection, Engine

from core.contracts.engine import Transaction
from core.contracts.errors import StoreUnavailable
from core.stores import schema
from core.stores.sqlite import create_private, memory_engine, reader_engine, translated_errors, writer_engine

T = TypeVar("T")

READERS: Final = 4
IN_MEMORY: Final = ":memory:"


class SqlTransaction:
    """An open transaction; valid inside the function that it was given to, in its thread."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._callbacks: list[Callable[[], None]] = []

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def committed(self) -> None:
        """Run the callbacks, in order. Called by the database, once."""
        for callback in self._callbacks:
            callback()


class Database:
    """One SQLite database.

    Writes are serial, in the order of their calls, each in a transaction that holds the write
    lock from its first statement. Reads run beside them on snapshots. Both may be called from
    any task. Cancelling a caller takes a call back that has not begun; one that has begun runs
    to its end, so no transaction is ever torn.
    """

    def __init__(self, writer: Engine, readers: Engine | None) -> None:
        """Take over the engines. Without `readers`, reads share the writer and its queue."""
        self._writer = writer
        self._readers = readers
        self._write_queue = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._read_queue = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader") if readers else None

    @classmethod
    def open(cls, path: Path | str) -> Database:
        """Open the database, creating or migrating it; blocks, so call it outside the event loop.

        Args:
            path: A file, or `:memory:` for a private database that goes with the process.

        Raises:
            StorageFull, StoreUnavailable: It cannot be opened; among others when a newer
                release wrote it.
        """
        if str(path) == IN_MEMORY:
            return cls._open_in_memory()
        file = Path(path)
        create_private(file)
        writer = writer_engine(file)
        try:
            with translated_errors():
                schema.upgrade(writer)
        except BaseException:
            writer.dispose()
            raise
        return cls(writer, reader_engine(file, connections=READERS))

    @classmethod
    def _open_in_memory(cls) -> Database:
        writer = memory_engine()
        schema.create(writer)
        return cls(writer, None)

    async def write(self, operation: Callable[[SqlTransaction], T]) -> T:
        """Run `operation` in the writer's thread and commit; what it raises rolls back.

        When this returns, the transaction is durable and its `after_commit` callbacks have run.

        Raises:
            StorageFull, StoreUnavailable, InvalidInput: see `translated_errors`.
        """
        return await self._hop(self._write_queue, lambda: self._transact(operation))

    async def read(self, operation: Callable[[Connection], T]) -> T:
        """Run `operation` in a reader's thread on one snapshot that holds every finished write.

        Raises:
            StoreUnavailable: see `translated_errors`; also for an attempt to write.
        """
        return await self._hop(self._read_queue or self._write_queue, lambda: self._query(operation))

    async def close(self) -> None:
        """Finish what was queued and close; later calls raise `StoreUnavailable`. Idempotent."""
        await asyncio.to_thread(self._close)

    async def _hop(self, queue: ThreadPoolExecutor, job: Callable[[], T]) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(queue, job)
        except RuntimeError as error:
            raise StoreUnavailable("the database is closed") from error
        return await future

    def _transact(self, operation: Callable[[SqlTransaction], T]) -> T:
        with translated_errors(), self._writer.begin() as connection:
            transaction = SqlTransaction(connection)
            result = operation(transaction)
        transaction.committed()
        return result

    def _query(self, operation: Callable[[Connection], T]) -> T:
        if self._readers is not None:
            with translated_errors(), self._readers.begin() as connection:
                return operation(connection)
        with translated_errors(), self._writer.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
            try:
                return operation(connection)
            finally:
                connection.exec_driver_sql("PRAGMA query_only = OFF")

    def _close(self) -> None:
        for queue in (self._read_queue, self._write_queue):
            if queue is not None:
                queue.shutdown(wait=True)
        for engine in (self._readers, self._writer):
            if engine is not None:
                engine.dispose()


if TYPE_CHECKING:
    _conforms: type[Transaction] = SqlTransaction
