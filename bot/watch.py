"""Watches whether channels really hear, and tells owners elsewhere when one does not."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Protocol, TypeAlias

from channels.contract import Probe
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown

logger = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=30)
DEAF_LOOKS = 3
"""How many looks in a row find a channel deaf before people are told: a short outage is nobody's business."""


Look: TypeAlias = Callable[[], Awaitable[Probe]]
"""A channel's `probe`."""


class Tell(Protocol):
    """`OwnerAlerts.tell`."""

    async def __call__(self, kind: str, text: str, *, not_on: str = "") -> int:
        """Tell every owner, but not on that channel."""
        ...


class ChannelWatch:
    """Looks at every platform's own verdict now and then; says each trouble and each end of one once."""

    def __init__(self, *, platforms: Mapping[str, Look], tell: Tell, clock: Clock) -> None:
        self._platforms = platforms
        self._tell = tell
        self._clock = clock
        self._deaf: dict[str, int] = {}
        self._ended: set[str] = set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            for name, probe in self._platforms.items():
                if name not in self._ended:
                    await self._look(name, await probe())

    async def channel_ended(self, name: str, error: ChannelDown) -> None:
        """Tell that a channel is refused for good."""
        self._ended.add(name)
        text = f"I am cut off from {name}: {error}. Messages there do not reach me until this is mended."
        await self._tell(f"{name}-refused", text, not_on=name)

    async def _look(self, name: str, probe: Probe) -> None:
        looks = self._deaf.get(name, 0)
        if probe.healthy:
            self._deaf[name] = 0
            if looks >= DEAF_LOOKS:
                logger.info("channel_hears_again", extra={"channel": name})
                await self._tell(f"{name}-back", f"I hear {name} again.", not_on=name)
            return
        self._deaf[name] = looks + 1
        if looks + 1 == DEAF_LOOKS:
            logger.error("channel_deaf", extra={"channel": name, "detail": probe.detail})
            text = f"I do not hear {name} any more. {probe.detail}"
            await self._tell(f"{name}-deaf", text, not_on=name)
