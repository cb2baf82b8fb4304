"""A channel that hears nothing is noticed, and its owner told once, elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.watch import DEAF_LOOKS, LOOK_EVERY, ChannelWatch
from channels.contract import Probe
from core.contracts.clock import FakeClock
from core.contracts.errors import ChannelDown


@dataclass
class Platform:
    """One platform's verdict, as a test sets it, and what owners were told meanwhile."""

    hears: bool = True
    told: list[tuple[str, str]] = field(default_factory=list)

    async def probe(self) -> Probe:
        return Probe(healthy=self.hears, detail="No poll succeeded for 60 s.")

    async def tell(self, kind: str, text: str, *, not_on: str = "") -> int:
        del kind
        self.told.append((not_on, text))
        return 1


@asynccontextmanager
async def watching(platform: Platform) -> AsyncIterator[tuple[ChannelWatch, FakeClock]]:
    clock = FakeClock()
    watch = ChannelWatch(platforms={"telegram": platform.probe}, tell=platform.tell, clock=clock)
    running = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    yield watch, clock
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_deaf_channel_is_told_once_on_another_one():
    platform = Platform(hears=False)
    async with watching(platform) as (_, clock):
        await clock.advance(LOOK_EVERY * (DEAF_LOOKS - 1))
        assert platform.told == []
        await clock.advance(LOOK_EVERY * 20)
    assert platform.told == [("telegram", "I do not hear telegram any more. No poll succeeded for 60 s.")]


async def test_the_end_of_an_outage_is_told_once_and_the_next_one_again():
    platform = Platform(hears=False)
    async with watching(platform) as (_, clock):
        await clock.advance(LOOK_EVERY * DEAF_LOOKS)
        platform.hears = True
        await clock.advance(LOOK_EVERY * 3)
        platform.hears = False
        await clock.advance(LOOK_EVERY * DEAF_LOOKS)
    assert [text.split(".")[0] for _, text in platform.told] == [
        "I do not hear telegram any more",
        "I hear telegram again",
        "I do not hear telegram any more",
    ]


async def test_a_short_outage_is_nobodys_business():
    platform = Platform(hears=False)
    async with watching(platform) as (_, clock):
        await clock.advance(LOOK_EVERY * (DEAF_LOOKS - 1))
        platform.hears = True
        await clock.advance(LOOK_EVERY * 5)
    assert platform.told == []


async def test_a_channel_that_is_refused_for_good_is_told_and_not_looked_at_any_more():
    platform = Platform(hears=False)
    async with watching(platform) as (watch, clock):
        await watch.channel_ended("telegram", ChannelDown("the bot token is refused"))
        await clock.advance(LOOK_EVERY * DEAF_LOOKS * 2)
    ((not_on, text),) = platform.told
    assert not_on == "telegram"
    assert "the bot token is refused" in text
