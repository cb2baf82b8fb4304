"""Carries out items of the outbox: texts, cards, files, reactions, removals."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, assert_never

from channels.discord.attempts import Attempts, Trace, trace_of
from channels.discord.errors import (
    RETRY_SOON,
    MessageGone,
    OldEditsLimited,
    PlaceGone,
    ReactionGone,
    ThreadArchived,
)
from channels.discord.files import opened, upload_name
from channels.discord.outbound import Payload, caption, new_message, nonce_of, shown, snowflake
from channels.discord.threads import Threads, pace_key
from channels.discord.transport import DiscordApi
from channels.pacing import ChatPacer
from core.contracts.addresses import (
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

_EMOJI_STYLE = "\N{VARIATION SELECTOR-16}"


class Deliveries:
    """Delivers items in the pace of their chats; a chat that has to wait holds no other."""

    def __init__(self, api: DiscordApi, threads: Threads, pacer: ChatPacer, clock: Clock) -> None:
        self._api = api
        self._threads = threads
        self._pacer = pacer
        self._attempts = Attempts(clock)

    async def deliver(self, item: OutboundItem) -> str:
        """Send, edit, react or remove, and return the external id; see `channels.contract.Channel.deliver`.

        A reaction's external id names the message it stands on and is the id of no message.
        """
        chat = pace_key(item.address)
        async with self._pacer.final(chat):
            try:
                return await self._deliver(item)
            except SendLimited as error:
                self._pacer.hold(chat, error.retry_after)
                raise

    async def find(self, item: OutboundItem) -> str | None:
        """Look for what an earlier send of a text, card or file left behind; see `Channel.find`."""
        if item.external_id is not None or not isinstance(item.content, _Message | FileContent):
            return None
        try:
            found = await self._look(item, item.content)
        except ChannelError as error:
            logger.info("discord_item_not_looked_for", extra={"reason": type(error).__name__})
            return None
        if found is None:
            self._attempts.settle_as_absent(nonce_of(item.id))
        return found

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
        looks = shown(content)
        if item.external_id is None:
            return await self._post(item, content, looks)
        try:
            return await self._edit(item, item.external_id, looks)
        except (MessageGone, PlaceGone, ThreadArchived):
            return await self._post(item, content, looks)
        except OldEditsLimited:
            # Shown late is worse than shown below.
            external_id = await self._post(item, content, looks)
            await self._remove_quietly(item)
            return external_id

    async def _edit(self, item: OutboundItem, external_id: str, looks: Payload) -> str:
        message = snowflake(external_id)
        async with _repeatable():
            await self._threads.changing(item.address, message, lambda place: self._api.edit(place, message, looks))
        return external_id

    async def _post(self, item: OutboundItem, content: _Message, looks: Payload) -> str:
        nonce = _nonce(item)

        async def send(place: str) -> str:
            payload = looks | self._new(item, place, nonce=nonce, silent=content.silent)
            external_id = await self._api.send(place, payload)
            if self._attempts.is_open(nonce):
                # It may be the message of an earlier try, which looked otherwise.
                with suppress(MessageGone):
                    await self._api.edit(place, external_id, looks)
            return external_id

        return await self._attempts.post(
            nonce,
            lambda: self._threads.sending(item.address, send),
            lambda: self._look(item, content),
            tried=item.attempts,
        )

    def _new(self, item: OutboundItem, place: str, *, nonce: str, silent: bool) -> Payload:
        in_thread = item.address.thread in {None, place}
        return new_message(item, nonce=nonce, silent=silent, in_thread=in_thread)

    async def _send_file(self, item: OutboundItem, content: FileContent) -> str:
        """Send a file; no message can be made into one, so the one that it replaces is taken away."""
        nonce = _nonce(item)
        under = caption(content)
        async with opened(content) as upload:

            async def send(place: str) -> str:
                upload.content.seek(0)
                payload = under | self._new(item, place, nonce=nonce, silent=content.silent)
                return await self._api.send_files(place, payload, (upload,))

            external_id = await self._attempts.post(
                nonce,
                lambda: self._threads.sending(item.address, send),
                lambda: self._look(item, content),
                tried=item.attempts,
            )
        if item.external_id is not None:
            await self._remove_quietly(item)
        return external_id

    async def _look(self, item: OutboundItem, content: _Message | FileContent) -> str | None:
        """Return the message that a send of the item left; where there is no thread it stands in the parent channel."""
        place = snowflake(item.address.thread or item.address.chat)
        try:
            messages = await self._api.messages(place)
        except PlaceGone:
            place = snowflake(item.address.chat)
            messages = await self._api.messages(place)
        return self._attempts.match(messages, self._trace(item, content, place))

    def _trace(self, item: OutboundItem, content: _Message | FileContent, place: str) -> Trace:
        payload = self._new(item, place, nonce=_nonce(item), silent=False)
        if isinstance(content, FileContent):
            files = (upload_name(content.name),)
            return trace_of(payload | caption(content), author=item.address.account, files=files)
        return trace_of(payload | shown(content), author=item.address.account)

    async def _react(self, item: OutboundItem, emoji: str) -> str:
        if item.reply_to is None:
            raise SendRejected("a reaction needs a message to stand on")
        message = snowflake(item.reply_to)
        async with _repeatable():
            await self._threads.changing(item.address, message, lambda place: self._set_reaction(place, message, emoji))
        return f"reaction/{message}"

    async def _set_reaction(self, place: str, message: str, emoji: str) -> None:
        """Make `emoji` the bot's one reaction; the others are taken back when it is there."""
        before = _own_reactions(await self._api.message(place, message))
        kept = await self._add_reaction(place, message, emoji, before) if emoji else ""
        for other in before:
            if other != kept:
                with suppress(ReactionGone):
                    await self._api.unreact(place, message, other)

    async def _add_reaction(self, place: str, message: str, emoji: str, before: tuple[str, ...]) -> str:
        """React and return the emoji as Discord writes it: with a mark for its style, or without."""
        plain = emoji.replace(_EMOJI_STYLE, "")
        for known in before:
            if known.replace(_EMOJI_STYLE, "") == plain:
                return known
        try:
            await self._api.react(place, message, emoji)
        except ReactionGone:
            if plain.isascii():
                raise
            other = plain if emoji != plain else f"{plain}{_EMOJI_STYLE}"
            await self._api.react(place, message, other)
            return other
        return emoji

    async def _remove(self, item: OutboundItem) -> str:
        if item.external_id is None:
            raise SendRejected("a removal needs a message to take away")
        message = snowflake(item.external_id)
        with suppress(MessageGone, PlaceGone):  # it is taken away already
            async with _repeatable():
                await self._threads.changing(item.address, message, lambda place: self._api.delete(place, message))
        return item.external_id

    async def _remove_quietly(self, item: OutboundItem) -> None:
        try:
            await self._remove(item)
        except ChannelError as error:
            # What replaces it is there; trying its item again would send it twice.
            logger.info("discord_message_not_replaced", extra={"reason": type(error).__name__})


def _nonce(item: OutboundItem) -> str:
    """Return the nonce of a new message; one that stands for a message that is gone is another one."""
    return nonce_of(item.id if item.external_id is None else f"{item.id}/{item.external_id}")


def _own_reactions(message: dict[str, Any]) -> tuple[str, ...]:
    """Return the bot's reactions, each as the API takes it."""
    own = []
    for reaction in message.get("reactions") or ():
        emoji = reaction.get("emoji") or {}
        if reaction.get("me"):
            own.append(f"{emoji.get('name')}:{emoji['id']}" if emoji.get("id") else str(emoji.get("name")))
    return tuple(own)


@asynccontextmanager
async def _repeatable() -> AsyncIterator[None]:
    """Let a call whose outcome is unknown be tried again: made twice it has the effect of one."""
    try:
        yield
    except SendUnknown as error:
        raise SendLimited(error.detail, retry_after=RETRY_SOON) from error
