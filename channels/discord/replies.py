"""Where a preview is drawn: one address."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from channels.contract import SentCallback
from channels.discord.limits import NONCE_LIMIT_CHARS, Timing
from channels.discord.outbound import new_message, preview, snowflake
from channels.discord.preview import Preview, PreviewPort
from channels.discord.threads import Threads, pace_key
from channels.discord.transport import DiscordApi
from channels.pacing import ChatPacer
from core.contracts.addresses import Address, OutboundItem, TextContent
from core.contracts.clock import Clock


class Replies:
    """Opens previews, in the one pace of their chats."""

    def __init__(self, api: DiscordApi, threads: Threads, pacer: ChatPacer, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._threads = threads
        self._pacer = pacer
        self._clock = clock
        self._timing = timing

    def open(self, address: Address, on_sent: SentCallback) -> Preview:
        """Return the preview of one answer, to be entered; see `channels.contract.Channel.reply`."""
        return Preview(
            _Port(self._api, self._threads, address),
            chat=pace_key(address),
            pacer=self._pacer,
            clock=self._clock,
            timing=self._timing,
            on_sent=on_sent,
        )


class _Port:
    """One address, as a preview uses it."""

    def __init__(self, api: DiscordApi, threads: Threads, address: Address) -> None:
        self._api = api
        self._threads = threads
        self._address = address
        self._nonce = secrets.token_hex(NONCE_LIMIT_CHARS // 2)

    async def show(self, text: str, external_id: str | None) -> str:
        looks = preview(text)
        if external_id is None:
            return await self._threads.sending(self._address, lambda place: self._post(place, looks))
        message = snowflake(external_id)
        await self._threads.changing(self._address, message, lambda place: self._api.edit(place, message, looks))
        return external_id

    async def _post(self, place: str, looks: dict[str, object]) -> str:
        item = OutboundItem(id="", address=self._address, content=TextContent(markdown=""))
        in_thread = self._address.thread in {None, place}
        payload = looks | new_message(item, nonce=self._nonce, silent=False, in_thread=in_thread)
        return await self._api.send(place, payload)

    async def typing(self) -> None:
        await self._threads.type_in(self._address)


if TYPE_CHECKING:
    _conforms: type[PreviewPort] = _Port
