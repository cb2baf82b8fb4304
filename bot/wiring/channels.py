"""The channels of a host: those of this machine, and the configured platforms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from bot.config.model import Settings, TelegramSettings
from bot.conversations.commands import COMMANDS, menus
from bot.conversations.sessions.protocol import CHANNEL
from bot.conversations.turn_opening import HEADLESS
from bot.wiring.parts import HostChannels
from channels.contract import Diagnosable
from channels.feed import FeedChannel
from core.contracts.clock import Clock
from core.contracts.secrets import Redactor

if TYPE_CHECKING:
    from channels.telegram.adapter import TelegramChannel


@asynccontextmanager
async def open_channels(
    settings: Settings, clock: Clock, redactor: Redactor, *, platforms: bool
) -> AsyncIterator[HostChannels]:
    """Give the local channels and, where wanted, the configured platforms; close them afterwards."""
    async with AsyncExitStack() as stack:
        telegram = settings.channels.telegram
        connected = []
        webhooks = {}
        diagnosable: dict[str, Diagnosable] = {}
        if platforms and telegram is not None:
            channel = await stack.enter_async_context(_telegram(telegram, settings, clock, redactor))
            connected.append(channel)
            diagnosable[channel.name] = channel
            if channel.webhook is not None:
                webhooks[f"{telegram.webhook_listen.host}:{telegram.webhook_listen.port}"] = channel.webhook
        yield HostChannels(
            web=FeedChannel("web", clock),
            terminal=FeedChannel("terminal", clock),
            headless=FeedChannel(HEADLESS, clock),
            session=FeedChannel(CHANNEL, clock),
            platforms=tuple(connected),
            webhooks=webhooks,
            diagnosable=diagnosable,
        )


@asynccontextmanager
async def open_diagnosable(
    settings: Settings, clock: Clock, redactor: Redactor, *, running: HostChannels
) -> AsyncIterator[Mapping[str, Diagnosable]]:
    """Give the configured platforms to be proven: those that run, or opened for the length of the block."""
    telegram = settings.channels.telegram
    if running.platforms or telegram is None:
        yield running.diagnosable
        return
    async with _telegram(telegram, settings, clock, redactor) as channel:
        yield {channel.name: channel}


def _telegram(telegram: TelegramSettings, settings: Settings, clock: Clock, redactor: Redactor) -> TelegramChannel:
    # Half a second that nobody without a Telegram channel should pay.
    from channels.telegram.adapter import TelegramChannel, WebhookSettings

    webhook = None
    if telegram.webhook_url and telegram.webhook_secret is not None:
        webhook = WebhookSettings(url=telegram.webhook_url, secret=telegram.webhook_secret.reveal())
    return TelegramChannel(
        token=telegram.token.reveal(),
        api_base=telegram.api_base,
        clock=clock,
        mask=redactor.mask,
        menus=menus(COMMANDS.values(), owners=settings.access.owners),
        webhook=webhook,
    )
