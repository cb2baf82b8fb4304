"""The fake platforms as pytest fixtures: `-p tests.platforms.plugin`, or `pytest_plugins` in a test module.

    async def test_it_answers(fake_slack):
        client = AsyncWebClient(token=fake_slack.token, base_url=fake_slack.api_base)

Each fixture is a server that listens on loopback and forgets everything after the test. Their time
is `platform_clock`, the machine's own unless a test module has a fixture of that name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from core.contracts.clock import Clock, SystemClock

if TYPE_CHECKING:
    from tests.platforms.discord_server import DiscordServer
    from tests.platforms.slack_server import SlackServer
    from tests.platforms.telegram_server import TelegramServer


@pytest.fixture
def platform_clock() -> Clock:
    """The time of the platforms."""
    return SystemClock()


@pytest_asyncio.fixture
async def fake_telegram(platform_clock: Clock) -> AsyncIterator[TelegramServer]:
    """A Telegram that knows one bot; people open their chats by writing to it."""
    from tests.platforms.telegram_server import TelegramServer

    async with TelegramServer(clock=platform_clock) as server:
        yield server


@pytest_asyncio.fixture
async def fake_slack(platform_clock: Clock) -> AsyncIterator[SlackServer]:
    """A Slack workspace where one app is installed."""
    from tests.platforms.slack_server import SlackServer

    async with SlackServer(clock=platform_clock) as server:
        yield server


@pytest_asyncio.fixture
async def fake_discord(platform_clock: Clock) -> AsyncIterator[DiscordServer]:
    """A Discord with one bot."""
    from tests.platforms.discord_server import DiscordServer

    async with DiscordServer(clock=platform_clock) as server:
        yield server
