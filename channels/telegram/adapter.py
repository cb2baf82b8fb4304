"""The Telegram channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from channels.contract import (
    Asgi,
    Capabilities,
    Channel,
    CommandMenu,
    Diagnosable,
    Finding,
    Form,
    Probe,
    Reply,
    SentCallback,
    Sink,
    TextUnit,
    Webhook,
)
from channels.pacing import ChatPacer
from channels.telegram.administrators import Administrators
from channels.telegram.deliveries import Deliveries, show
from channels.telegram.diagnosis import Diagnosis
from channels.telegram.downloads import Downloads
from channels.telegram.errors import NotInChat, NotModified
from channels.telegram.health import PollHealth, WebhookHealth
from channels.telegram.limits import CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16, Timing
from channels.telegram.menu import MenuPublisher
from channels.telegram.outbound import preview
from channels.telegram.places import number, thread_id
from channels.telegram.polling import Poller
from channels.telegram.presses import PressAnswers
from channels.telegram.preview import Preview
from channels.telegram.transport import BotApi
from channels.telegram.webhook import WebhookIntake
from core.contracts.addresses import Address, Attachment, CommandBody, OutboundItem, PressBody
from core.contracts.clock import Clock
from core.contracts.errors import ChatMoved, SendRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """The public address that Telegram calls, and the secret by which it proves itself."""

    url: str
    secret: str = field(repr=False)


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
        menus: tuple[CommandMenu, ...] = (),
        webhook: WebhookSettings | None = None,
    ) -> None:
        """Take `mask`, which hides secret values in the details of errors; does no I/O.

        The `menus` are offered once `run` runs. Without a `webhook` updates are fetched.
        """
        self._name = name
        self._clock = clock
        self._timing = timing or Timing()
        self._api = BotApi(token, api_base, mask, self._timing)
        self._pacer = ChatPacer(clock, self._timing.interval)
        self._presses = PressAnswers(self._api, clock, self._timing)
        self._administrators = Administrators(self._api, channel=name, clock=clock, timing=self._timing)
        self._health: PollHealth | WebhookHealth
        self._receiver: Poller | WebhookIntake
        self._receiver, self._health = self._poller() if webhook is None else self._webhook_intake(webhook)
        self._deliveries = Deliveries(self._api, self._pacer, clock, self._timing)
        self._downloads = Downloads(self._api, clock, self._timing)
        self._diagnosis = Diagnosis(
            self._api, clock=clock, timing=self._timing, webhook_url=webhook.url if webhook else ""
        )
        self._menus = menus
        self._is_running = False
        self._capabilities = Capabilities(
            text_limit=TEXT_LIMIT_UTF16,
            text_unit=TextUnit.UTF16,
            edits=True,
            buttons=True,
            edit_interval=self._timing.private_interval,
            code_limit=CARD_CODE_LIMIT_UTF16,
            files=True,
            reactions=True,
            removals=True,
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

    @property
    def webhook(self) -> Asgi | None:
        return self._receiver if isinstance(self._receiver, WebhookIntake) else None

    async def run(self, sink: Sink) -> None:
        async with self._presses, self._administrators, self._offering_menus():
            await self._receiver.run(sink)

    def _poller(self) -> tuple[Poller, PollHealth]:
        health = PollHealth(self._clock)
        poller = Poller(
            self._api,
            name=self._name,
            clock=self._clock,
            timing=self._timing,
            health=health,
            presses=self._presses,
            administrators=self._administrators,
        )
        return poller, health

    def _webhook_intake(self, settings: WebhookSettings) -> tuple[WebhookIntake, WebhookHealth]:
        health = WebhookHealth(self._clock)
        intake = WebhookIntake(
            self._api,
            url=settings.url,
            secret=settings.secret,
            name=self._name,
            clock=self._clock,
            health=health,
            presses=self._presses,
            administrators=self._administrators,
        )
        return intake, health

    @asynccontextmanager
    async def _offering_menus(self) -> AsyncIterator[None]:
        """See to the menus beside the block; they never hold up what people write."""
        publisher = MenuPublisher(self._api, self._menus, channel=self._name, clock=self._clock, timing=self._timing)
        task = asyncio.create_task(publisher.publish())
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()

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
        return await self._deliveries.deliver(item)

    async def find(self, item: OutboundItem) -> str | None:
        """Return None: a bot cannot read a chat, so what was lost cannot be looked up."""
        del item
        return None

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        return await self._downloads.download(attachment, into, limit_bytes=limit_bytes)

    async def leave(self, address: Address) -> None:
        try:
            await self._api.leave(number(address.chat))
        except NotInChat:
            return
        except ChatMoved as moved:
            await self.leave(replace(address, chat=moved.chat))

    async def acknowledge(self, asked: PressBody | CommandBody, text: str) -> None:
        if isinstance(asked, PressBody):
            await self._presses.answer(asked, text)

    async def open_form(self, press: PressBody, form: Form) -> None:
        del press
        raise SendRejected(f"{form.title}: Telegram has no forms")

    async def probe(self) -> Probe:
        return self._health.probe()

    async def diagnose(self) -> tuple[Finding, ...]:
        return await self._diagnosis.findings(self._health.probe() if self._is_running else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Port:
    """One address, as a preview uses it."""

    api: BotApi
    address: Address

    async def show(self, text: str, external_id: str | None) -> str:
        call = preview(self.address, text, external_id)
        try:
            return await show(self.api, call)
        except NotModified:
            return str(call.message_id)

    async def typing(self) -> None:
        await self.api.act(number(self.address.chat), thread_id(self.address), "typing")


if TYPE_CHECKING:
    _conforms: type[Channel] = TelegramChannel
    _can_be_diagnosed: type[Diagnosable] = TelegramChannel
    _can_be_called: type[Webhook] = TelegramChannel
