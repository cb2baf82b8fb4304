"""Telling people past the outbox that something of theirs cannot be stored: it cannot be written either."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from bot.conversations.outbox import notice
from channels.contract import Channel
from core.contracts.addresses import Address
from core.contracts.errors import ChannelError

logger = logging.getLogger(__name__)


class OutageNotice:
    """One text, told once at each address for as long as an outage lasts."""

    def __init__(self, channels: Mapping[str, Channel], text: str) -> None:
        self._channels = channels
        self._text = text
        self._told: set[str] = set()

    @property
    def lasts(self) -> bool:
        """Whether somebody was told, or was to be, and it has not ended since."""
        return bool(self._told)

    async def tell(self, address: Address) -> None:
        """Say it at an address, unless it was said there before; raises nothing."""
        if address.key in self._told:
            return
        self._told.add(address.key)
        try:
            await self._channels[address.channel].deliver(notice(f"outage/{address.key}", address, self._text))
        except ChannelError:
            logger.warning("outage_not_told", extra={"channel": address.channel})

    def end(self) -> None:
        """Have the next outage told anew."""
        self._told.clear()
