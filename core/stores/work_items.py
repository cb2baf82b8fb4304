"""Doorbells of an embedded engine in the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from core.contracts.engine import Transaction, WorkItem, WorkItems
from core.contracts.errors import InvalidInput
from core.stores.connection import Database, SqlTransaction
from core.stores.records import work_item_from
from core.stores.tables.work import WORK_ITEMS

_INSERT_NEW = insert(WORK_ITEMS).on_conflict_do_nothing()
_POSTPONE = update(WORK_ITEMS).where(WORK_ITEMS.c.id == bindparam("of_item"))
_REMOVE = delete(WORK_ITEMS).where(WORK_ITEMS.c.id == bindparam("gone"))


class SqlWorkItems:
    """Stores doorbells in the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def insert(self, tx: Transaction, item: WorkItem) -> None:
        if not isinstance(tx, SqlTransaction):
            raise InvalidInput(f"a transaction of another store: {type(tx).__name__}")
        row = {"id": item.id, "queue": item.queue, "key": item.key, "due_at": item.due_at}
        tx.connection.execute(_INSERT_NEW, row)

    async def load(self) -> tuple[WorkItem, ...]:
        def operation(connection: Connection) -> tuple[WorkItem, ...]:
            rows = connection.execute(select(WORK_ITEMS).order_by(WORK_ITEMS.c.due_at, WORK_ITEMS.c.id))
            return tuple(work_item_from(row) for row in rows)

        return await self._database.read(operation)

    async def remove(self, ids: tuple[str, ...]) -> None:
        def operation(tx: SqlTransaction) -> None:
            # One row a statement: an IN list would end at SQLite's limit of bound values.
            tx.connection.execute(_REMOVE, [{"gone": item_id} for item_id in ids])

        if ids:
            await self._database.write(operation)

    async def postpone(self, items: Mapping[str, datetime]) -> None:
        def operation(tx: SqlTransaction) -> None:
            rows = [{"of_item": item_id, "due_at": until} for item_id, until in items.items()]
            tx.connection.execute(_POSTPONE, rows)

        if items:
            await self._database.write(operation)


if TYPE_CHECKING:
    _conforms: type[WorkItems] = SqlWorkItems
