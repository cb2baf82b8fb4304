"""What was said while the host was away: read from Slack's history, and handed over like what comes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial

from channels.contract import Mark, Sink
from channels.slack.errors import NotInChannel, ThreadGone
from channels.slack.inbound import Own, Said, said
from channels.slack.limits import BACKFILL_AGE, Timing
from channels.slack.payload import Json, text, ts_of
from channels.slack.places import HOME
from channels.slack.supervision import answered
from channels.slack.transport import SlackApi
from core.contracts.clock import Clock
from core.contracts.errors import SendRejected

logger = logging.getLogger(__name__)

_OVERLAP = timedelta(seconds=1)
"""Asked again, what is known already is recognised; left out, it is lost."""


class Backfill:
    """Reads every channel and thread where something was heard in the last days."""

    def __init__(self, api: SlackApi, own: Own, *, clock: Clock, timing: Timing, name: str) -> None:
        self._api = api
        self._own = own
        self._clock = clock
        self._timing = timing
        self._name = name

    async def run(self, sink: Sink, take: Callable[[Said], Awaitable[None]]) -> None:
        """Hand over what was missed, each channel's oldest first.

        Raises:
            StoreError: It could not be stored; what is missing is found again the next time.
            ChannelDown: Slack does not let the app in.
        """
        marks = await sink.marks(self._name, self._own.team)
        oldest = self._clock.now() - BACKFILL_AGE
        recent = [mark for mark in marks if mark.sent_at > oldest and not mark.address.chat.startswith(HOME)]
        for channel, of_channel in _by_channel(recent).items():
            missed = await self._missed(channel, of_channel)
            for one in missed:
                await take(one)
            if missed:
                logger.info("slack_caught_up", extra={"channel": channel, "messages": len(missed)})

    async def _missed(self, channel: str, marks: list[Mark]) -> list[Said]:
        after = ts_of(max(mark.sent_at for mark in marks) - _OVERLAP)
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
        told = (said({**found[ts], "channel": channel, "channel_type": kind}, self._own) for ts in sorted(found))
        return [one for one in told if one is not None]

    async def _asked(self, call: Callable[[], Awaitable[tuple[Json, ...]]]) -> tuple[Json, ...]:
        """Return an answer of Slack's; nothing where a channel or thread is not to be read any more."""

        async def once() -> tuple[Json, ...]:
            try:
                return await call()
            except (NotInChannel, ThreadGone, SendRejected) as error:
                logger.info("slack_history_refused", extra={"detail": error.detail})
                return ()

        return await answered(once, clock=self._clock, timing=self._timing)


def _by_channel(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    channels: dict[str, list[Mark]] = {}
    for mark in marks:
        channels.setdefault(mark.address.chat, []).append(mark)
    return channels
