"""Files that came with messages, on their way to this machine's disk."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from channels.saving import check_answer, check_size, check_whole, is_page_type, may_be_page, new_file, save
from channels.slack.errors import ScopeMissing
from channels.slack.limits import Timing
from channels.slack.transport import SlackApi
from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, DownloadFailed, DownloadRefused, SendRejected

_PIECE_BYTES = 64 * 1024
_AT_ONCE = 4
"""Downloads beside each other, so that an album leaves connections for answers."""

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
        check_size(attachment.size_bytes, limit_bytes)
        async with self._turns:
            remote = await self._find(attachment.handle)
            check_size(remote.size_bytes, limit_bytes)
            try:
                async with self._api.open_file(remote.url) as response, new_file(into) as file:
                    check_answer(response.status, response.headers, limit_bytes, platform="Slack")
                    if is_page_type(response.content_type) and not may_be_page(attachment):
                        raise DownloadRefused(_SIGN_IN_PAGE)
                    size = await save(
                        response.content.iter_chunked(_PIECE_BYTES),
                        file,
                        attachment,
                        limit_bytes=limit_bytes,
                        clock=self._clock,
                        patience=self._timing.download_patience,
                        sign_in_page=_SIGN_IN_PAGE,
                    )
                    if may_be_page(attachment) and size != (remote.size_bytes or size):
                        # A page tells by its size alone whether it is the one that was sent.
                        raise DownloadRefused(_SIGN_IN_PAGE)
                    check_whole(size, remote.size_bytes)
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
