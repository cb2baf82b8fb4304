"""What was said while the host was away: read from Slack's history, and handed over like what comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from channels.contract import Mark, Sink
from channels.health import Health
from channels.slack.errors import NotInChannel, ThreadGone
from channels.slack.inbound import Own, Said, parse_event
from channels.slack.limits import BACKFILL_AGE, BACKFILL_MESSAGES, Timing
from channels.slack.payload import Json, instant, item, text, ts_of
from channels.slack.places import HOME
from channels.slack.supervision import answered, awaited
from channels.slack.transport import SlackApi
from channels.supervision import Backoff, guarded, until_stored
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, SendRejected, StoreError

logger = logging.getLogger(__name__)

_OVERLAP = timedelta(seconds=1)
"""Asked again, what is known already is recognised; left out, it is lost."""
_OUT_OF_ORDER = timedelta(minutes=1)
"""How much later than a newer event an older one may be delivered."""
_HOLD = timedelta(seconds=1)
"""How long an event waits for what was missed before it; Slack wants its acknowledgement within 3 seconds."""

TakeSaid = Callable[[Said], Awaitable[None]]


class Backfill:
    """Reads every channel and thread where something was heard in the last days."""

    def __init__(self, api: SlackApi, own: Own, *, clock: Clock, timing: Timing, name: str) -> None:
        self._api = api
        self._own = own
        self._clock = clock
        self._timing = timing
        self._name = name

    async def run(self, sink: Sink, take: TakeSaid, *, since: datetime | None = None) -> datetime | None:
        """Hand over what was missed, each channel's oldest first.

        `since` is until when surely everything was heard: a mark that is newer stands for less than it
        says, as what came later moved it. Returns when the newest event that was known was sent.

        Raises:
            StoreError: It could not be stored; what is missing is found again the next time.
            ChannelDown: Slack does not let the app in.
        """
        marks = await sink.marks(self._name, self._own.team)
        oldest = self._clock.now() - BACKFILL_AGE
        recent = [mark for mark in marks if mark.sent_at > oldest and not mark.address.chat.startswith(HOME)]
        for channel, of_channel in _by_channel(recent).items():
            newest = max(mark.sent_at for mark in of_channel)
            after = newest if since is None else min(newest, since - _OUT_OF_ORDER)
            missed = await self._missed(channel, of_channel, ts_of(after - _OVERLAP))
            for one in missed:
                # One that breaks the host must not keep it from all others.
                await guarded(take(one), unless=StoreError, told="slack_missed_message_crashed", channel=channel)
            if len(missed) >= BACKFILL_MESSAGES:
                logger.warning("slack_missed_too_much", extra={"channel": channel, "messages": len(missed)})
            if missed:
                logger.info("slack_caught_up", extra={"channel": channel, "messages": len(missed)})
        return max((mark.sent_at for mark in marks), default=None)

    async def _missed(self, channel: str, marks: list[Mark], after: str) -> list[Said]:
        found: dict[str, Json] = {}
        for message in await self._asked(partial(self._api.history, channel, after)):
            found[text(message, "ts")] = message
        roots = {mark.address.thread for mark in marks} | {
            ts for ts, message in found.items() if message.get("reply_count")
        }
        for root in sorted(filter(None, roots)):
            for message in await self._asked(partial(self._api.replies, channel, root, after)):
                if text(message, "ts") > after:
                    found.setdefault(text(message, "ts"), message)
        kind = "im" if channel.startswith("D") else ""
        told = (self._read({**found[ts], "channel": channel, "channel_type": kind}) for ts in sorted(found))
        return [one for one in told if one is not None]

    def _read(self, message: Json) -> Said | None:
        """Read a message of the history like one that is told: it holds joins and the like as well."""
        return parse_event({"event": message}, self._own)

    async def _asked(self, call: Callable[[], Awaitable[tuple[Json, ...]]]) -> tuple[Json, ...]:
        """Return an answer of Slack's; nothing where a channel or thread is not to be read any more."""

        async def once() -> tuple[Json, ...]:
            try:
                return await call()
            except (NotInChannel, ThreadGone, SendRejected) as error:
                logger.info("slack_history_refused", extra={"detail": error.detail})
                return ()

        return await answered(once, clock=self._clock, timing=self._timing)


class CatchUp:
    """Fetches what was missed before the first connection, and again behind each: it stands later than that.

    What comes meanwhile waits a moment, so that it follows what was said before it, and so that its mark
    does not stand for what is still missing.
    """

    def __init__(
        self, backfill: Backfill, sink: Sink, take: TakeSaid, *, clock: Clock, timing: Timing, health: Health
    ) -> None:
        self._backfill = backfill
        self._sink = sink
        self._take = take
        self._clock = clock
        self._timing = timing
        self._health = health
        self._newest: datetime | None = None
        self._since: datetime | None = None
        self._wanted = asyncio.Event()
        self._is_through = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        """Fetch what was missed before there is a connection.

        Raises:
            ChannelDown: Slack does not let the app in.
        """
        self._newest = await self._stored(None)
        self._is_through.set_result(None)

    def connected(self) -> None:
        """Note that from now on things are told, and perhaps were not before. Called before the first of them."""
        if self._is_through.done():
            self._is_through = asyncio.get_running_loop().create_future()
        if not self._wanted.is_set():
            self._since = self._newest
            self._wanted.set()

    async def run(self) -> None:
        """Fetch what was missed behind each connection, until cancelled."""
        while not self._health.lost_for_good:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await guarded(self._stored(self._since), unless=ChannelDown, told="slack_catch_up_crashed")
            except ChannelDown as error:
                self._health.lost(error.detail)
            if not self._wanted.is_set():
                self._is_through.set_result(None)

    async def settled(self) -> None:
        """Return when what was missed is handed over, or after a while."""
        if not self._is_through.done():
            await awaited(self._is_through, at_most=_HOLD, clock=self._clock)

    def heard(self, payload: Json) -> None:
        """Note that a request was taken."""
        told_at = instant(text(item(payload, "event"), "event_ts"))
        if told_at is not None:
            self._newest = max(told_at, self._newest or told_at)

    async def _stored(self, since: datetime | None) -> datetime | None:
        """Fetch again until all of it could be stored."""
        return await until_stored(
            partial(self._backfill.run, self._sink, self._take, since=since),
            clock=self._clock,
            backoff=Backoff(self._timing.reconnect_first, self._timing.reconnect_longest),
            failed=_log_not_stored,
        )


def _log_not_stored(error: StoreError) -> None:
    logger.warning("slack_missed_not_stored", extra={"detail": str(error)})


def _by_channel(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    channels: dict[str, list[Mark]] = {}
    for mark in marks:
        channels.setdefault(mark.address.chat, []).append(mark)
    return channels
