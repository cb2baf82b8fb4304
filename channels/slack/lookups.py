"""Looks for what an earlier send, whose outcome is unknown, left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from channels.slack.answers import Json
from channels.slack.errors import RETRY_SOON, ThreadGone
from channels.slack.limits import Timing
from channels.slack.message_ids import message_id, root_and_ts, thread_of
from channels.slack.mrkdwn import encodable
from channels.slack.transport import ITEM_EVENT, SlackApi
from channels.slack.uploads import Uploads
from core.contracts.addresses import CardContent, FileContent, OutboundItem, ReactionContent, Removal, TextContent
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendRejected, SendUnknown

logger = logging.getLogger(__name__)


class Lookups:
    """Finds items of one app: texts and cards by the metadata of their messages, files by what they are."""

    def __init__(self, api: SlackApi, uploads: Uploads, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._uploads = uploads
        self._clock = clock
        self._timing = timing

    async def find(self, item: OutboundItem) -> str | None:
        """Return the external id of the message that an item became; see `channels.contract.Channel.find`.

        While Slack cannot be asked it is tried again for a while, as "not there" means a second send.
        """
        ends_at = self._clock.monotonic() + self._timing.lookup_patience.total_seconds()
        pause = RETRY_SOON
        while True:
            wait = pause
            try:
                return await self._look(item)
            except SendLimited as error:
                wait = error.retry_after
            except SendUnknown:
                pause *= 2
            except ChannelError as error:
                logger.warning("slack_lookup_refused", extra={"item_id": item.id, "detail": error.detail})
                return None
            if self._clock.monotonic() + wait.total_seconds() > ends_at:
                logger.warning("slack_lookup_given_up", extra={"item_id": item.id})
                return None
            await self._clock.sleep(wait)

    async def _look(self, item: OutboundItem) -> str | None:
        match item.content:
            case TextContent() | CardContent():
                return await self._newest(item, lambda message: _item_of(message) == item.id)
            case FileContent() as content:
                return await self._file(item, content)
            case ReactionContent() | Removal():
                return None

    async def _file(self, item: OutboundItem, content: FileContent) -> str | None:
        """Find a file by Slack's id of it; after a restart by name and size, behind what it answers."""
        file = self._uploads.file_of(item.id)
        if file is not None:
            return await self._uploads.message_of(file, item.address.chat, thread_of(item))
        size = await asyncio.to_thread(_size_of, content.path)
        if size is None or not _answered_ts(item):
            return None
        own = (await self._api.identity()).user
        name = encodable(content.name)
        return await self._newest(item, lambda message: message.get("user") == own and _shows(message, name, size))

    async def _newest(self, item: OutboundItem, is_wanted: Callable[[Json], bool]) -> str | None:
        """Return the newest message where an item belongs, behind what it answers, that is wanted."""
        channel, thread, oldest = item.address.chat, thread_of(item), _answered_ts(item)
        if thread is not None:
            try:
                found = await self._api.replies(channel, thread, oldest, metadata=True)
            except ThreadGone:
                thread = None
        if thread is None:
            found = await self._api.history(channel, oldest, metadata=True)
        ts = next((str(message.get("ts")) for message in reversed(found) if is_wanted(message)), None)
        return None if ts is None else message_id(thread, ts)


def _answered_ts(item: OutboundItem) -> str:
    """Return the ts of what an item answers, as nothing of it can be older; empty where that is not known."""
    try:
        return "" if item.reply_to is None else root_and_ts(item.reply_to)[1]
    except SendRejected:
        return ""


def _item_of(message: Json) -> object:
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("event_type") != ITEM_EVENT:
        return None
    payload = metadata.get("event_payload")
    return payload.get("id") if isinstance(payload, dict) else None


def _shows(message: Json, name: str, size_bytes: int) -> bool:
    files = message.get("files")
    shown = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    return any((file.get("name"), file.get("size")) == (name, size_bytes) for file in shown)


def _size_of(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return None
