"""Questions to Discord that are put until they are answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from channels.discord.limits import Timing
from channels.supervision import Backoff, answered
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendRejected

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


async def asked(call: Callable[[], Awaitable[_T]], *, clock: Clock, timing: Timing) -> _T | None:
    """Return what Discord answers, however long that takes; None where it refuses.

    Raises:
        ChannelDown: Discord does not let the bot in.
    """

    async def once() -> _T | None:
        try:
            return await call()
        except SendRejected as error:
            logger.info("discord_question_refused", extra={"detail": error.detail})
            return None

    backoff = Backoff(timing.reconnect_first, timing.reconnect_longest)
    return await answered(once, clock=clock, backoff=backoff, failed=_log_failure)


def _log_failure(error: ChannelError, wait: timedelta) -> None:
    logger.warning("discord_not_reached", extra={"detail": error.detail, "wait": wait.total_seconds()})
