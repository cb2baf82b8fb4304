"""Calls to Slack that are repeated until it answers, and waiting that ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from channels.slack.limits import Timing
from channels.supervision import Backoff, until_answered
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


def _ignored(_: ChannelError) -> None:
    """Tell nobody beside the log."""


async def answered(
    call: Callable[[], Awaitable[_T]],
    *,
    clock: Clock,
    timing: Timing,
    failed: Callable[[ChannelError], None] = _ignored,
) -> _T:
    """Repeat `call` until Slack answers, at growing intervals; `failed` is told of each failure.

    Raises:
        ChannelDown: Trying again cannot help.
    """
    backoff = Backoff(timing.reconnect_first, timing.reconnect_longest)

    async def pause_after(error: ChannelError) -> timedelta:
        failed(error)
        wait = max(error.retry_after, backoff.next()) if isinstance(error, SendLimited) else backoff.next()
        logger.warning("slack_not_reached", extra={"detail": error.detail, "wait": wait.total_seconds()})
        return wait

    return await until_answered(call, clock=clock, pause_after=pause_after)


async def awaited(work: asyncio.Future[Any], *, at_most: timedelta, clock: Clock) -> None:
    """Return when `work` is done or time is up, whatever it came to; it goes on."""
    timer = asyncio.create_task(clock.sleep(at_most))
    try:
        await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)
