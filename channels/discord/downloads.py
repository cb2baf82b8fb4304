"""Files that came with messages, on their way to this machine's disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, urlsplit

import httpx

from channels.discord.handles import FileHandle, read_handle
from channels.discord.limits import Timing
from channels.discord.transport import DiscordApi
from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, DownloadFailed, DownloadRefused, SendRejected

_HEAD_BYTES = 512
_AT_ONCE = 4
"""Downloads beside each other, so that many files leave connections for answers."""
_MB = 1_000_000

_HTML_STARTS = (b"<!doctype html", b"<html")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_HTML_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".php"})

_GONE = "Discord has it no more"
_SIGN_IN_PAGE = "instead of the file a web page came, as a sign-in page or a proxy sends it"
_REFUSED_LINK = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE, HTTPStatus.UNAUTHORIZED})


class _LinkRefused(DownloadRefused):
    """The link is good no more; the message may have a new one."""


class Downloads:
    """Fetches files. Links are signed and run out, so one that is refused is asked for again by its message."""

    def __init__(self, api: DiscordApi, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        """Write the file to `into` and return its size; see `channels.contract.Channel.download`."""
        handle = read_handle(attachment.handle)
        if handle is None:
            raise DownloadRefused("that is no file of Discord")
        _check_size(attachment.size_bytes, limit_bytes)
        async with self._turns:
            if self._has_run_out(handle.url):
                return await self._fetch(await self._renewed(handle), attachment, into, limit_bytes)
            try:
                return await self._fetch(handle, attachment, into, limit_bytes)
            except _LinkRefused:
                return await self._fetch(await self._renewed(handle), attachment, into, limit_bytes)

    def _has_run_out(self, url: str) -> bool:
        """Return whether a link says of itself that its time is over."""
        try:
            ends = parse_qs(urlsplit(url).query).get("ex", [""])[0]
            return datetime.fromtimestamp(int(ends, 16), UTC) <= self._clock.now()
        except (ValueError, OverflowError, OSError):
            return not url

    async def _renewed(self, handle: FileHandle) -> FileHandle:
        """Return the handle with the link that its message has now."""
        try:
            message = await self._api.message(handle.channel, handle.message)
        except SendRejected as error:
            raise DownloadRefused(_GONE) from error
        except ChannelError as error:
            raise DownloadFailed(error.detail) from error
        for file in message.get("attachments") or ():
            if isinstance(file, dict) and file.get("id") == handle.attachment and isinstance(file.get("url"), str):
                return replace(handle, url=file["url"])
        raise DownloadRefused(_GONE)

    async def _fetch(self, handle: FileHandle, attachment: Attachment, into: Path, limit_bytes: int) -> int:
        try:
            async with self._api.open_file(handle.url) as response, _new_file(into) as file:
                _check_answer(response, limit_bytes)
                size = await self._save(response, file, attachment, limit_bytes)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise DownloadFailed(f"the file did not come: {type(error).__name__}") from error
        return size

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
        if attachment.size_bytes is not None and size < attachment.size_bytes and not _is_page(head):
            raise DownloadFailed(f"only {size} of {attachment.size_bytes} bytes came")
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
        raise DownloadFailed(f"Discord answered {status}")
    if status in _REFUSED_LINK:
        raise _LinkRefused(_GONE)
    if status != HTTPStatus.OK:
        raise DownloadRefused(f"Discord does not hand it out (it answered {status})")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise DownloadFailed("the file came packed, which was not asked for")
    announced = response.headers.get("content-length", "")
    _check_size(int(announced) if announced.isascii() and announced.isdigit() else None, limit_bytes)


def _is_page(start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:20].lower().startswith(_HTML_STARTS)


def _may_be_page(attachment: Attachment) -> bool:
    media_type = attachment.media_type.partition(";")[0].strip().lower()
    return media_type in _HTML_TYPES or Path(attachment.name).suffix.lower() in _HTML_SUFFIXES
