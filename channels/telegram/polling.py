"""The getUpdates loop: nothing is confirmed to Telegram before it is stored."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from channels.contract import Sink
from channels.telegram.errors import PollConflict
from channels.telegram.health import PollHealth
from channels.telegram.inbound import BotAccount, MalformedUpdate, parse_update
from channels.telegram.limits import Timing
from channels.telegram.presses import PressAnswers
from channels.telegram.transport import BotApi
from core.contracts.addresses import InboundEvent, PressBody
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, StoreError

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(slots=True)
class Backoff:
    """Waiting times that double up to a cap; a jitter keeps hosts from coming back together."""

    first: timedelta
    cap: timedelta
    _failures: int = field(default=0, init=False)

    def next(self) -> timedelta:
        """Return how long to wait after one more failure: 75 to 100 % of the doubled time."""
        doubled: timedelta = self.first * (1 << min(self._failures, 16))
        self._failures += 1
        return min(self.cap, doubled) * (1 - secrets.randbelow(250) / 1000)

    def reset(self) -> None:
        """Begin at the first time again: it worked."""
        self._failures = 0


class Poller:
    """Fetches updates, hands their events over in order, and confirms what was accepted.

    Telegram sends again what no poll has confirmed by a higher offset, so a crash between
    fetching and storing loses nothing.
    """

    def __init__(
        self, api: BotApi, *, name: str, clock: Clock, timing: Timing, health: PollHealth, presses: PressAnswers
    ) -> None:
        self._api = api
        self._name = name
        self._clock = clock
        self._timing = timing
        self._health = health
        self._presses = presses
        self._outages = Backoff(timedelta(seconds=1), timedelta(seconds=30))
        # C74: not more than a few requests a minute while another poller is there.
        self._conflicts = Backoff(timedelta(seconds=15), timedelta(seconds=30))
        self._connected = False
        self._standstills = Backoff(timedelta(seconds=1), timedelta(seconds=30))

    async def run(self, sink: Sink) -> None:
        """Poll until cancelled.

        Raises:
            ChannelDown: The token is refused.
        """
        bot_id, username = await self._until_answered(self._api.me)
        account = BotAccount(channel=self._name, id=bot_id, username=username)
        offset: int | None = None
        while True:
            updates = await self._until_answered(partial(self._poll, offset))
            if self._health.polled():
                logger.info("telegram_polling_recovered", extra={"channel": self._name})
            confirmed, offset = offset, await self._accept_all(updates, offset, account, sink)
            if updates and offset == confirmed:
                await self._clock.sleep(self._standstills.next())
            else:
                self._standstills.reset()

    async def _poll(self, offset: int | None) -> list[Any]:
        """Poll long; but at once where it is not known whether Telegram can be reached at all."""
        updates = await self._api.updates(offset, wait=self._timing.poll_timeout if self._connected else timedelta(0))
        self._connected = True
        return updates

    async def _until_answered(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat `call` until it is answered, waiting longer each time."""
        while True:
            try:
                answer = await call()
            except ChannelDown as error:
                self._health.failed(error.detail)
                raise
            except ChannelError as error:
                await self._clock.sleep(self._note_failure(error))
            else:
                self._outages.reset()
                self._conflicts.reset()
                return answer

    def _note_failure(self, error: ChannelError) -> timedelta:
        """Report the failure once and return how long to wait."""
        if isinstance(error, PollConflict):
            if self._health.conflicted(webhook=error.webhook):
                advice = self._health.probe().detail
                logger.warning("telegram_poll_conflict", extra={"channel": self._name, "advice": advice})
            return self._conflicts.next()
        self._connected = False
        if self._health.failed(error.detail):
            logger.warning("telegram_polling_failed", extra={"channel": self._name, "detail": error.detail})
        wait = self._outages.next()
        return max(wait, error.retry_after) if isinstance(error, SendLimited) else wait

    async def _accept_all(
        self, updates: Sequence[Any], offset: int | None, account: BotAccount, sink: Sink
    ) -> int | None:
        """Hand the events over in order and return the offset that confirms those that were accepted."""
        parsed = [(update, self._parse(update, account)) for update in updates]
        for _, event in parsed:
            if event is not None and isinstance(event.body, PressBody):
                self._presses.expect(event.body)  # before any wait for the store, C27
        for update, event in parsed:
            if event is not None and not await self._accept(event, sink):
                break
            update_id = update.get("update_id") if isinstance(update, dict) else None
            offset = update_id + 1 if isinstance(update_id, int) else offset
        return offset

    def _parse(self, update: Any, account: BotAccount) -> InboundEvent | None:
        try:
            return parse_update(update, account, self._clock.now())
        except MalformedUpdate as error:
            logger.warning("telegram_update_malformed", extra={"channel": self._name, "detail": str(error)})
            return None

    async def _accept(self, event: InboundEvent, sink: Sink) -> bool:
        """Return whether the update may be confirmed."""
        try:
            await sink.accept(event)
        except StoreError as error:
            if self._health.stored(succeeded=False):
                logger.warning("telegram_event_not_stored", extra={"channel": self._name, "detail": str(error)})
            return False
        except Exception:  # a channel event: one that breaks the host must not stop all others
            logger.exception("telegram_event_crashed", extra={"channel": self._name, "event_key": event.key})
        else:
            self._health.stored(succeeded=True)
        return True
