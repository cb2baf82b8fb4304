"""From updates, however they came, to events that are committed."""

from __future__ import annotations

import logging
from typing import Protocol

from channels.contract import Sink
from channels.supervision import guarded
from channels.telegram.administrators import Administrators
from channels.telegram.inbound import parse_update
from channels.telegram.inbound_json import MalformedUpdate
from channels.telegram.inbound_members import changed_chats
from channels.telegram.inbound_senders import BotAccount
from channels.telegram.presses import PressAnswers
from core.contracts.addresses import InboundEvent, PressBody
from core.contracts.clock import Clock
from core.contracts.errors import StoreError

logger = logging.getLogger(__name__)


class StoreNotes(Protocol):
    """Where it is noted whether events can be stored."""

    def stored(self, *, succeeded: bool) -> bool:
        """Note whether an event could be stored; return whether that changed."""
        ...


class UpdateIntake:
    """Reads updates and hands their events over. An update that breaks something is logged and done with."""

    def __init__(
        self,
        account: BotAccount,
        *,
        clock: Clock,
        health: StoreNotes,
        presses: PressAnswers,
        administrators: Administrators,
    ) -> None:
        self._account = account
        self._clock = clock
        self._health = health
        self._presses = presses
        self._administrators = administrators

    async def read(self, update: object) -> InboundEvent | None:
        """Return what an update means, None for nothing.

        The grace of a press begins here, before any wait for the store (C27), and so does the wait
        for the sender's roles, which those who are read together have at the same time.
        """
        channel = self._account.channel
        return await guarded(self._read(update), unless=StoreError, told="telegram_update_crashed", channel=channel)

    async def _read(self, update: object) -> InboundEvent | None:
        self._administrators.forget(changed_chats(update))
        try:
            event = parse_update(update, self._account, self._clock.now())
        except MalformedUpdate as error:
            facts = {"channel": self._account.channel, "detail": str(error)}
            logger.warning("telegram_update_malformed", extra=facts)
            return None
        if event is None:
            return None
        if isinstance(event.body, PressBody):
            self._presses.expect(event.body)
        self._administrators.expect(event)
        return event

    async def hand_over(self, event: InboundEvent, sink: Sink) -> bool:
        """Add the sender's roles, and return whether Telegram may be told that the event arrived."""
        channel = self._account.channel
        known = await self._administrators.with_roles(event)
        try:
            await guarded(
                sink.accept(known),
                unless=StoreError,
                told="telegram_event_crashed",
                channel=channel,
                event_key=event.key,
            )
        except StoreError as error:
            if self._health.stored(succeeded=False):
                logger.warning("telegram_event_not_stored", extra={"channel": channel, "detail": str(error)})
            return False
        self._health.stored(succeeded=True)
        return True
