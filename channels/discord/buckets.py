"""Discord's budgets, as its answers tell of them: who may call again when; no I/O.

A route's budget is shared with the routes that have the same bucket, for each channel, server or
webhook apart. A call that is known to come too early is refused here and never made, so nobody waits
in here and a limit of one channel holds no other.
docs.discord.com/developers/topics/rate-limits, read on 2026-11-30.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import quote

from channels.discord.errors import Limit
from core.contracts.clock import Clock
from core.contracts.errors import SendLimited

_MAJOR = ("channel", "guild", "webhook", "interaction")
_KEPT_BUCKETS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a call goes: `path` with `{names}`, and the ids that stand for them.

    `is_limited_everywhere`: whether the budget that is common to all calls counts it; answers to
    interactions are free of it.
    """

    method: str
    path: str
    ids: Mapping[str, str] = field(default_factory=dict)
    is_limited_everywhere: bool = True

    @property
    def name(self) -> str:
        """Return the route without its ids."""
        return f"{self.method} {self.path}"

    @property
    def place(self) -> str:
        """Return what a budget of the route is for, apart from others."""
        return "/".join(self.ids[name] for name in _MAJOR if name in self.ids)

    @property
    def url(self) -> str:
        """Return the path with its ids, ready to be appended to the API's base."""
        return self.path.format_map({name: quote(value, safe="") for name, value in self.ids.items()})


@dataclass(slots=True)
class _Bucket:
    """What is left of a budget until `resets_at`, in seconds of the clock; None: not known."""

    left: int | None = None
    resets_at: float = 0.0


class Buckets:
    """All budgets of one bot."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, str] = {}
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._held_until = 0.0

    def spend(self, route: Route) -> None:
        """Count a call that is about to be made.

        Raises:
            SendLimited: It is known to come too early; it must not be made.
        """
        now = self._clock.monotonic()
        if route.is_limited_everywhere and self._held_until > now:
            raise _too_early(self._held_until - now)
        bucket = self._buckets.get(self._key(route))
        if bucket is None:
            return
        if bucket.resets_at <= now:
            bucket.left = None
        elif bucket.left == 0:
            raise _too_early(bucket.resets_at - now)
        if bucket.left is not None:
            bucket.left -= 1

    def learn(self, route: Route, headers: Mapping[str, str]) -> None:
        """Take in what an answer tells of its budget.

        Answers to calls beside each other may come in any order, so within one window a budget only shrinks.
        """
        if (name := headers.get("x-ratelimit-bucket")) is not None:
            self._names[route.name] = name
        left, reset_after = _number(headers, "remaining"), _number(headers, "reset-after")
        if left is None or reset_after is None:
            return
        bucket = self._bucket(route)
        bucket.left = int(left) if bucket.left is None else min(bucket.left, int(left))
        bucket.resets_at = self._clock.monotonic() + reset_after

    def hold(self, route: Route, limit: Limit) -> None:
        """Let nothing out on the route, or anywhere, for as long as Discord asked."""
        until = self._clock.monotonic() + limit.retry_after.total_seconds()
        if limit.everywhere:
            self._held_until = max(self._held_until, until)
        else:
            bucket = self._bucket(route)
            bucket.left = 0
            bucket.resets_at = until

    def _bucket(self, route: Route) -> _Bucket:
        if len(self._buckets) >= _KEPT_BUCKETS:
            now = self._clock.monotonic()
            self._buckets = {key: bucket for key, bucket in self._buckets.items() if bucket.resets_at > now}
        return self._buckets.setdefault(self._key(route), _Bucket())

    def _key(self, route: Route) -> tuple[str, str]:
        return self._names.get(route.name, route.name), route.place


def _too_early(seconds: float) -> SendLimited:
    return SendLimited("Discord asked to wait", retry_after=timedelta(seconds=seconds))


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(headers.get(f"x-ratelimit-{name}", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
