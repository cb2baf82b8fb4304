"""Carries out items of the outbox: texts, cards, files, reactions, removals."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias, assert_never

from channels.pacing import ChatPacer
from channels.slack.errors import RETRY_SOON, MessageGone, NotDeletable, NotEditable, StillStreaming, ThreadGone
from channels.slack.message_ids import message_id, root_and_ts, unseen_file
from channels.slack.outbound import MessageCall, render_message
from channels.slack.reactions import Reactions
from channels.slack.streams import stop_stream
from channels.slack.transport import SlackApi
from channels.slack.uploads import Uploads
from core.contracts.addresses import CardContent, FileContent, OutboundItem, ReactionContent, Removal, TextContent
from core.contracts.errors import ChannelError, SendLimited, SendRejected, SendUnknown

logger = logging.getLogger(__name__)

_Message: TypeAlias = TextContent | CardContent


class Deliveries:
    """Delivers items in the pace of their channels; one that has to wait holds no other.

    Slack has no message without a notification, so `silent` changes nothing here.
    """

    def __init__(self, api: SlackApi, pacer: ChatPacer, uploads: Uploads) -> None:
        self._api = api
        self._pacer = pacer
        self._uploads = uploads
        self._reactions = Reactions(api)

    async def deliver(self, item: OutboundItem) -> str:
        """Send, edit, react or remove, and return the external id; see `channels.contract.Channel.deliver`.

        A reaction's external id names the message it stands on and is the id of no message.
        """
        async with self._pacer.final(item.address.chat):
            try:
                return await self._deliver(item)
            except SendLimited as error:
                self._pacer.hold(item.address.chat, error.retry_after)
                raise

    async def _deliver(self, item: OutboundItem) -> str:
        match item.content:
            case TextContent() | CardContent() as content:
                return await self._show(item, content)
            case FileContent() as content:
                return await self._send_file(item, content)
            case ReactionContent(emoji=emoji):
                return await self._react(item, emoji)
            case Removal():
                return await self._remove(item)
            case _:
                assert_never(item.content)

    async def _show(self, item: OutboundItem, content: _Message) -> str:
        call = render_message(item, content)
        if item.external_id is None:
            return await self._send(call)
        try:
            async with _repeatable():
                await self._update(call)
        except MessageGone:
            return await self._send_anew(item, content)
        except NotEditable as error:
            logger.info("slack_message_not_editable", extra={"chat": item.address.chat, "detail": error.detail})
            external_id = await self._send_anew(item, content)
            await self._remove_quietly(item)
            return external_id
        return item.external_id

    async def _update(self, call: MessageCall) -> None:
        """Change a message; one that is being streamed, by this process or by one that ended, is streamed no more."""
        try:
            await self._api.show(call)
        except StillStreaming:
            await stop_stream(self._api, call.channel, call.ts or "")
            await self._api.show(call)

    async def _send_anew(self, item: OutboundItem, content: _Message) -> str:
        """Send what could not be an edit, where the message stands or stood."""
        beside = item.reply_to or item.external_id
        return await self._send(render_message(replace(item, external_id=None, reply_to=beside), content))

    async def _send(self, call: MessageCall) -> str:
        try:
            return message_id(call.thread, await self._api.show(call))
        except ThreadGone:
            # The thread's root is gone; its channel has the same people.
            return message_id(None, await self._api.show(replace(call, thread=None)))

    async def _send_file(self, item: OutboundItem, content: FileContent) -> str:
        """Send a file; no message can be made into one, so the one that it replaces is taken away."""
        external_id = await self._uploads.send(item, content)
        if item.external_id is not None:
            await self._remove_quietly(item)
        return external_id

    async def _react(self, item: OutboundItem, emoji: str) -> str:
        if item.reply_to is None:
            raise SendRejected("a reaction needs a message to stand on")
        async with _repeatable():
            await self._reactions.put(item.address.chat, item.reply_to, emoji)
        return f"reaction/{item.reply_to}"

    async def _remove(self, item: OutboundItem) -> str:
        if item.external_id is None:
            raise SendRejected("a removal needs a message to take away")
        channel, external_id = item.address.chat, item.external_id
        try:
            async with _repeatable():
                if file := unseen_file(external_id):
                    shown = await self._uploads.message_of(file, channel, item.address.thread)
                    if shown is None:
                        raise SendRejected("it is not known which message shows the file")
                    external_id = shown
                await self._api.delete(channel, root_and_ts(external_id)[1])
        except MessageGone:
            pass  # it is taken away already
        except NotDeletable:
            logger.info("slack_message_stays", extra={"chat": channel, "message_id": external_id})
        return item.external_id

    async def _remove_quietly(self, item: OutboundItem) -> None:
        try:
            await self._remove(item)
        except ChannelError as error:
            # What takes its place is there; trying its item again would send it twice.
            logger.info("slack_message_not_replaced", extra={"reason": type(error).__name__})


@asynccontextmanager
async def _repeatable() -> AsyncIterator[None]:
    """Let a call whose outcome is unknown be tried again: made twice it has the effect of one."""
    try:
        yield
    except SendUnknown as error:
        raise SendLimited(error.detail, retry_after=RETRY_SOON) from error
