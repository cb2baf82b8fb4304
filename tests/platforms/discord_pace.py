"""How often a fake Discord may be called: one budget for each route and channel, told with every answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from core.contracts.clock import Clock
from tests.platforms.discord_calls import Call

_PLENTY = 1000


@dataclass
class Bucket:
    """What is left of one budget until `resets_at`, in seconds of the clock."""

    left: int
    resets_at: float


class Pace:
    """Budgets of `limit` calls in `window`; while `enforced` is off there is always plenty."""

    def __init__(self, clock: Clock, limit: int = 5, window: timedelta = timedelta(seconds=5)) -> None:
        self.enforced = False
        self.limit = limit
        self.window = window
        self._clock = clock
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def charge(self, call: Call) -> float:
        """Count a call and return 0, or in how many seconds it may come again."""
        if not self.enforced:
            return 0.0
        bucket = self._bucket(call)
        if bucket.left == 0:
            return bucket.resets_at - self._clock.monotonic()
        bucket.left -= 1
        return 0.0

    def headers(self, call: Call) -> dict[str, str]:
        """Return what every answer tells of its budget."""
        bucket = self._bucket(call)
        wait = bucket.resets_at - self._clock.monotonic()
        return {
            "X-RateLimit-Limit": str(self.limit if self.enforced else _PLENTY),
            "X-RateLimit-Remaining": str(bucket.left if self.enforced else _PLENTY - 1),
            "X-RateLimit-Reset": f"{self._clock.now().timestamp() + wait:.3f}",
            "X-RateLimit-Reset-After": f"{wait:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(call.route.encode()).hexdigest()[:32],
        }

    def _bucket(self, call: Call) -> Bucket:
        place = next((call.ids[name] for name in ("channel_id", "guild_id", "token") if name in call.ids), "")
        now = self._clock.monotonic()
        bucket = self._buckets.get((call.route, place))
        if bucket is None or bucket.resets_at <= now:
            bucket = Bucket(self.limit, now + self.window.total_seconds())
            self._buckets[call.route, place] = bucket
        return bucket
