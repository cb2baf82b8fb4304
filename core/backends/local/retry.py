"""When a failed model step is tried again, and after how long. Pure."""

from __future__ import annotations

from datetime import timedelta

from core.contracts.errors import ModelBusy, ModelError, ModelUnreachable

MAX_RETRIES = 3
_TRANSIENT_BASE = timedelta(seconds=1)
_BUSY_BASE = timedelta(seconds=10)
_LONGEST_WISH = timedelta(minutes=5)


def retry_wait(error: ModelError, attempt: int, jitter: float) -> timedelta | None:
    """Return how long to wait before try `attempt + 1`, or None when it must not be tried again.

    Args:
        error: What the failed try raised.
        attempt: Retries made so far, from 0.
        jitter: A number in [0, 1); at most a quarter is added to the wait.
    """
    if attempt >= MAX_RETRIES:
        return None
    match error:
        case ModelBusy(retry_after=timedelta() as wish):
            return wish if wish <= _LONGEST_WISH else None
        case ModelBusy():
            base = _BUSY_BASE
        case ModelUnreachable():
            base = _TRANSIENT_BASE
        case _:
            return None
    return base * (2.0**attempt * (1 + jitter / 4))
