"""The update queue of a fake Telegram: confirmation by offset, long polls, one poller at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.telegram_chats import Refusal

_BATCH_LIMIT = 100
_TERMINATED = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


class UpdateQueue:
    """Updates that no poll has confirmed yet; `on_change` is called at every change."""

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        self.unconfirmed: list[dict[str, Any]] = []
        self.webhook_url = ""
        self.wanted: tuple[str, ...] = ()
        """The kinds of updates that the bot asked for last; empty: what Telegram sends without being asked."""
        self._clock = clock
        self._on_change = on_change
        self._ids = itertools.count(5001)
        self._poll: asyncio.Future[str] | None = None
        self._waiting: asyncio.Future[str] | None = None

    @property
    def is_polled(self) -> bool:
        """Whether a poll waits for updates right now."""
        return self._waiting is not None

    def push(self, update: dict[str, Any]) -> int:
        """Queue an update and return its id."""
        update_id = next(self._ids)
        self.unconfirmed.append({"update_id": update_id, **update})
        self.end_poll("updates")
        self._on_change()
        return update_id

    def end_poll(self, reason: str) -> None:
        """Let a waiting poll return; with reason `conflict` it fails."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(reason)

    async def get(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Carry out getUpdates.

        Raises:
            Refusal: 409, a webhook is set, or a newer poll came while this one waited.
        """
        if self.webhook_url:
            raise Refusal(409, _WEBHOOK)
        self.end_poll("conflict")
        self.wanted = tuple(params.get("allowed_updates") or self.wanted)
        self._confirm(int(params.get("offset") or 0))
        timeout = float(params.get("timeout") or 0)
        if not self.unconfirmed and timeout > 0:
            await self._wait(timeout)
        limit = min(_BATCH_LIMIT, max(1, int(params.get("limit") or _BATCH_LIMIT)))
        return self.unconfirmed[:limit]

    def _confirm(self, offset: int) -> None:
        if offset > 0:
            self.unconfirmed = [update for update in self.unconfirmed if update["update_id"] >= offset]
        elif offset < 0:
            self.unconfirmed = self.unconfirmed[offset:]
        self._on_change()

    async def _wait(self, seconds: float) -> None:
        poll = self._poll = asyncio.get_running_loop().create_future()
        timer = asyncio.ensure_future(self._clock.sleep(timedelta(seconds=seconds)))
        try:
            await asyncio.sleep(0)  # from here on the timer runs, so that time may be moved
            self._waiting = poll
            self._on_change()
            await asyncio.wait({poll, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            self._poll = None if self._poll is poll else self._poll
            self._waiting = None if self._waiting is poll else self._waiting
        if poll.done() and poll.result() == "conflict":
            raise Refusal(409, _TERMINATED)
