"""Whether updates really arrive, as far as polls and Telegram itself tell."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlsplit

from channels.contract import Probe
from channels.telegram.transport import WebhookState
from core.contracts.clock import Clock

DEAF_AFTER = timedelta(seconds=60)
"""A poll returns at least every half minute; after this long without one nothing is heard."""

KEPT_FOR = timedelta(hours=24)
"""core.telegram.org/bots/api#getting-updates, read 2026-11-30: updates are kept no longer than 24 hours."""

_QUIET_BEFORE_WARNING = timedelta(minutes=10)
"""Two pollers end each other's polls for hours; that is one trouble and one warning."""

_NEVER_POLLED = "Telegram: no poll has succeeded yet."
_SECOND_POLLER = (
    "Telegram: another program polls with the same bot token. Stop it, or give this host a bot of its own (@BotFather)."
)
_WEBHOOK_SET = (
    "Telegram: a webhook is set for this bot{where}, so it cannot be polled. If no other program needs the webhook,"
    " remove it with the Bot API method deleteWebhook; it is not removed automatically."
)
_GOES_ON = "It is tried again by itself; if it lasts, check this machine's network and proxy."
_PASSING = "Telegram: {detail}. " + _GOES_ON
_DEAF = "Telegram: the last poll succeeded {age} s ago, so nothing is heard. " + _GOES_ON
_REFUSED = "Telegram: {detail}. Put the token that @BotFather shows into the configuration and restart the host."
_NOT_STORED = "Telegram: messages arrive but cannot be stored; Telegram keeps them for at most 24 hours."
_AWAY_TOO_LONG = (
    " Before that nothing was fetched for {hours} hours. Telegram keeps messages for 24 hours only, so older ones may"
    " be lost."
)

UNASKED_AFTER = timedelta(minutes=5)
"""Telegram is asked about its webhook every minute; after this long without an answer nothing is known."""

_NOT_YET_SET = "Telegram: the webhook is not set yet."
_NOT_SETTABLE = "Telegram: the webhook cannot be set: {detail}. Correct webhook_url, or the domain it names."
_UNASKED = "Telegram: the webhook was last found set {age} s ago. " + _GOES_ON
_UNDELIVERABLE = (
    "Telegram: the webhook at {host} cannot be called: {failure}. Updates that wait: {waiting}. See that webhook_url is"
    " reachable from the internet, with a valid certificate, and leads to webhook_listen of this host."
)
_CALLABLE = "Telegram: the webhook at {host} is set. Updates that wait: {waiting}."


class Quiet:
    """Tells a trouble that comes again and again once, and once more after a quiet time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_at: float | None = None

    def is_over(self) -> bool:
        """Note that it came; return whether the quiet before it was long enough to tell it."""
        now = self._clock.monotonic()
        last, self._last_at = self._last_at, now
        return last is None or now - last >= _QUIET_BEFORE_WARNING.total_seconds()


class _Troubles:
    """What goes wrong with either way of receiving; it lasts until it is said to be over."""

    def __init__(self) -> None:
        self._trouble = ""
        self._is_storing = True

    def note(self, trouble: str) -> bool:
        """Note what is wrong; return whether all was well before."""
        began = not self._trouble
        self._trouble = trouble
        return began

    def end(self) -> bool:
        """Note that it works; return whether it did not before."""
        ended = bool(self._trouble)
        self._trouble = ""
        return ended

    def stored(self, *, succeeded: bool) -> bool:
        """Note whether an event could be stored; return whether that changed."""
        changed = succeeded is not self._is_storing
        self._is_storing = succeeded
        return changed

    def probe(self) -> Probe | None:
        """Return the verdict, None when nothing is known to be wrong."""
        if self._trouble:
            return Probe(healthy=False, detail=self._trouble)
        return None if self._is_storing else Probe(healthy=False, detail=_NOT_STORED)


class PollHealth:
    """What the last polls said; the poller reports, `probe` reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles = _Troubles()
        self._conflicts = Quiet(clock)
        self._polled_at: tuple[float, datetime] | None = None
        self._back_at: float | None = None
        self._away = timedelta(0)

    def polled(self) -> bool:
        """Note a poll that succeeded; return whether it ended a trouble."""
        now = (self._clock.monotonic(), self._clock.now())
        if self._polled_at is not None:
            # A machine that was suspended has seen no time pass but on the wall.
            elapsed = timedelta(seconds=now[0] - self._polled_at[0])
            away = max(elapsed, now[1] - self._polled_at[1])
            if away > KEPT_FOR:
                self._back_at, self._away = now[0], away
        self._polled_at = now
        return self._troubles.end()

    def failed(self, detail: str) -> bool:
        """Note a failure that may pass; return whether it began a trouble."""
        return self._troubles.note(_PASSING.format(detail=detail))

    def refused(self, detail: str) -> None:
        """Note that the token is refused."""
        self._troubles.note(_REFUSED.format(detail=detail))

    def conflicted(self, *, webhook_at: str | None) -> bool:
        """Note a 409; return whether it should be warned about.

        Args:
            webhook_at: The host of the webhook that is set, empty if it is not known; None: it is
                another program that polls.
        """
        if webhook_at is None:
            self._troubles.note(_SECOND_POLLER)
        else:
            self._troubles.note(_WEBHOOK_SET.format(where=webhook_at and f" (at {webhook_at})"))
        return self._conflicts.is_over()

    def stored(self, *, succeeded: bool) -> bool:
        """Note whether an event could be stored; return whether that changed."""
        return self._troubles.stored(succeeded=succeeded)

    def probe(self) -> Probe:
        """Return the verdict, with what to do about it."""
        if (wrong := self._troubles.probe()) is not None:
            return wrong
        if self._polled_at is None:
            return Probe(healthy=False, detail=_NEVER_POLLED)
        now = self._clock.monotonic()
        age = now - self._polled_at[0]
        if age >= DEAF_AFTER.total_seconds():
            return Probe(healthy=False, detail=_DEAF.format(age=round(age)))
        detail = f"Telegram: the last poll succeeded {age:.0f} s ago."
        if self._back_at is not None and now - self._back_at < KEPT_FOR.total_seconds():
            detail += _AWAY_TOO_LONG.format(hours=round(self._away / timedelta(hours=1)))
        return Probe(healthy=True, detail=detail)


class WebhookHealth:
    """What Telegram says about the webhook, when it is asked; the intake reports, `probe` reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles = _Troubles()
        self._refusals = Quiet(clock)
        self._told_at: float | None = None
        self._state: WebhookState | None = None

    def told(self, state: WebhookState) -> bool:
        """Note what Telegram said; return whether that ended a trouble."""
        self._told_at = self._clock.monotonic()
        self._state = state
        return self._troubles.end()

    def failed(self, detail: str) -> bool:
        """Note a failure that may pass; return whether it began a trouble."""
        return self._troubles.note(_PASSING.format(detail=detail))

    def not_set(self, detail: str) -> bool:
        """Note that Telegram does not take the webhook; return whether it began a trouble."""
        return self._troubles.note(_NOT_SETTABLE.format(detail=detail))

    def refused(self, detail: str) -> None:
        """Note that the token is refused."""
        self._troubles.note(_REFUSED.format(detail=detail))

    def intruded(self) -> bool:
        """Note a call with a wrong secret; return whether it should be warned about."""
        return self._refusals.is_over()

    def stored(self, *, succeeded: bool) -> bool:
        """Note whether an event could be stored; return whether that changed."""
        return self._troubles.stored(succeeded=succeeded)

    def probe(self) -> Probe:
        """Return the verdict, with what to do about it."""
        if (wrong := self._troubles.probe()) is not None:
            return wrong
        if self._state is None or self._told_at is None:
            return Probe(healthy=False, detail=_NOT_YET_SET)
        host, waiting, failure = host_of(self._state.url), self._state.waiting, self._state.failure
        if waiting and failure:
            return Probe(
                healthy=False, detail=_UNDELIVERABLE.format(waiting=waiting, host=host, failure=failure.rstrip("."))
            )
        age = self._clock.monotonic() - self._told_at
        if age >= UNASKED_AFTER.total_seconds():
            return Probe(healthy=False, detail=_UNASKED.format(age=round(age)))
        return Probe(healthy=True, detail=_CALLABLE.format(host=host, waiting=waiting))


def host_of(url: str) -> str:
    """Return the host alone: the path of a webhook may be as secret as its secret."""
    return urlsplit(url).hostname or ""
