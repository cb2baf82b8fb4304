"""Attachments in SQL, and the images among them as models are given them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Select, bindparam, select, update
from sqlalchemy.dialects.sqlite import insert

from core.contracts.attachments import AttachmentStore, ImageShelf, LeftOut, MissingImage, StoredAttachment
from core.contracts.ids import ConversationId
from core.stores.connection import Database, SqlTransaction
from core.stores.records import AnyRow
from core.stores.tables.delivery import ATTACHMENTS

_INSERT_NEW = insert(ATTACHMENTS).on_conflict_do_nothing(index_elements=["inbox_id", "position"])
_OF_MESSAGES = (
    select(ATTACHMENTS)
    .where(ATTACHMENTS.c.inbox_id.in_(bindparam("wanted", expanding=True)))
    .order_by(ATTACHMENTS.c.inbox_id, ATTACHMENTS.c.position)
)
_BY_ID = select(ATTACHMENTS).where(ATTACHMENTS.c.id.in_(bindparam("wanted", expanding=True))).order_by(ATTACHMENTS.c.id)
_SET_TRANSCRIPT = update(ATTACHMENTS).where(
    ATTACHMENTS.c.id == bindparam("of_file"), ATTACHMENTS.c.transcript == "", ATTACHMENTS.c.unheard == ""
)
_LEAVE_OUT = update(ATTACHMENTS).where(
    ATTACHMENTS.c.id.in_(bindparam("wanted", expanding=True)), ATTACHMENTS.c.left_out.is_(None)
)
_MOST_AT_ONCE = 500
"""SQLite takes tens of thousands of parameters; a long conversation may hold more images than that."""


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
        return await self._read(_OF_MESSAGES, inbox_ids)

    async def attachments(self, attachment_ids: Sequence[str]) -> tuple[StoredAttachment, ...]:
        return await self._read(_BY_ID, sorted(attachment_ids))

    async def set_transcript(self, attachment_id: str, *, transcript: str = "", unheard: str = "") -> None:
        statement = _SET_TRANSCRIPT.values(transcript=transcript, unheard=unheard)
        await self._database.write(lambda tx: tx.connection.execute(statement, {"of_file": attachment_id}))

    async def leave_out(self, attachment_ids: Sequence[str], why: LeftOut) -> None:
        statement = _LEAVE_OUT.values(left_out=why.value)

        def operation(tx: SqlTransaction) -> None:
            for batch in _batches(attachment_ids):
                tx.connection.execute(statement, {"wanted": batch})

        await self._database.write(operation)

    async def _read(self, query: Select[tuple[object, ...]], wanted: Sequence[object]) -> tuple[StoredAttachment, ...]:
        def operation(connection: Connection) -> tuple[StoredAttachment, ...]:
            found = (row for batch in _batches(wanted) for row in connection.execute(query, {"wanted": batch}))
            return tuple(_attachment(row) for row in found)

        return await self._database.read(operation)


class StoredImages:
    """The image shelf of a host: rows say which images are left out, the disk which are gone."""

    def __init__(self, attachments: AttachmentStore) -> None:
        self._attachments = attachments

    async def read(self, attachment_id: str) -> bytes | None:
        for file in await self._attachments.attachments([attachment_id]):
            return await asyncio.to_thread(_bytes_of, file.path)
        return None

    async def missing(self, attachment_ids: Sequence[str]) -> Mapping[str, MissingImage]:
        if not attachment_ids:
            return {}
        known = {file.id: file for file in await self._attachments.attachments(attachment_ids)}
        gone = await asyncio.to_thread(_gone, tuple(known.values()))
        # What the store never knew was never sent.
        found = {key: MissingImage(why=LeftOut.GONE, recorded=True) for key in attachment_ids if key not in known}
        for key, file in known.items():
            if file.left_out is not None:
                found[key] = MissingImage(why=file.left_out, recorded=True)
            elif key in gone:
                found[key] = MissingImage(why=LeftOut.GONE, recorded=False)
        return found

    async def leave_out(self, attachment_ids: Sequence[str], why: LeftOut) -> None:
        await self._attachments.leave_out(attachment_ids, why)


def _bytes_of(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _gone(files: Sequence[StoredAttachment]) -> set[str]:
    return {file.id for file in files if not file.path or not Path(file.path).is_file()}


def _batches(wanted: Sequence[object]) -> list[list[object]]:
    return [list(wanted[start : start + _MOST_AT_ONCE]) for start in range(0, len(wanted), _MOST_AT_ONCE)]


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
        transcript=row.transcript,
        unheard=row.unheard,
        left_out=None if row.left_out is None else LeftOut(row.left_out),
    )


if TYPE_CHECKING:
    _conforms: type[AttachmentStore] = SqlAttachments
    _images: type[ImageShelf] = StoredImages
