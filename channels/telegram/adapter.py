"""The Telegram channel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from channels.contract import Capabilities, Channel, Probe, Reply, SentCallback, Sink, TextUnit
from channels.pacing import ChatPacer
from channels.telegram.errors import RETRY_SOON, MessageGone, NotModified, ThreadGone
from channels.telegram.health import PollHealth
from channels.telegram.limits import CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16, Timing
from channels.telegram.outbound import preview, render, thread_id
from channels.telegram.polling import Poller
from channels.telegram.presses import PressAnswers
from channels.telegram.preview import Preview
from channels.telegram.transport import BotApi
from core.contracts.addresses import Address, OutboundItem, PressBody
from core.contracts.clock import Clock
from core.contracts.errors import SendLimited, SendUnknown


class TelegramChannel:
    """One bot account. Enter it to use it; leaving closes its connections.

    Sending works without `run`, so that a host which has stopped listening can still deliver.
    """

    def __init__(
        self,
        *,
        token: str,
        api_base: str,
        clock: Clock,
        mask: Callable[[str], str],
        name: str = "telegram",
        timing: Timing | None = None,
    ) -> None:
        """Take `mask`, which hides secret values in the details of errors; does no I/O."""
        self._name = name
        self._clock = clock
        self._timing = timing or Timing()
        self._api = BotApi(token, api_base, mask)
        self._pacer = ChatPacer(clock, self._timing.interval)
        self._health = PollHealth(clock)
        self._presses = PressAnswers(self._api, clock, self._timing)
        self._capabilities = Capabilities(
            text_limit=TEXT_LIMIT_UTF16,
            text_unit=TextUnit.UTF16,
            edits=True,
            buttons=True,
            edit_interval=self._timing.private_interval,
            code_limit=CARD_CODE_LIMIT_UTF16,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._api.aclose()

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, sink: Sink) -> None:
        poller = Poller(
            self._api,
            name=self._name,
            clock=self._clock,
            timing=self._timing,
            health=self._health,
            presses=self._presses,
        )
        async with self._presses:
            await poller.run(sink)

    def reply(self, address: Address, on_sent: SentCallback) -> AbstractAsyncContextManager[Reply]:
        return Preview(
            _Port(api=self._api, address=address),
            chat=address.chat,
            pacer=self._pacer,
            clock=self._clock,
            timing=self._timing,
            on_sent=on_sent,
        )

    async def deliver(self, item: OutboundItem) -> str:
        async with self._pacer.final(item.address.chat):
            try:
                return await self._send_or_edit(item)
            except SendLimited as error:
                self._pacer.hold(item.address.chat, error.retry_after)
                raise

    async def _send_or_edit(self, item: OutboundItem) -> str:
        if item.external_id is None:
            return await self._send(item)
        try:
            return await self._api.show(render(item))
        except NotModified:
            return item.external_id
        except MessageGone:
            return await self._send(replace(item, external_id=None))
        except SendUnknown as error:
            # An edit that is made twice is made once: its outcome need not be known.
            raise SendLimited(error.detail, retry_after=RETRY_SOON) from error

    async def _send(self, item: OutboundItem) -> str:
        try:
            return await self._api.show(render(item))
        except ThreadGone:
            # The topic was deleted; its chat has the same people.
            return await self._api.show(render(replace(item, address=replace(item.address, thread=None))))

    async def find(self, item: OutboundItem) -> str | None:
        """Return None: a bot cannot read a chat, so what was lost cannot be looked up."""
        del item
        return None

    async def acknowledge(self, press: PressBody, text: str) -> None:
        await self._presses.answer(press, text)

    async def probe(self) -> Probe:
        return self._health.probe()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Port:
    """One address, as a preview uses it."""

    api: BotApi
    address: Address

    async def show(self, text: str, external_id: str | None) -> str:
        call = preview(self.address, text, external_id)
        try:
            return await self.api.show(call)
        except NotModified:
            return str(call.message_id)

    async def typing(self) -> None:
        await self.api.typing(int(self.address.chat), thread_id(self.address))


if TYPE_CHECKING:
    _conforms: type[Channel] = TelegramChannel
