"""Files that came with messages, on their way to this machine's disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

import httpx

from channels.telegram.limits import DOWNLOAD_LIMIT_BYTES, Timing
from channels.telegram.transport import BotApi, RemoteFile
from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, DownloadFailed, DownloadRefused, SendRejected

_HEAD_BYTES = 512
_AT_ONCE = 4
"""Downloads beside each other, so that an album leaves connections for answers."""
_MB = 1_000_000

_HTML_STARTS = (b"<!doctype html", b"<html")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_HTML_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".php"})

_TOO_BIG_FOR_BOTS = f"Telegram gives bots files of at most {DOWNLOAD_LIMIT_BYTES // _MB} MB"
_ON_ITS_OWN_DISK = (
    "the Bot API server of this host keeps files on its own disk (it runs with --local) and hands out none;"
    " run it without --local"
)
_SIGN_IN_PAGE = "instead of the file a web page came, as a sign-in page or a proxy sends it"


class Downloads:
    """Fetches files of one bot. The link to a file holds the token and is seen by the transport alone."""

    def __init__(self, api: BotApi, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        """Write the file to `into` and return its size; see `channels.contract.Channel.download`."""
        _check_size(attachment.size_bytes, limit_bytes)
        async with self._turns:
            remote = await self._find(attachment.handle)
            _check_size(remote.size_bytes, limit_bytes)
            if remote.path.startswith("/"):
                raise DownloadRefused(_ON_ITS_OWN_DISK)
            try:
                async with self._api.open_file(remote.path) as response, _new_file(into) as file:
                    _check_answer(response, limit_bytes)
                    size = await self._save(response, file, attachment, limit_bytes)
                    if remote.size_bytes is not None and size < remote.size_bytes:
                        raise DownloadFailed(f"only {size} of {remote.size_bytes} bytes came")
            except (httpx.HTTPError, OSError) as error:
                raise DownloadFailed(f"the file did not come: {type(error).__name__}") from error
        return size

    async def _find(self, file_id: str) -> RemoteFile:
        try:
            return await self._api.find_file(file_id)
        except SendRejected as error:
            is_too_big = "too big" in error.detail.lower()
            raise DownloadRefused(_TOO_BIG_FOR_BOTS if is_too_big else "Telegram has it no more") from error
        except ChannelError as error:
            raise DownloadFailed(error.detail) from error

    async def _save(self, response: httpx.Response, file: BinaryIO, attachment: Attachment, limit_bytes: int) -> int:
        """Write what comes, as it comes, and return how much it was."""
        size = 0
        head = b""
        ends_at = self._clock.monotonic() + self._timing.download_patience.total_seconds()
        async for piece in response.aiter_raw():
            size += len(piece)
            _check_size(size, limit_bytes)
            if self._clock.monotonic() > ends_at:
                raise DownloadFailed("the file came too slowly")
            if len(head) < _HEAD_BYTES:
                head += piece[:_HEAD_BYTES]
            await asyncio.to_thread(file.write, piece)
        if _is_page(head) and not _may_be_page(attachment):
            raise DownloadRefused(_SIGN_IN_PAGE)
        return size


@asynccontextmanager
async def _new_file(path: Path) -> AsyncIterator[BinaryIO]:
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


def _create(path: Path) -> BinaryIO:
    """Open a new file for writing; one that a crash left is replaced, never followed if it is a link."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def _check_size(size_bytes: int | None, limit_bytes: int) -> None:
    if size_bytes is not None and size_bytes > limit_bytes:
        raise DownloadRefused(f"it is larger than {limit_bytes / _MB:g} MB")


def _check_answer(response: httpx.Response, limit_bytes: int) -> None:
    """Raise unless the answer holds the file."""
    status = response.status_code
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT} or response.is_server_error:
        raise DownloadFailed(f"Telegram answered {status}")
    if status != HTTPStatus.OK:
        raise DownloadRefused(f"Telegram does not hand it out (it answered {status})")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise DownloadFailed("the file came packed, which was not asked for")
    announced = response.headers.get("content-length", "")
    _check_size(int(announced) if announced.isascii() and announced.isdigit() else None, limit_bytes)


def _is_page(start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:20].lower().startswith(_HTML_STARTS)


def _may_be_page(attachment: Attachment) -> bool:
    media_type = attachment.media_type.partition(";")[0].strip().lower()
    return media_type in _HTML_TYPES or Path(attachment.name).suffix.lower() in _HTML_SUFFIXES
