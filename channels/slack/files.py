"""Files on their way out: their bytes, which are read while they go, and where they came to stand."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from channels.slack.limits import UPLOAD_LIMIT_BYTES
from channels.slack.mrkdwn import encodable
from core.contracts.addresses import FileContent
from core.contracts.errors import SendRejected

Json = dict[str, Any]

_MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingFile:
    """An open file; `name` is what it is called on Slack."""

    name: str
    size_bytes: int
    content: BinaryIO


@asynccontextmanager
async def opened(content: FileContent) -> AsyncIterator[OutgoingFile]:
    """Open a file that goes out.

    Raises:
        SendRejected: There is no such file, or it is empty, too large or no file at all.
    """
    file = await asyncio.to_thread(_open, content.path)
    try:
        size = os.fstat(file.fileno()).st_size
        if size > UPLOAD_LIMIT_BYTES:
            raise SendRejected(
                f"{content.name} has {size / _MB:.1f} MB; Slack takes {UPLOAD_LIMIT_BYTES // _MB} MB at most"
            )
        if size == 0:
            raise SendRejected(f"{content.name} is empty, and Slack takes no empty files")
        yield OutgoingFile(name=encodable(content.name), size_bytes=size, content=file)
    finally:
        await asyncio.to_thread(file.close)


def share_of(file: Json, channel: str) -> tuple[str | None, str] | None:
    """Return the thread and the ts of the message that shows a file in a channel; None: there is none yet.

    Args:
        file: The file as files.info shows it.
        channel: The channel's id.
    """
    for share in _shares(file, channel):
        ts, thread = share.get("ts"), share.get("thread_ts")
        if isinstance(ts, str):
            return (thread if isinstance(thread, str) else None), ts
    return None


def _shares(file: Json, channel: str) -> Iterator[Json]:
    by_kind = file.get("shares")
    for by_channel in by_kind.values() if isinstance(by_kind, dict) else ():
        shares = by_channel.get(channel) if isinstance(by_channel, dict) else None
        yield from (share for share in shares or () if isinstance(share, dict))


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
