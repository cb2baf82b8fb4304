"""The channels of a host: those of this machine, and the configured platforms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bot.config.model import DiscordSettings, Settings, SlackSettings, TelegramSettings
from bot.config.values import ListenAddress
from bot.conversations.commands import COMMANDS, menus
from bot.conversations.sessions.protocol import CHANNEL
from bot.conversations.turn_opening import HEADLESS
from bot.wiring.parts import HostChannels
from channels.contract import Asgi, Diagnosable, HomeScreen
from channels.feed import FeedChannel
from core.contracts.clock import Clock
from core.contracts.secrets import Redactor

if TYPE_CHECKING:
    from channels.discord.adapter import DiscordChannel
    from channels.slack.adapter import SlackChannel
    from channels.telegram.adapter import TelegramChannel

    Platform: TypeAlias = TelegramChannel | SlackChannel | DiscordChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configured:
    """A platform's channel, not open yet; what its platform calls, and where; its home screens."""

    channel: Platform
    listen: ListenAddress | None = None
    webhook: Asgi | None = None
    screen: HomeScreen | None = None


@asynccontextmanager
async def open_channels(
    settings: Settings, clock: Clock, redactor: Redactor, *, platforms: bool
) -> AsyncIterator[HostChannels]:
    """Give the local channels and, where wanted, the configured platforms; close them afterwards."""
    async with AsyncExitStack() as stack:
        connected = []
        webhooks: dict[str, Asgi] = {}
        screens: dict[str, HomeScreen] = {}
        for platform in _platforms(settings, clock, redactor) if platforms else ():
            channel: Platform = await stack.enter_async_context(platform.channel)
            connected.append(channel)
            if platform.screen is not None:
                screens[channel.name] = platform.screen
            if platform.webhook is not None and platform.listen is not None:
                webhooks[f"{platform.listen.host}:{platform.listen.port}"] = platform.webhook
        yield HostChannels(
            web=FeedChannel("web", clock),
            terminal=FeedChannel("terminal", clock),
            headless=FeedChannel(HEADLESS, clock),
            session=FeedChannel(CHANNEL, clock),
            platforms=tuple(connected),
            webhooks=webhooks,
            diagnosable={channel.name: channel for channel in connected},
            screens=screens,
        )


@asynccontextmanager
async def open_diagnosable(
    settings: Settings, clock: Clock, redactor: Redactor, *, running: HostChannels
) -> AsyncIterator[Mapping[str, Diagnosable]]:
    """Give the configured platforms to be proven: those that run, or opened for the length of the block."""
    if running.platforms:
        yield running.diagnosable
        return
    async with AsyncExitStack() as stack:
        opened: list[Platform] = [
            await stack.enter_async_context(platform.channel) for platform in _platforms(settings, clock, redactor)
        ]
        yield {channel.name: channel for channel in opened}


def _platforms(settings: Settings, clock: Clock, redactor: Redactor) -> Iterator[_Configured]:
    """Yield the configured platforms; each SDK is imported here, as nobody without its channel should pay for it."""
    channels = settings.channels
    if channels.telegram is not None:
        yield _telegram(channels.telegram, settings, clock, redactor)
    if channels.slack is not None:
        yield _slack(channels.slack, clock, redactor)
    if channels.discord is not None:
        yield _discord(channels.discord, settings, clock, redactor)


def _telegram(telegram: TelegramSettings, settings: Settings, clock: Clock, redactor: Redactor) -> _Configured:
    from channels.telegram.adapter import TelegramChannel, WebhookSettings

    webhook = None
    if telegram.webhook_url and telegram.webhook_secret is not None:
        webhook = WebhookSettings(url=telegram.webhook_url, secret=telegram.webhook_secret.reveal())
    channel = TelegramChannel(
        token=telegram.token.reveal(),
        api_base=telegram.api_base,
        clock=clock,
        mask=redactor.mask,
        menus=menus(COMMANDS.values(), owners=settings.access.owners),
        webhook=webhook,
    )
    return _Configured(channel=channel, webhook=channel.webhook, listen=telegram.webhook_listen)


def _slack(slack: SlackSettings, clock: Clock, redactor: Redactor) -> _Configured:
    from channels.slack.adapter import SlackChannel

    channel = SlackChannel(
        bot_token=slack.bot_token.reveal(),
        app_token=None if slack.app_token is None else slack.app_token.reveal(),
        signing_secret=None if slack.signing_secret is None else slack.signing_secret.reveal(),
        api_base=slack.api_base,
        clock=clock,
        mask=redactor.mask,
        direct=slack.direct.value,
        channels=slack.rooms.value,
        suggested_prompts=slack.suggested_prompts,
    )
    return _Configured(channel=channel, webhook=channel.webhook, listen=slack.events_listen, screen=channel)


def _discord(discord: DiscordSettings, settings: Settings, clock: Clock, redactor: Redactor) -> _Configured:
    from channels.discord.adapter import DiscordChannel

    channel = DiscordChannel(
        token=discord.token.reveal(),
        api_base=discord.api_base,
        gateway_url=discord.gateway_url,
        clock=clock,
        mask=redactor.mask,
        menus=menus(COMMANDS.values(), owners=settings.access.owners),
        channels=discord.rooms.value,
    )
    return _Configured(channel=channel)
