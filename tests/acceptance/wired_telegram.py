"""A wired host on Telegram: the real SDK talks to a fake server, with faults in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from channels.telegram.adapter import TelegramChannel
from channels.telegram.limits import Timing
from core.contracts.clock import FakeClock
from tests.acceptance.wired_host import WiredHost, wired_host
from tests.platforms.model_script import Step
from tests.platforms.telegram_server import TOKEN, TelegramServer

PATIENT = Timing(poll_timeout=timedelta(seconds=5))
HASTY = replace(
    PATIENT,
    poll_timeout=timedelta(seconds=1),
    answer_timeout=timedelta(seconds=0.7),
    upload_timeout=timedelta(seconds=0.7),
)
"""For calls that are never answered: the machine's own time passes until one counts as lost."""


@dataclass(repr=False)
class Wired(WiredHost):
    """A running host and what surrounds it."""

    telegram: TelegramServer

    def texts(self, chat_id: int) -> list[str]:
        return [message.text for message in self.telegram.visible(chat_id)]


@asynccontextmanager
async def wired(directory: Path, *steps: Step, timing: Timing = PATIENT, **more: Any) -> AsyncIterator[Wired]:
    """Run a host for the length of the block; `more` is as in `wired_host`."""
    clock = FakeClock()
    async with TelegramServer(TOKEN, clock=clock, query_ttl=3600.0) as telegram:

        def channel(mask):
            return TelegramChannel(token=TOKEN, api_base=telegram.api_base, clock=clock, mask=mask, timing=timing)

        async with wired_host(directory, channel, *steps, clock=clock, **more) as run:
            yield Wired(**{field.name: getattr(run, field.name) for field in fields(WiredHost)}, telegram=telegram)
