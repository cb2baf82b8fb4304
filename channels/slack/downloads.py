"""Files that came with messages, on their way to this machine's disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

import aiohttp

from channels.slack.errors import ScopeMissing
from channels.slack.limits import Timing
from channels.slack.transport import SlackApi
from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, DownloadFailed, DownloadRefused, SendRejected

_HEAD_BYTES = 512
_PIECE_BYTES = 64 * 1024
_AT_ONCE = 4
"""Downloads beside each other, so that an album leaves connections for answers."""
_MB = 1_000_000

_HTML_STARTS = (b"<!doctype html", b"<html")
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_HTML_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".php"})

_SIGN_IN_PAGE = (
    "instead of the file Slack's sign-in page came: the app lacks the scope files:read (add it under OAuth &"
    " Permissions and install the app again), or is not in the place where the file was shown"
)
_ELSEWHERE = "the file is not kept by Slack but elsewhere, where this host has no access"
_GONE = "Slack has the file no more, or does not show it to the app"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemoteFile:
    """A file on Slack's side."""

    url: str
    size_bytes: int | None


class Downloads:
    """Fetches files of one app. The token goes to Slack's own hosts and no further."""

    def __init__(self, api: SlackApi, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        """Write the file to `into` and return its size; see `channels.contract.Channel.download`.

        The attachment's handle is the id of the file: where its bytes are is asked when they are wanted.
        """
        _check_size(attachment.size_bytes, limit_bytes)
        async with self._turns:
            remote = await self._find(attachment.handle)
            _check_size(remote.size_bytes, limit_bytes)
            try:
                async with self._api.open_file(remote.url) as response, _new_file(into) as file:
                    _check_answer(response, attachment, limit_bytes)
                    size = await self._save(response, file, attachment, limit_bytes)
                    _check_whole(size, remote.size_bytes, attachment)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise DownloadFailed(f"the file did not come: {type(error).__name__}") from error
        return size

    async def _find(self, file_id: str) -> _RemoteFile:
        try:
            file = await self._api.file(file_id)
        except ScopeMissing as error:
            raise DownloadRefused(error.detail) from error
        except SendRejected as error:
            raise DownloadRefused(f"{_GONE} ({error.detail})") from error
        except ChannelError as error:
            raise DownloadFailed(error.detail) from error
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        if file.get("mode") == "tombstone":
            raise DownloadRefused(_GONE)
        if file.get("is_external") is True or not self._api.is_own(url):
            raise DownloadRefused(_ELSEWHERE)
        size = file.get("size")
        return _RemoteFile(url=url, size_bytes=size if isinstance(size, int) and size > 0 else None)

    async def _save(
        self, response: aiohttp.ClientResponse, file: BinaryIO, attachment: Attachment, limit_bytes: int
    ) -> int:
        """Write what comes, as it comes, and return how much it was."""
        size = 0
        head = b""
        ends_at = self._clock.monotonic() + self._timing.download_patience.total_seconds()
        async for piece in response.content.iter_chunked(_PIECE_BYTES):
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


def _check_answer(response: aiohttp.ClientResponse, attachment: Attachment, limit_bytes: int) -> None:
    """Raise unless the answer holds the file."""
    status = response.status
    if (
        status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    ):
        raise DownloadFailed(f"Slack answered {status}")
    if status != HTTPStatus.OK:
        raise DownloadRefused(f"Slack does not hand it out (it answered {status})")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise DownloadFailed("the file came packed, which was not asked for")
    if response.content_type in _HTML_TYPES and not _may_be_page(attachment):
        raise DownloadRefused(_SIGN_IN_PAGE)
    _check_size(response.content_length, limit_bytes)


def _check_whole(size_bytes: int, told_bytes: int | None, attachment: Attachment) -> None:
    """Raise unless as much came as Slack has; of a page, whose content tells nothing, exactly as much."""
    if told_bytes is None or size_bytes == told_bytes:
        return
    if _may_be_page(attachment):
        raise DownloadRefused(_SIGN_IN_PAGE)
    if size_bytes < told_bytes:
        raise DownloadFailed(f"only {size_bytes} of {told_bytes} bytes came")


def _is_page(start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:20].lower().startswith(_HTML_STARTS)


def _may_be_page(attachment: Attachment) -> bool:
    media_type = attachment.media_type.partition(";")[0].strip().lower()
    return media_type in _HTML_TYPES or Path(attachment.name).suffix.lower() in _HTML_SUFFIXES
