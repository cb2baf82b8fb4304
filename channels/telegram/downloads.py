"""Files that came with messages, on their way to this machine's disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from channels.saving import check_answer, check_size, check_whole, new_file, save
from channels.telegram.limits import DOWNLOAD_LIMIT_BYTES, Timing
from channels.telegram.transport import BotApi, RemoteFile
from core.contracts.addresses import Attachment
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, DownloadFailed, DownloadRefused, SendRejected

_AT_ONCE = 4
"""Downloads beside each other, so that an album leaves connections for answers."""
_MB = 1_000_000

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
        check_size(attachment.size_bytes, limit_bytes)
        async with self._turns:
            remote = await self._find(attachment.handle)
            check_size(remote.size_bytes, limit_bytes)
            if remote.path.startswith("/"):
                raise DownloadRefused(_ON_ITS_OWN_DISK)
            try:
                async with self._api.open_file(remote.path) as response, new_file(into) as file:
                    check_answer(response.status_code, response.headers, limit_bytes, platform="Telegram")
                    size = await save(
                        response.aiter_raw(),
                        file,
                        attachment,
                        limit_bytes=limit_bytes,
                        clock=self._clock,
                        patience=self._timing.download_patience,
                        sign_in_page=_SIGN_IN_PAGE,
                    )
                    check_whole(size, remote.size_bytes)
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
