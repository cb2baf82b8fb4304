"""Attachments in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.sqlite import insert

from core.contracts.attachments import AttachmentStore, StoredAttachment
from core.contracts.ids import ConversationId
from core.stores.connection import Database, SqlTransaction
from core.stores.records import AnyRow
from core.stores.tables.delivery import ATTACHMENTS

_INSERT_NEW = insert(ATTACHMENTS).on_conflict_do_nothing(index_elements=["inbox_id", "position"])
_OF_MESSAGES = (
    select(ATTACHMENTS)
    .where(ATTACHMENTS.c.inbox_id.in_(bindparam("of_rows", expanding=True)))
    .order_by(ATTACHMENTS.c.inbox_id, ATTACHMENTS.c.position)
)


class SqlAttachments:
    """The attachment store; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_attachments(self, attachments: Sequence[StoredAttachment]) -> None:
        def operation(tx: SqlTransaction) -> None:
            for attachment in attachments:
                tx.connection.execute(_INSERT_NEW, asdict(attachment))

        await self._database.write(operation)

    async def attachments_of(self, inbox_ids: Sequence[int]) -> tuple[StoredAttachment, ...]:
        def operation(connection: Connection) -> tuple[StoredAttachment, ...]:
            return tuple(_attachment(row) for row in connection.execute(_OF_MESSAGES, {"of_rows": list(inbox_ids)}))

        return await self._database.read(operation)


def _attachment(row: AnyRow) -> StoredAttachment:
    return StoredAttachment(
        id=row.id,
        conversation_id=ConversationId(row.conversation_id),
        inbox_id=row.inbox_id,
        position=row.position,
        name=row.name,
        media_type=row.media_type,
        size_bytes=row.size_bytes,
        path=row.path,
        created_at=row.created_at,
        refusal=row.refusal,
    )


if TYPE_CHECKING:
    _conforms: type[AttachmentStore] = SqlAttachments
