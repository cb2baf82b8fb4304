"""The host's own answers to events, in words, each posted once however often its event is handled."""

from __future__ import annotations

from collections.abc import Mapping

from bot.conversations.outbox import notice, text_items
from channels.contract import Channel
from core.contracts.addresses import Address
from core.contracts.delivery import DeliveryStore, InboxRow


class Answers:
    """Posts texts of the host to where an event came from."""

    def __init__(self, delivery: DeliveryStore, channels: Mapping[str, Channel]) -> None:
        self._delivery = delivery
        self._channels = channels

    async def answer(self, row: InboxRow, markdown: str, *, about: str = "1") -> None:
        """Answer an event; an empty text is no answer. `about` tells several answers to one event apart."""
        await self.post(f"in/{row.id}/{about}", row.event.address, markdown)

    async def post(self, item_id: str, address: Address, markdown: str) -> None:
        """Post a text under an id, in as many messages as it takes; an id that is known is left alone."""
        if markdown:
            capabilities = self._channels[address.channel].capabilities
            first = notice(item_id, address, markdown)
            await self._delivery.post(text_items(first, markdown, capabilities))
