"""Files that come with messages: fetched to this machine before the message is queued, or refused in words."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bot.conversations.answers import Answers
from bot.conversations.outages import OutageNotice
from bot.conversations.voices import Voices, shown_name
from channels.contract import Channel
from core.contracts.addresses import Attachment, MessageBody
from core.contracts.attachments import AttachmentStore, StoredAttachment
from core.contracts.clock import Clock
from core.contracts.delivery import InboxRow
from core.contracts.errors import DownloadFailed, DownloadRefused, StorageFull
from core.contracts.ids import ConversationId, new_id

logger = logging.getLogger(__name__)

MAX_FILES = 10
"""How many files of one message are taken."""
RETRY_AFTER = (timedelta(seconds=1), timedelta(seconds=4), timedelta(seconds=15))
"""A file that could not be had is asked for again after each of these, and then refused."""
ROOM_AFTER = timedelta(minutes=1)
"""A message whose files find no room is looked at again so much later."""
_NAME_CHARS = 100
_NAME_BYTES = 180
"""A file system takes 255 bytes; the row's number stands before the name."""
_EXTENSION_CHARS = 16
_KEPT_CATEGORIES = "LMN"
_KEPT_MARKS = "._-"

_NO_ROOM = "I cannot store your files right now, so your message waits. I will take it as soon as there is room."
_NOT_HAD = "it could not be downloaded"


@dataclass(slots=True)
class _Tries:
    """How often a file was asked for in vain, and when it may be asked for again."""

    failures: int
    not_before: datetime


class Intake:
    """Fetches files into a folder of their conversation, which nobody else on this machine can read.

    A file is known once it is stored, and is not fetched again then; what a crash left half-written
    is removed. How often a file failed is counted in memory: a restart begins to count anew.
    """

    def __init__(
        self,
        *,
        attachments: AttachmentStore,
        answers: Answers,
        channels: Mapping[str, Channel],
        clock: Clock,
        root: Path,
        limit_bytes: int,
        voices: Voices | None = None,
    ) -> None:
        """Take where files go and how large one may be; without `voices` recordings are files like others."""
        self._attachments = attachments
        self._answers = answers
        self._channels = channels
        self._clock = clock
        self._root = root
        self._limit_bytes = limit_bytes
        self._voices = voices
        self._tries: dict[tuple[int, int], _Tries] = {}
        self._no_room = OutageNotice(channels, _NO_ROOM)

    async def take(self, rows: Sequence[InboxRow], conversation_id: ConversationId) -> timedelta | None:
        """Fetch the files of a message, or of an album, and have recordings transcribed.

        Returns:
            How long to wait before the next try. None: each file is stored or refused, each recording heard
            or given up. Its sender is told of all refused ones in one message.
        """
        known = {(file.inbox_id, file.position) for file in await self._stored(rows)}
        missing = [place for place in _places(rows) if (place[0].id, place[1]) not in known]
        try:
            waits = [await self._take(row, position, file, conversation_id) for row, position, file in missing]
            if self._voices is not None and not any(waits):
                waits.append(await self._voices.hear(rows))
        except (OSError, StorageFull) as error:
            logger.warning("attachment_not_stored", extra={"inbox_id": rows[0].id, "error": type(error).__name__})
            await self._no_room.tell(rows[0].event.address)
            return ROOM_AFTER
        if missing:
            self._no_room.end()
        if any(waits):
            return min(wait for wait in waits if wait)
        await self._tell_refused(rows)
        return None

    async def _stored(self, rows: Sequence[InboxRow]) -> tuple[StoredAttachment, ...]:
        if not any(_places(rows)):
            return ()
        return await self._attachments.attachments_of([row.id for row in rows])

    async def _take(
        self, row: InboxRow, position: int, file: Attachment, conversation_id: ConversationId
    ) -> timedelta | None:
        """Store one file or its refusal; return how long to wait where neither can be said yet."""
        tries = self._tries.get((row.id, position))
        if tries is not None and tries.not_before > self._clock.now():
            return tries.not_before - self._clock.now()
        path = self._root / conversation_id / f"{row.id}-{position}-{safe_name(file.name)}"
        refusal, size_bytes = "", 0
        try:
            size_bytes = await self._fetch(row, position, file, path)
        except DownloadRefused as error:
            refusal = error.detail
        except DownloadFailed as error:
            wait = self._next_try(row, position)
            logger.info("attachment_failed", extra={"inbox_id": row.id, "error": error.detail, "last": wait is None})
            if wait is not None:
                return wait
            refusal = _NOT_HAD
        stored = StoredAttachment(
            id=new_id("file"),
            conversation_id=conversation_id,
            inbox_id=row.id,
            position=position,
            name=file.name,
            media_type=file.media_type,
            size_bytes=size_bytes,
            path="" if refusal else str(path),
            created_at=self._clock.now(),
            refusal=refusal,
        )
        await self._attachments.add_attachments([stored])
        self._tries.pop((row.id, position), None)
        return None

    async def _fetch(self, row: InboxRow, position: int, file: Attachment, path: Path) -> int:
        if position >= MAX_FILES:
            raise DownloadRefused(f"only the first {MAX_FILES} files of a message are taken")
        await asyncio.to_thread(_make_way, path)
        channel = self._channels[row.event.address.channel]
        return await channel.download(file, path, limit_bytes=self._limit_bytes)

    def _next_try(self, row: InboxRow, position: int) -> timedelta | None:
        """Count a failure; return how long until the next try, None when there is none left."""
        known = self._tries.get((row.id, position))
        failures = 0 if known is None else known.failures
        if failures == len(RETRY_AFTER):
            return None
        wait = RETRY_AFTER[failures]
        self._tries[row.id, position] = _Tries(failures=failures + 1, not_before=self._clock.now() + wait)
        return wait

    async def _tell_refused(self, rows: Sequence[InboxRow]) -> None:
        refused = [file for file in await self._stored(rows) if file.refusal]
        if refused:
            lines = [f"- `{shown_name(file.name)}`: {file.refusal}" for file in refused]
            await self._answers.answer(rows[0], "\n".join(["I could not take:", *lines]), about="files")


def safe_name(name: str) -> str:
    """Return a name that is one file in its folder and means nothing to a shell or a prompt.

    Letters, digits, marks and `._-` stay, in any script; everything else becomes `_`. At most 100
    characters, the extension kept, no dot in front.
    """
    normal = unicodedata.normalize("NFC", name)
    plain = "".join(character if _is_kept(character) else "_" for character in normal).lstrip(".")
    stem, dot, extension = plain.rpartition(".")
    if not dot or not stem or len(extension) > _EXTENSION_CHARS:
        stem, extension = plain, ""
    ending = f".{extension}" if extension else ""
    stem = stem[: _NAME_CHARS - len(ending)]
    while len(f"{stem}{ending}".encode()) > _NAME_BYTES:
        stem = stem[:-1]
    return f"{stem}{ending}" or "file"


def _is_kept(character: str) -> bool:
    return character in _KEPT_MARKS or unicodedata.category(character)[0] in _KEPT_CATEGORIES


def _places(rows: Sequence[InboxRow]) -> list[tuple[InboxRow, int, Attachment]]:
    """Return every file with its message and its place in it."""
    return [
        (row, position, file)
        for row in rows
        if isinstance(row.event.body, MessageBody)
        for position, file in enumerate(row.event.body.attachments)
    ]


def _make_way(path: Path) -> None:
    """Make the folder for a file, closed to other users, and remove what a crash left in its place."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
