"""Calls to Slack that are repeated until it answers, and waiting that ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from channels import supervision
from channels.slack.limits import Timing
from channels.supervision import Backoff
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError

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

    def tell(error: ChannelError, wait: timedelta) -> None:
        failed(error)
        logger.warning("slack_not_reached", extra={"detail": error.detail, "wait": wait.total_seconds()})

    backoff = Backoff(timing.reconnect_first, timing.reconnect_longest)
    return await supervision.answered(call, clock=clock, backoff=backoff, failed=tell)


async def awaited(work: asyncio.Future[Any], *, at_most: timedelta, clock: Clock) -> None:
    """Return when `work` is done or time is up, whatever it came to; it goes on."""
    timer = asyncio.create_task(clock.sleep(at_most))
    try:
        await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)
