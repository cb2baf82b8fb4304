"""Files sent in three steps: announced, uploaded, posted. Nobody sees anything before the third."""

from __future__ import annotations

import logging
from collections import OrderedDict

from channels.slack.errors import RETRY_SOON, ThreadGone
from channels.slack.files import opened, share_of
from channels.slack.limits import Timing
from channels.slack.message_ids import message_id, thread_of, unseen_file_id
from channels.slack.outbound import render_caption
from channels.slack.transport import SlackApi
from core.contracts.addresses import FileContent, OutboundItem
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendUnknown

logger = logging.getLogger(__name__)

_KNOWN_UPLOADS = 200


class Uploads:
    """Sends files, and remembers which of Slack's files each item became."""

    def __init__(self, api: SlackApi, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._files: OrderedDict[str, str] = OrderedDict()

    async def send(self, item: OutboundItem, content: FileContent) -> str:
        """Send a file and return the external id of the message that shows it.

        Slack tells only after a while which message that is; where it takes too long the id names
        the file.

        Raises:
            ChannelError: `SendUnknown` only where the file may have been posted.
        """
        comment, channel = render_caption(content), item.address.chat
        thread = thread_of(item)
        async with opened(content) as file:
            try:
                upload = await self._api.begin_upload(file.name, file.size_bytes)
                await self._api.send_bytes(upload, file.content, file.size_bytes)
            except SendUnknown as error:
                # Nothing was posted, so it can be begun again.
                raise SendLimited(error.detail, retry_after=RETRY_SOON) from error
        self._remember(item.id, upload.file)
        try:
            thread = await self._share(upload.file, title=file.name, channel=channel, thread=thread, comment=comment)
        except SendUnknown:
            shown = await self._shown(upload.file, channel, thread)
            if shown is None:
                raise
            return shown
        return await self._shown(upload.file, channel, thread) or unseen_file_id(upload.file)

    async def message_of(self, file: str, channel: str, thread: str | None) -> str | None:
        """Return the external id of the message that shows a file; None: there is none yet.

        Args:
            file: Slack's id of it.
            channel: Where it was posted.
            thread: The thread that it was posted to, as Slack does not always tell.

        Raises:
            ChannelError: It could not be asked.
        """
        share = share_of(await self._api.file(file), channel)
        return None if share is None else message_id(share[0] or thread, share[1])

    def file_of(self, item_id: str) -> str | None:
        """Return the file that an item became, as far as it is remembered."""
        return self._files.get(item_id)

    async def _share(self, file: str, *, title: str, channel: str, thread: str | None, comment: str) -> str | None:
        """Post a file, and return the thread where it is."""
        try:
            await self._api.share(file, title=title, channel=channel, thread=thread, comment=comment)
        except ThreadGone:
            # The thread's root is gone; its channel has the same people.
            await self._api.share(file, title=title, channel=channel, thread=None, comment=comment)
            return None
        return thread

    async def _shown(self, file: str, channel: str, thread: str | None) -> str | None:
        """Wait until a file is shown, and return the external id of its message; None: it took too long."""
        ends_at = self._clock.monotonic() + self._timing.share_patience.total_seconds()
        while True:
            try:
                if shown := await self.message_of(file, channel, thread):
                    return shown
            except ChannelError as error:
                logger.debug("slack_file_not_asked", extra={"reason": type(error).__name__})
            if self._clock.monotonic() >= ends_at:
                logger.info("slack_file_not_seen", extra={"file": file})
                return None
            await self._clock.sleep(self._timing.share_interval)

    def _remember(self, item_id: str, file: str) -> None:
        self._files[item_id] = file
        while len(self._files) > _KNOWN_UPLOADS:
            self._files.popitem(last=False)
