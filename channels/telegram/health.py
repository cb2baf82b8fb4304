"""Whether updates really arrive, as far as the polls tell."""

from __future__ import annotations

from datetime import timedelta

from channels.contract import Probe
from core.contracts.clock import Clock

DEAF_AFTER = timedelta(seconds=60)
"""A poll returns at least every half minute; after this long without one nothing is heard."""

_QUIET_BEFORE_WARNING = timedelta(minutes=10)
"""Two pollers end each other's polls for hours; that is one trouble and one warning."""

_NEVER_POLLED = "Telegram: no poll has succeeded yet."
_SECOND_POLLER = (
    "Telegram: another program polls with the same bot token. Stop it, or give this host a bot of its own (@BotFather)."
)
_WEBHOOK_SET = (
    "Telegram: a webhook is set for this bot, so it cannot be polled. If no other program needs the webhook, remove it"
    " with the Bot API method deleteWebhook; it is not removed automatically."
)
_NOT_STORED = "Telegram: messages arrive but cannot be stored; Telegram keeps them for at most 24 hours."


class PollHealth:
    """What the last polls said; the poller reports, `probe` reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._polled_at: float | None = None
        self._conflicted_at: float | None = None
        self._trouble = ""
        self._is_storing = True

    def polled(self) -> bool:
        """Note a poll that succeeded; return whether it ended a trouble."""
        recovered = bool(self._trouble)
        self._trouble = ""
        self._polled_at = self._clock.monotonic()
        return recovered

    def failed(self, detail: str) -> bool:
        """Note a failure; return whether it began a trouble."""
        began = not self._trouble
        self._trouble = f"Telegram: {detail}"
        return began

    def conflicted(self, *, webhook: bool) -> bool:
        """Note a 409; return whether it should be warned about."""
        now = self._clock.monotonic()
        quiet = self._conflicted_at is None or now - self._conflicted_at >= _QUIET_BEFORE_WARNING.total_seconds()
        self._conflicted_at = now
        self._trouble = _WEBHOOK_SET if webhook else _SECOND_POLLER
        return quiet

    def stored(self, *, succeeded: bool) -> bool:
        """Note whether an event could be stored; return whether that changed."""
        changed = succeeded is not self._is_storing
        self._is_storing = succeeded
        return changed

    def probe(self) -> Probe:
        """Return the verdict, with what to do about it."""
        if self._trouble:
            return Probe(healthy=False, detail=self._trouble)
        if not self._is_storing:
            return Probe(healthy=False, detail=_NOT_STORED)
        if self._polled_at is None:
            return Probe(healthy=False, detail=_NEVER_POLLED)
        age = timedelta(seconds=round(self._clock.monotonic() - self._polled_at))
        return Probe(healthy=age < DEAF_AFTER, detail=f"Telegram: the last poll succeeded {age.seconds:d} s ago.")
