"""Where the messages of an address stand: in its thread, which is opened when it is first needed."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from channels.chunking import measure, safe_end
from channels.contract import TextUnit
from channels.discord.errors import RETRY_SOON, MessageGone, PlaceGone, ThreadArchived, ThreadExists
from channels.discord.limits import THREAD_NAME_LIMIT_CHARS
from channels.discord.outbound import snowflake
from channels.discord.rendering import encodable
from channels.discord.transport import DiscordApi
from core.contracts.addresses import Address
from core.contracts.errors import SendLimited, SendRejected, SendUnknown

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_REMEMBERED = 1_000
_NAMELESS = "Conversation"
_ELLIPSIS = "…"
_USER = re.compile(r"<@!?(\d+)>")
_ROLE_OR_CHANNEL = re.compile(r"<(?:@&|#)\d+>")
_CUSTOM_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def pace_key(address: Address) -> str:
    """Return what shares one pace: a thread, or a channel without one."""
    return address.chat if address.thread is None else address.thread


class Threads:
    """Finds the channel of each call, as Discord has a channel of its own for each thread.

    A thread that is not there yet is made from the message whose id it has, the one that the address
    was opened by. Where that cannot be (the message is gone, a permission is missing) its messages
    stand in the parent channel.
    """

    def __init__(self, api: DiscordApi) -> None:
        self._api = api
        self._without: OrderedDict[str, None] = OrderedDict()

    async def sending(self, address: Address, send: Callable[[str], Awaitable[_T]]) -> _T:
        """Call `send` with the channel where a new message belongs; an archived thread opens by that.

        It may be called again, with another channel, when Discord refused the first for being none.

        Raises:
            ChannelError: Those of `send`; `SendLimited` where it is open whether the thread was made.
        """
        chat = snowflake(address.chat)
        if address.thread is None or address.thread in self._without:
            return await send(chat)
        thread = snowflake(address.thread)
        try:
            return await send(thread)
        except PlaceGone:
            pass
        if await self._is_opened(chat, thread, account=address.account):
            try:
                return await send(thread)
            except PlaceGone:
                self._do_without(thread, "deleted")
        return await send(chat)

    async def changing(self, address: Address, message: str, change: Callable[[str], Awaitable[_T]]) -> _T:
        """Call `change` with the channel of a message that is there, which is opened if it is archived.

        A thread's first message stands in the parent, that of a forum's post inside; and so on with
        the other of the two where it is not.

        Raises:
            ChannelError: That of the place where the message should be.
        """
        chat = snowflake(address.chat)
        if address.thread is None:
            return await change(chat)
        thread = snowflake(address.thread)
        likely, other = (chat, thread) if snowflake(message) == thread else (thread, chat)
        try:
            return await self._opened(likely, change)
        except (MessageGone, PlaceGone) as error:
            try:
                return await self._opened(other, change)
            except SendRejected:
                raise error from None

    async def type_in(self, address: Address) -> None:
        """Show that the bot types, in the parent as long as there is no thread."""
        if address.thread is not None and address.thread not in self._without:
            with suppress(PlaceGone):
                await self._api.type_in(snowflake(address.thread))
                return
        await self._api.type_in(snowflake(address.chat))

    async def _opened(self, place: str, change: Callable[[str], Awaitable[_T]]) -> _T:
        try:
            return await change(place)
        except ThreadArchived as archived:
            try:
                await self._api.unarchive(place)
            except SendRejected:
                raise archived from None
        return await change(place)

    async def _is_opened(self, chat: str, thread: str, *, account: str) -> bool:
        """Make a thread from its message; whether there is one now."""
        try:
            first = await self._api.message(chat, thread)
            await self._api.start_thread(chat, thread, thread_name(first, account))
        except ThreadExists:
            return True
        except SendUnknown as error:
            # Made twice it is one thread.
            raise SendLimited(error.detail, retry_after=RETRY_SOON) from error
        except SendRejected as error:
            self._do_without(thread, type(error).__name__)
            return False
        return True

    def _do_without(self, thread: str, reason: str) -> None:
        logger.warning("discord_thread_not_opened", extra={"thread_id": thread, "reason": reason})
        self._without[thread] = None
        if len(self._without) > _REMEMBERED:
            self._without.popitem(last=False)


def thread_name(message: dict[str, Any], account: str) -> str:
    """Return what a thread is called that begins with a message: how it begins, without the bot's own mention."""
    names = {
        str(user.get("id")): f"@{user.get('global_name') or user.get('username') or 'somebody'}"
        for user in message.get("mentions") or ()
        if isinstance(user, dict)
    } | {account: ""}
    text = _USER.sub(lambda found: names.get(found[1], ""), str(message.get("content") or ""))
    text = _CUSTOM_EMOJI.sub(r"\1", _ROLE_OR_CHANNEL.sub("", text))
    name = " ".join(encodable(text).split()) or _NAMELESS
    if measure(name, TextUnit.UTF16) <= THREAD_NAME_LIMIT_CHARS:
        return name
    return name[: safe_end(name, THREAD_NAME_LIMIT_CHARS - len(_ELLIPSIS), TextUnit.UTF16)].rstrip() + _ELLIPSIS
