"""The getUpdates loop: nothing is confirmed to Telegram before it is stored."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from channels.contract import Sink
from channels.supervision import Backoff, guarded, until_answered
from channels.telegram.administrators import Administrators
from channels.telegram.errors import PollConflict
from channels.telegram.health import PollHealth, host_of
from channels.telegram.inbound import update_id_of
from channels.telegram.inbound_senders import BotAccount
from channels.telegram.intake import UpdateIntake
from channels.telegram.limits import Timing
from channels.telegram.presses import PressAnswers
from channels.telegram.transport import BotApi
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, SendLimited

logger = logging.getLogger(__name__)


class Poller:
    """Fetches updates, hands their events over in order, and confirms what was accepted.

    Telegram sends again what no poll has confirmed by a higher offset, so a crash between
    fetching and storing loses nothing. What came while nobody polled is fetched first, with the
    times it was really sent at.
    """

    def __init__(
        self,
        api: BotApi,
        *,
        name: str,
        clock: Clock,
        timing: Timing,
        health: PollHealth,
        presses: PressAnswers,
        administrators: Administrators,
    ) -> None:
        self._api = api
        self._name = name
        self._clock = clock
        self._timing = timing
        self._health = health
        self._presses = presses
        self._administrators = administrators
        self._outages = Backoff(timedelta(seconds=1), timedelta(seconds=30))
        # C74: not more than a few requests a minute while another poller is there.
        self._conflicts = Backoff(timedelta(seconds=15), timedelta(seconds=30))
        self._standstills = Backoff(timedelta(seconds=1), timedelta(seconds=30))
        self._crashes = Backoff(timedelta(seconds=1), timedelta(minutes=1))
        self._connected = False
        self._webhook_at = ""
        self._intake: UpdateIntake | None = None
        self._offset: int | None = None

    async def run(self, sink: Sink) -> None:
        """Poll until cancelled, whatever happens.

        Raises:
            ChannelDown: The token is refused.
        """
        while True:
            try:
                went_well = await guarded(
                    self._round(sink), unless=ChannelDown, told="telegram_poll_crashed", channel=self._name
                )
            except ChannelDown as error:
                self._health.refused(error.detail)
                raise
            if went_well:
                self._crashes.reset()
            else:
                self._health.failed("polling broke; the log says where")
                await self._clock.sleep(self._crashes.next())

    async def _round(self, sink: Sink) -> bool:
        """Poll once, hand over what came, and wait where nothing of it could be confirmed."""
        intake = await self._connect()
        updates = await until_answered(self._poll, clock=self._clock, pause_after=self._pause_after)
        if self._health.polled():
            logger.info("telegram_polling_recovered", extra={"channel": self._name})
        confirmed = self._offset
        await self._accept_all(updates, intake, sink)
        if updates and self._offset == confirmed:
            await self._clock.sleep(self._standstills.next())
        else:
            self._standstills.reset()
        return True

    async def _connect(self) -> UpdateIntake:
        """Return the intake, which has to know who the bot is."""
        if self._intake is None:
            bot_id, username = await until_answered(self._api.me, clock=self._clock, pause_after=self._pause_after)
            account = BotAccount(channel=self._name, id=bot_id, username=username)
            self._intake = UpdateIntake(
                account,
                clock=self._clock,
                health=self._health,
                presses=self._presses,
                administrators=self._administrators,
            )
        return self._intake

    async def _poll(self) -> list[Any]:
        """Poll long; but at once where it is not known whether Telegram can be reached at all."""
        wait = self._timing.poll_timeout if self._connected else timedelta(0)
        updates = await self._api.updates(self._offset, wait=wait)
        self._connected = True
        self._webhook_at = ""
        self._outages.reset()
        self._conflicts.reset()
        return updates

    async def _pause_after(self, error: ChannelError) -> timedelta:
        """Report the failure once and return how long to wait."""
        if isinstance(error, PollConflict):
            if self._health.conflicted(webhook_at=await self._find_webhook() if error.webhook else None):
                advice = self._health.probe().detail
                logger.warning("telegram_poll_conflict", extra={"channel": self._name, "advice": advice})
            return self._conflicts.next()
        self._connected = False
        if self._health.failed(error.detail):
            logger.warning("telegram_polling_failed", extra={"channel": self._name, "detail": error.detail})
        wait = self._outages.next()
        return max(wait, error.retry_after) if isinstance(error, SendLimited) else wait

    async def _find_webhook(self) -> str:
        """Return the host of the webhook that somebody set, empty if Telegram does not say."""
        if not self._webhook_at:
            try:
                self._webhook_at = host_of(await self._api.webhook_url())
            except ChannelError:
                return ""
        return self._webhook_at

    async def _accept_all(self, updates: list[Any], intake: UpdateIntake, sink: Sink) -> None:
        """Hand the events over in order, and move the offset behind those that were accepted."""
        in_order = sorted(updates, key=lambda update: update_id_of(update) or 0)
        read = [(update, await intake.read(update)) for update in in_order]
        for update, event in read:
            if event is not None and not await intake.hand_over(event, sink):
                break
            update_id = update_id_of(update)
            self._offset = self._offset if update_id is None else update_id + 1
