"""A wired host on Slack: the real SDK talks to a fake server, by Socket Mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bot.config.model import Channels, SlackSettings
from bot.config.secrets import Secret
from channels.slack.adapter import SlackChannel
from channels.slack.limits import Timing
from core.contracts.clock import FakeClock
from tests.acceptance.wired_host import OpenChannel, WiredHost, wired_host
from tests.platforms.model_script import Step
from tests.platforms.slack_server import SlackServer

ALICE_IDENTITY = "slack:T0TEAM/U0ALICE"


@dataclass(repr=False)
class WiredSlack(WiredHost):
    """A running host and the workspace around it. Alice is an owner."""

    slack: SlackServer

    def texts(self, channel: str, thread: str | None = None) -> list[str]:
        return [message.text for message in self.slack.visible(channel, thread)]


def slack_channel(slack: SlackServer, clock: FakeClock, timing: Timing | None = None) -> tuple[OpenChannel, Channels]:
    """Return what opens a channel to a server by Socket Mode, and its part of a configuration."""

    def channel(mask: Callable[[str], str]) -> SlackChannel:
        return SlackChannel(
            bot_token=slack.token,
            app_token=slack.app_token,
            api_base=slack.api_base,
            clock=clock,
            mask=mask,
            timing=timing,
        )

    settings = SlackSettings(bot_token=Secret(slack.token), app_token=Secret(slack.app_token), agent="lodger")
    return channel, Channels(slack=settings)


@asynccontextmanager
async def wired_slack(
    directory: Path, *steps: Step, timing: Timing | None = None, **more: Any
) -> AsyncIterator[WiredSlack]:
    """Run a host for the length of the block; `more` is as in `wired_host`."""
    clock = FakeClock()
    async with SlackServer(clock=clock) as slack:
        channel, channels = slack_channel(slack, clock, timing)
        owners = [ALICE_IDENTITY]
        async with wired_host(directory, channel, *steps, clock=clock, channels=channels, owners=owners, **more) as run:
            yield WiredSlack(**{field.name: getattr(run, field.name) for field in fields(WiredHost)}, slack=slack)
