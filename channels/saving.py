"""Files on their way from a platform to this machine's disk: whole, within their limit, and what they say they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import DownloadFailed, DownloadRefused

_HEAD_BYTES = 512
_MB = 1_000_000

_HTML_STARTS = (b"<!doctype html", b"<html")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_HTML_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".php"})


@asynccontextmanager
async def new_file(path: Path) -> AsyncIterator[BinaryIO]:
    """Give a file that gets its name when the block is left without an error, and is gone otherwise."""
    unfinished = path.with_name(f"{path.name}.part")
    file = await asyncio.to_thread(_create, unfinished)
    try:
        try:
            yield file
        finally:
            await asyncio.to_thread(file.close)
        await asyncio.to_thread(os.replace, unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


async def save(
    pieces: AsyncIterable[bytes],
    file: BinaryIO,
    attachment: Attachment,
    *,
    limit_bytes: int,
    clock: Clock,
    patience: timedelta,
    sign_in_page: str,
) -> int:
    """Write what comes, as it comes, and return how many bytes it was.

    Args:
        pieces: The bytes.
        file: Where they go.
        attachment: What the platform said of the file.
        limit_bytes: How many there may be.
        clock: Tells how long it takes.
        patience: How long it may take.
        sign_in_page: What to say of a web page that came instead.

    Raises:
        DownloadRefused: There is too much of it, or it is a web page that nobody sent.
        DownloadFailed: It comes too slowly.
    """
    size = 0
    head = b""
    ends_at = clock.monotonic() + patience.total_seconds()
    async for piece in pieces:
        size += len(piece)
        check_size(size, limit_bytes)
        if clock.monotonic() > ends_at:
            raise DownloadFailed("the file came too slowly")
        if len(head) < _HEAD_BYTES:
            head += piece[:_HEAD_BYTES]
        await asyncio.to_thread(file.write, piece)
    if _is_page(head) and not may_be_page(attachment):
        raise DownloadRefused(sign_in_page)
    return size


def check_answer(status: int, headers: Mapping[str, str], limit_bytes: int, *, platform: str) -> None:
    """Raise unless an HTTP answer of the platform holds the file, as it is and within its limit.

    Raises:
        DownloadRefused: The platform does not hand it out, or it is too large.
        DownloadFailed: It may come another time.
    """
    if (
        status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    ):
        raise DownloadFailed(f"{platform} answered {status}")
    if status != HTTPStatus.OK:
        raise DownloadRefused(f"{platform} does not hand it out (it answered {status})")
    if headers.get("content-encoding", "identity") != "identity":
        raise DownloadFailed("the file came packed, which was not asked for")
    announced = headers.get("content-length", "")
    check_size(int(announced) if announced.isascii() and announced.isdigit() else None, limit_bytes)


def check_size(size_bytes: int | None, limit_bytes: int) -> None:
    """Raise when a size is known and too large.

    Raises:
        DownloadRefused: It is.
    """
    if size_bytes is not None and size_bytes > limit_bytes:
        raise DownloadRefused(f"it is larger than {limit_bytes / _MB:g} MB")


def check_whole(size_bytes: int, told_bytes: int | None) -> None:
    """Raise when less came than there is.

    Raises:
        DownloadFailed: The rest is missing.
    """
    if told_bytes is not None and size_bytes < told_bytes:
        raise DownloadFailed(f"only {size_bytes} of {told_bytes} bytes came")


def is_page_type(media_type: str) -> bool:
    """Whether a media type, with parameters or without, is a web page's."""
    return media_type.partition(";")[0].strip().lower() in _HTML_TYPES


def may_be_page(attachment: Attachment) -> bool:
    """Whether somebody may have sent a web page as that file."""
    return is_page_type(attachment.media_type) or Path(attachment.name).suffix.lower() in _HTML_SUFFIXES


def _create(path: Path) -> BinaryIO:
    """Open a new file for writing; one that a crash left is replaced, never followed if it is a link."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def _is_page(start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:20].lower().startswith(_HTML_STARTS)
