"""Files on their way out; their bytes are read while they go."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import BinaryIO

from channels.discord.limits import FILE_NAME_LIMIT_CHARS, UPLOAD_LIMIT_BYTES
from channels.discord.rendering import encodable
from channels.discord.transport import Upload
from core.contracts.addresses import FileContent
from core.contracts.errors import SendRejected

_MIB = 1024 * 1024
_PLAIN_TYPE = "application/octet-stream"


@asynccontextmanager
async def opened(content: FileContent) -> AsyncIterator[Upload]:
    """Open a file that goes out.

    Raises:
        SendRejected: There is no such file, or it is empty, too large or no file at all.
    """
    file = await asyncio.to_thread(_open, content.path)
    try:
        size = await asyncio.to_thread(lambda: os.fstat(file.fileno()).st_size)
        if size > UPLOAD_LIMIT_BYTES:
            raise SendRejected(
                f"{content.name} has {size / _MIB:.1f} MiB; Discord takes {UPLOAD_LIMIT_BYTES // _MIB} MiB at most"
            )
        if size == 0:
            raise SendRejected(f"{content.name} is empty, and Discord takes no empty files")
        yield Upload(name=upload_name(content.name), media_type=_media_type(content.media_type), content=file)
    finally:
        await asyncio.to_thread(file.close)


def upload_name(name: str) -> str:
    """Return a file's name as it goes out: one line, no folder, and its ending kept where it is cut."""
    plain = " ".join(encodable(PurePath(name).name).split()) or "file"
    if len(plain) <= FILE_NAME_LIMIT_CHARS:
        return plain
    ending = PurePath(plain).suffix[:FILE_NAME_LIMIT_CHARS]
    return plain[: FILE_NAME_LIMIT_CHARS - len(ending)] + ending


def _media_type(media_type: str) -> str:
    plain = media_type.strip()
    return plain if plain.isascii() and plain.isprintable() and "/" in plain else _PLAIN_TYPE


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
