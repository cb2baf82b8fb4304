"""Rows that are no longer needed, deleted by age, a bounded number in each transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Delete, Integer, Select, bindparam, delete, func, select

from core.contracts.clock import Clock
from core.contracts.delivery import InboxState
from core.contracts.retention import RetentionStore
from core.contracts.runs import RunStatus
from core.stores.connection import Database
from core.stores.tables.columns import Instant
from core.stores.tables.delivery import INBOX
from core.stores.tables.ledger import TURN_IS_OPEN, TURNS
from core.stores.tables.sessions import SESSION_LINES
from core.stores.tables.transcripts import RUN_EVENTS, RUNS

ROWS_A_TRANSACTION: Final = 500
RUNS_A_PAGE: Final = 200

REDELIVERY: Final = timedelta(days=2)
"""Platforms send an event again for up to 24 hours; twice that is kept, so that it is known again."""

_AT_MOST = bindparam("at_most", ROWS_A_TRANSACTION, type_=Integer)

_ITS_TURN_IS_OPEN = select(TURNS.c.id).where(TURNS.c.id == RUNS.c.turn_id, TURN_IS_OPEN).exists()
_OLD_RUNS = (
    select(RUNS.c.id)
    .where(
        RUNS.c.id > bindparam("after"),
        RUNS.c.status == RunStatus.FINISHED.value,
        RUNS.c.finished_at < bindparam("before", type_=Instant),
        ~_ITS_TURN_IS_OPEN,
    )
    .order_by(RUNS.c.id)
    .limit(bindparam("at_most", RUNS_A_PAGE, type_=Integer))
)
_OTHERS = RUN_EVENTS.alias("others")
_LAST_OF_RUN = select(func.max(_OTHERS.c.seq)).where(_OTHERS.c.run_id == RUN_EVENTS.c.run_id).scalar_subquery()
# A stored message names its row; the last event of a run is its end.
_PASSING_EVENTS = (
    select(RUN_EVENTS.c.run_id.label("of_run"), RUN_EVENTS.c.seq.label("number"))
    .where(
        RUN_EVENTS.c.run_id.in_(bindparam("of_runs", expanding=True)),
        RUN_EVENTS.c.message_id.is_(None),
        RUN_EVENTS.c.seq < _LAST_OF_RUN,
    )
    .limit(_AT_MOST)
)
_DELETE_EVENT = delete(RUN_EVENTS).where(
    RUN_EVENTS.c.run_id == bindparam("of_run"), RUN_EVENTS.c.seq == bindparam("number")
)

_HANDLED = (INBOX.c.state == InboxState.DONE.value) | (INBOX.c.state == InboxState.WITHDRAWN.value)
_OLD_EVENTS = (
    select(INBOX.c.id.label("of_row"))
    .where(
        _HANDLED,
        INBOX.c.received_at < bindparam("before", type_=Instant),
        INBOX.c.channel.not_in(bindparam("shown", expanding=True)),
    )
    .order_by(INBOX.c.id)
    .limit(_AT_MOST)
)
_DELETE_INBOX_ROW = delete(INBOX).where(INBOX.c.id == bindparam("of_row"), _HANDLED)

_LATER = SESSION_LINES.alias("later")
_LAST_OF_SESSION = (
    select(func.max(_LATER.c.seq)).where(_LATER.c.conversation_id == SESSION_LINES.c.conversation_id).scalar_subquery()
)
_OLD_LINES = (
    select(SESSION_LINES.c.conversation_id.label("of_conversation"), SESSION_LINES.c.seq.label("number"))
    .where(SESSION_LINES.c.at < bindparam("before", type_=Instant), SESSION_LINES.c.seq < _LAST_OF_SESSION)
    .limit(_AT_MOST)
)
_DELETE_LINE = delete(SESSION_LINES).where(
    SESSION_LINES.c.conversation_id == bindparam("of_conversation"), SESSION_LINES.c.seq == bindparam("number")
)


class SqlRetention:
    """Deletes in SQL. What is to go is looked for by readers; the writer is held for its deletion alone."""

    def __init__(self, database: Database, clock: Clock, *, shown: Collection[str] = ()) -> None:
        """Take the channels whose chats this host draws from the inbox, in `shown`: their rows are kept."""
        self._database = database
        self._clock = clock
        self._shown = tuple(shown)

    async def prune_events(self, before: datetime) -> int:
        removed, after = 0, ""
        while runs := await self._rows(_OLD_RUNS, {"after": after, "before": before}):
            ids = [run["id"] for run in runs]
            removed += await self._delete(_PASSING_EVENTS, _DELETE_EVENT, {"of_runs": ids})
            after = ids[-1]
        return removed

    async def prune_inbox(self, before: datetime) -> int:
        cutoff = min(before, self._clock.now() - REDELIVERY)
        return await self._delete(_OLD_EVENTS, _DELETE_INBOX_ROW, {"before": cutoff, "shown": self._shown})

    async def prune_sessions(self, before: datetime) -> int:
        return await self._delete(_OLD_LINES, _DELETE_LINE, {"before": before})

    async def _delete(self, find: Select[Any], remove: Delete, wanted: dict[str, object]) -> int:
        """Delete what `find` finds, until it finds nothing more that can go."""
        removed = 0
        while rows := await self._rows(find, wanted):
            share = await self._remove(remove, rows)
            removed += share
            if share == 0:
                break
        return removed

    async def _remove(self, remove: Delete, rows: Sequence[dict[str, Any]]) -> int:
        return await self._database.write(lambda tx: tx.connection.execute(remove, rows).rowcount)

    async def _rows(self, find: Select[Any], wanted: dict[str, object]) -> Sequence[dict[str, Any]]:
        def operation(connection: Connection) -> Sequence[dict[str, Any]]:
            return [dict(row) for row in connection.execute(find, wanted).mappings()]

        return await self._database.read(operation)


if TYPE_CHECKING:
    _conforms: type[RetentionStore] = SqlRetention
