"""Going on after failures, those that were foreseen and those that nobody foresaw."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

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


async def until_answered(
    call: Callable[[], Awaitable[_T]], *, clock: Clock, pause_after: Callable[[ChannelError], Awaitable[timedelta]]
) -> _T:
    """Repeat `call` until it is answered; `pause_after` reports a failure and says how long to wait.

    Raises:
        ChannelDown: Trying again cannot help.
    """
    while True:
        try:
            return await call()
        except ChannelDown:
            raise
        except ChannelError as error:
            await clock.sleep(await pause_after(error))


def pause_after(error: ChannelError, backoff: Backoff) -> timedelta:
    """Return how long to wait after a failure: what the backoff says, or longer where the platform wants that."""
    pause = backoff.next()
    return max(pause, error.retry_after) if isinstance(error, SendLimited) else pause


async def answered(
    call: Callable[[], Awaitable[_T]],
    *,
    clock: Clock,
    backoff: Backoff,
    failed: Callable[[ChannelError, timedelta], None],
) -> _T:
    """Repeat `call` until it is answered; `failed` hears of each failure, and how long it is waited then.

    Raises:
        ChannelDown: Trying again cannot help.
    """

    async def tell_and_wait(error: ChannelError) -> timedelta:
        pause = pause_after(error, backoff)
        failed(error, pause)
        return pause

    return await until_answered(call, clock=clock, pause_after=tell_and_wait)


async def until_stored(
    operation: Callable[[], Awaitable[_T]], *, clock: Clock, backoff: Backoff, failed: Callable[[StoreError], None]
) -> _T:
    """Repeat what the store fails at until it does not; `failed` hears of each failure."""
    while True:
        try:
            return await operation()
        except StoreError as error:
            failed(error)
            await clock.sleep(backoff.next())


async def guarded(work: Awaitable[_T], *, unless: type[Exception], told: str, **facts: str) -> _T | None:
    """Return what `work` comes to; None after an error that nobody foresaw, which is logged as `told`.

    One event that breaks the host must not stop all others, nor one broken poll the next.

    Raises:
        unless: What the caller knows how to take.
    """
    try:
        return await work
    except unless:
        raise
    except Exception:
        logger.exception(told, extra=facts)
        return None
