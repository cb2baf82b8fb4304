"""An outbox on stores in memory, its deliverer, and a platform that fails on demand: what tests of delivery drive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from bot.conversations.outbox import Deliverer, notice
from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import Address, FileContent
from core.contracts.clock import FakeClock
from core.contracts.delivery import OUTBOX_QUEUE, OutboxState
from tests.core.stores.samples import World, open_world

ONE = Address(channel="fake", account="bot", chat="1")
TWO = Address(channel="fake", account="bot", chat="2")


@dataclass(repr=False)
class Post:
    """What is posted, and what comes of it."""

    world: World
    channel: FakeChannel
    deliverer: Deliverer | None = None
    failed_cards: list[str] = field(default_factory=list)
    done_files: list[str] = field(default_factory=list)

    @property
    def clock(self) -> FakeClock:
        return self.world.clock

    @property
    def store(self):
        return self.world.stores.delivery

    def start(self, **ports) -> Deliverer:
        """Let a process begin to deliver, in place of the one before."""
        more = {"store": self.store, "channels": {"fake": self.channel}, "clock": self.clock, **ports}
        self.deliverer = Deliverer(
            card_failed=self._card_failed,
            file_done=self._file_done,
            mask=lambda text: text.replace("hunter2", "[secret password]"),
            **more,
        )
        return self.deliverer

    async def _card_failed(self, item, error) -> None:
        self.failed_cards.append(f"{item.id}: {error}")

    async def _file_done(self, content: FileContent) -> None:
        self.done_files.append(content.name)

    async def send(self, *texts: str, to: Address = ONE, first: int = 1) -> None:
        """Post texts and let the chat be delivered."""
        items = [notice(f"t/{number}", to, text) for number, text in enumerate(texts, start=first)]
        await self.store.post(items)
        await self.deliver()

    async def deliver(self) -> None:
        """Answer every doorbell of the outbox that is due."""
        while due := [ring for ring in self.world.rings if ring.due_at <= self.clock.now()]:
            self.world.rings.remove(due[0])
            if due[0].queue == OUTBOX_QUEUE:
                await self.deliverer.deliver_chat(due[0].key)

    async def later(self, wait: timedelta) -> None:
        await self.clock.advance(wait)
        await self.deliver()

    def can(self, **abilities: bool) -> None:
        """Let the platform have other abilities from now on."""
        self.channel._capabilities = replace(self.channel.capabilities, **abilities)

    def texts(self, of: Address = ONE) -> list[str]:
        return [message.text for message in self.channel.messages.values() if message.address == of]

    async def state(self, item_id: str) -> OutboxState:
        return (await self.store.outbox_row(item_id)).state


@asynccontextmanager
async def posting() -> AsyncIterator[Post]:
    async with open_world(":memory:") as world:
        post = Post(world, FakeChannel("fake", capabilities=FAKE_CAPABILITIES, clock=world.clock))
        post.start()
        yield post
