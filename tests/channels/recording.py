"""A sink that records what a channel hands over, and that can fail or hold it."""

import asyncio
from dataclasses import dataclass, field

from channels.contract import Mark


@dataclass
class RecordingSink:
    """Accepts events; `errors` are raised first (None: that one is taken), and a `gate` that is shut holds all.

    `offers` is everything that was accepted, in its order, `refused` what an error was raised for.
    `known` are marks of an earlier run. Only `asked` may be asked for.
    """

    asked: tuple[str, str]
    """The channel and the account."""
    errors: list = field(default_factory=list)
    marks_errors: list = field(default_factory=list)
    offers: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    held: list = field(default_factory=list)
    known: list = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def accept(self, event):
        if self.gate is not None:
            self.held.append(event)
            await self.gate.wait()
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            self.refused.append(event)
            raise error
        self.offers.append(event)

    async def marks(self, channel, account):
        assert (channel, account) == self.asked
        if self.marks_errors:
            raise self.marks_errors.pop(0)
        newest = {mark.address: mark.sent_at for mark in self.known}
        for event in self.offers:
            newest[event.address] = max(event.sent_at, newest.get(event.address, event.sent_at))
        return tuple(Mark(address=address, sent_at=sent_at) for address, sent_at in newest.items())
