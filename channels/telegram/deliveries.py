"""Carries out items of the outbox: texts, cards, files, reactions, removals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias, assert_never

from channels.pacing import ChatPacer
from channels.telegram.errors import (
    RETRY_SOON,
    EntitiesRefused,
    MediaRefused,
    MessageGone,
    NotModified,
    ThreadGone,
    TooOldToDelete,
)
from channels.telegram.files import FileCall, FileKind, clipped, opened
from channels.telegram.limits import Timing
from channels.telegram.outbound import MessageCall, render_message
from channels.telegram.places import new_message_options, number, thread_id
from channels.telegram.transport import BotApi
from core.contracts.addresses import (
    Address,
    CardContent,
    FileContent,
    OutboundItem,
    ReactionContent,
    Removal,
    TextContent,
)
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendRejected, SendUnknown

logger = logging.getLogger(__name__)

_Message: TypeAlias = TextContent | CardContent


class Deliveries:
    """Delivers items in the pace of their chats; a chat that has to wait holds no other."""

    def __init__(self, api: BotApi, pacer: ChatPacer, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._pacer = pacer
        self._clock = clock
        self._timing = timing

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
        if item.external_id is None:
            return await self._send(item, content)
        try:
            async with _repeatable():
                return await show(self._api, render_message(item, content))
        except NotModified:
            return item.external_id
        except MessageGone:
            return await self._send(replace(item, external_id=None), content)

    async def _send(self, item: OutboundItem, content: _Message) -> str:
        try:
            return await show(self._api, render_message(item, content))
        except ThreadGone:
            # The topic was deleted; its chat has the same people.
            chat = replace(item.address, thread=None)
            return await show(self._api, render_message(replace(item, address=chat), content))

    async def _send_file(self, item: OutboundItem, content: FileContent) -> str:
        """Send a file; no message can be made into one, so the one that it replaces is taken away."""
        async with opened(content) as (file, kind), self._uploading(item.address):
            call = FileCall(
                chat_id=number(item.address.chat),
                kind=kind,
                name=content.name,
                content=file,
                caption=clipped(content.caption),
                options=new_message_options(item, silent=content.silent),
            )
            external_id = await self._upload(call)
        if item.external_id is not None:
            await self._remove_quietly(item)
        return external_id

    async def _upload(self, call: FileCall) -> str:
        """Send a file as what it can be shown as, where it can be shown."""
        try:
            return await self._api.send_file(call)
        except MediaRefused:
            if call.kind is FileKind.DOCUMENT:
                raise
            return await self._upload(replace(call, kind=FileKind.DOCUMENT))
        except ThreadGone:
            elsewhere = {name: value for name, value in call.options.items() if name != "message_thread_id"}
            if elsewhere == call.options:
                raise
            return await self._upload(replace(call, options=elsewhere))

    @asynccontextmanager
    async def _uploading(self, address: Address) -> AsyncIterator[None]:
        """Show in the chat that a file is on its way, for as long as the block takes."""
        task = asyncio.create_task(self._show_uploading(address))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _show_uploading(self, address: Address) -> None:
        await self._clock.sleep(self._timing.preview_delay)
        while True:
            if not self._pacer.is_held(address.chat):
                try:
                    await self._api.act(number(address.chat), thread_id(address), "upload_document")
                except SendLimited as error:
                    self._pacer.hold(address.chat, error.retry_after)
                except ChannelError as error:
                    logger.debug("telegram_upload_not_announced", extra={"reason": type(error).__name__})
            await self._clock.sleep(self._timing.typing_interval)

    async def _react(self, item: OutboundItem, emoji: str) -> str:
        if item.reply_to is None:
            raise SendRejected("a reaction needs a message to stand on")
        async with _repeatable():
            await self._api.react(number(item.address.chat), number(item.reply_to), emoji)
        return f"reaction/{item.reply_to}"

    async def _remove(self, item: OutboundItem) -> str:
        if item.external_id is None:
            raise SendRejected("a removal needs a message to take away")
        try:
            async with _repeatable():
                await self._api.delete(number(item.address.chat), number(item.external_id))
        except MessageGone:
            pass  # it is taken away already
        except TooOldToDelete:
            logger.info("telegram_message_stays", extra={"chat": item.address.chat, "message_id": item.external_id})
        return item.external_id

    async def _remove_quietly(self, item: OutboundItem) -> None:
        try:
            await self._remove(item)
        except ChannelError as error:
            # The file is there; trying its item again would send it twice.
            logger.info("telegram_message_not_replaced", extra={"reason": type(error).__name__})


async def show(api: BotApi, call: MessageCall) -> str:
    """Send or edit; text whose formatting is refused is shown as it is."""
    try:
        return await api.show(call)
    except EntitiesRefused as error:
        logger.warning("telegram_formatting_refused", extra={"detail": error.detail})
        return await api.show(call.plain)


@asynccontextmanager
async def _repeatable() -> AsyncIterator[None]:
    """Let a call whose outcome is unknown be tried again: made twice it has the effect of one."""
    try:
        yield
    except SendUnknown as error:
        raise SendLimited(error.detail, retry_after=RETRY_SOON) from error
