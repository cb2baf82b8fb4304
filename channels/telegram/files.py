"""Files on their way out: what each is sent as, and its bytes, which are read while it goes."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO

from channels.chunking import measure, safe_end
from channels.contract import TextUnit
from channels.telegram.limits import CAPTION_LIMIT_UTF16, PHOTO_LIMIT_BYTES, UPLOAD_LIMIT_BYTES
from core.contracts.addresses import FileContent
from core.contracts.errors import SendRejected

_PHOTO_TYPES = frozenset({"image/jpeg", "image/png", "image/webp"})
_VOICE_TYPES = frozenset({"audio/ogg", "audio/opus"})
_OPUS_MARK = b"OpusHead"
_HEAD_BYTES = 512
_ELLIPSIS = "…"
_MB = 1_000_000


class FileKind(StrEnum):
    """What Telegram shows a file as."""

    PHOTO = "photo"
    VOICE = "voice"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCall:
    """sendPhoto, sendVoice or sendDocument; `options` are its other parameters."""

    chat_id: int
    kind: FileKind
    name: str
    content: BinaryIO
    caption: str
    options: Mapping[str, Any]


@asynccontextmanager
async def opened(content: FileContent) -> AsyncIterator[tuple[BinaryIO, FileKind]]:
    """Open a file that goes out, and tell what it is best sent as; a photo is one that Telegram takes as one.

    Raises:
        SendRejected: There is no such file, or it is empty, too large or no file at all.
    """
    file = await asyncio.to_thread(_open, content.path)
    try:
        size, head = await asyncio.to_thread(_look_at, file)
        if size > UPLOAD_LIMIT_BYTES:
            raise SendRejected(
                f"{content.name} has {size / _MB:.1f} MB; bots send {UPLOAD_LIMIT_BYTES // _MB} MB at most"
            )
        if size == 0:
            raise SendRejected(f"{content.name} is empty, and Telegram takes no empty files")
        yield file, _kind(content.media_type, size, head)
    finally:
        await asyncio.to_thread(file.close)


def clipped(caption: str) -> str:
    """Return a caption that fits under a file, cut with a mark where it is longer."""
    if measure(caption, TextUnit.UTF16) <= CAPTION_LIMIT_UTF16:
        return caption
    room = CAPTION_LIMIT_UTF16 - measure(_ELLIPSIS, TextUnit.UTF16)
    return caption[: safe_end(caption, room, TextUnit.UTF16)] + _ELLIPSIS


def _kind(media_type: str, size: int, head: bytes) -> FileKind:
    plain_type = media_type.partition(";")[0].strip().lower()
    if plain_type in _PHOTO_TYPES and size <= PHOTO_LIMIT_BYTES:
        return FileKind.PHOTO
    if plain_type in _VOICE_TYPES and _OPUS_MARK in head:
        return FileKind.VOICE
    return FileKind.DOCUMENT


def _open(path: str) -> BinaryIO:
    try:
        # Without waiting, as opening a pipe would for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise SendRejected("the file is not there any more") from error
    except (OSError, ValueError) as error:
        raise SendRejected(f"the file cannot be read: {type(error).__name__}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SendRejected("that is no file")
    return os.fdopen(descriptor, "rb")


def _look_at(file: BinaryIO) -> tuple[int, bytes]:
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    return size, head
