"""The log of two-way sessions in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, func, insert, select

from core.contracts.clock import Clock
from core.contracts.ids import ConversationId
from core.contracts.sessions import SessionLine, SessionLog
from core.stores.connection import Database, SqlTransaction
from core.stores.tables.sessions import SESSION_LINES

_LAST = select(func.coalesce(func.max(SESSION_LINES.c.seq), 0)).where(
    SESSION_LINES.c.conversation_id == bindparam("of_conversation")
)
_AFTER = (
    select(SESSION_LINES.c.seq, SESSION_LINES.c.line)
    .where(SESSION_LINES.c.conversation_id == bindparam("of_conversation"), SESSION_LINES.c.seq > bindparam("after"))
    .order_by(SESSION_LINES.c.seq)
    .limit(bindparam("most"))
)


class SqlSessions:
    """The session log; every method is one transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def append_lines(self, conversation_id: ConversationId, texts: Sequence[str]) -> tuple[SessionLine, ...]:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> tuple[SessionLine, ...]:
            last = tx.connection.execute(_LAST, {"of_conversation": conversation_id}).scalar_one()
            lines = tuple(SessionLine(seq=seq, text=text) for seq, text in enumerate(texts, start=last + 1))
            rows = [
                {"conversation_id": conversation_id, "seq": line.seq, "at": now, "line": line.text} for line in lines
            ]
            if rows:
                tx.connection.execute(insert(SESSION_LINES), rows)
            return lines

        return await self._database.write(operation)

    async def lines_after(
        self, conversation_id: ConversationId, after: int, *, limit: int = 500
    ) -> tuple[SessionLine, ...]:
        wanted = {"of_conversation": conversation_id, "after": after, "most": limit}

        def operation(connection: Connection) -> tuple[SessionLine, ...]:
            return tuple(SessionLine(seq=row.seq, text=row.line) for row in connection.execute(_AFTER, wanted))

        return await self._database.read(operation)


if TYPE_CHECKING:
    _conforms: type[SessionLog] = SqlSessions
