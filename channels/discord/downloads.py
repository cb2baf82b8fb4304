"""Files that came with messages, on their way to this machine's disk."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from channels.discord.handles import FileHandle, read_handle
from channels.discord.limits import Timing
from channels.discord.transport import DiscordApi
from channels.saving import check_answer, check_size, check_whole, new_file, save
from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, DownloadFailed, DownloadRefused, SendRejected

_AT_ONCE = 4
"""Downloads beside each other, so that many files leave connections for answers."""

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
        check_size(attachment.size_bytes, limit_bytes)
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
            async with self._api.open_file(handle.url) as response, new_file(into) as file:
                if response.status_code in _REFUSED_LINK:
                    raise _LinkRefused(_GONE)
                check_answer(response.status_code, response.headers, limit_bytes, platform="Discord")
                size = await save(
                    response.aiter_raw(),
                    file,
                    attachment,
                    limit_bytes=limit_bytes,
                    clock=self._clock,
                    patience=self._timing.download_patience,
                    sign_in_page=_SIGN_IN_PAGE,
                )
                check_whole(size, attachment.size_bytes)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise DownloadFailed(f"the file did not come: {type(error).__name__}") from error
        return size
