"""The events of one run: stored first, then shown to everybody who follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

from core.contracts.clock import Clock
from core.contracts.errors import StaleClaim, StoreError
from core.contracts.events import RunEvent, RunEventBody, RunFinished, TextDelta
from core.contracts.ids import RunId
from core.contracts.runs import Claim, StopReason
from core.contracts.store import TranscriptStore

FLUSH_AFTER = timedelta(milliseconds=100)
FLUSH_BYTES = 2_000
HELD_BYTES = 64_000
"""With so much text waiting, the one who adds it waits as well: memory is bounded where a disk is slow."""


class RunLog:
    """Numbers a run's events, stores them in batches, and lets readers replay and follow.

    One writer, any number of readers. Only `flush` and `close` make events visible; both are
    called after the store has them.
    """

    def __init__(
        self, *, claim: Claim, run_id: RunId, stored: tuple[RunEvent, ...], store: TranscriptStore, clock: Clock
    ) -> None:
        self._claim = claim
        self._run_id = run_id
        self._store = store
        self._clock = clock
        self._visible = list(stored)
        self._last_seq = len(stored)
        self._pending: list[RunEvent] = []
        self._pieces: list[str] = []
        """The text that waits behind all of `_pending`; as one event it has the number `_last_seq`."""
        self._piece_bytes = 0
        self._pending_bytes = 0
        self._failure: StaleClaim | StoreError | None = None
        self._closed = False
        self.writing = asyncio.Lock()
        """Held from taking events until they are visible, so that their order is that of the store."""
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._due = asyncio.Event()

    @property
    def last_seq(self) -> int:
        """The number of the newest event, visible or not."""
        return self._last_seq

    def add(self, body: RunEventBody) -> None:
        """Number an event. Text deltas that wait together become one event, up to `FLUSH_BYTES`."""
        if isinstance(body, TextDelta):
            self._add_text(body.text)
        else:
            self._join_pieces()
            self._last_seq += 1
            self._pending.append(RunEvent(run_id=self._run_id, seq=self._last_seq, body=body))
        self._wanted.set()
        if self.is_full:
            self._due.set()

    def take_pending(self) -> tuple[RunEvent, ...]:
        """Hand over what is not stored yet, for the transaction that ends the run.

        Raises:
            StaleClaim, StoreError: A flush failed with it; nothing may be stored behind the gap.
        """
        if self._failure is not None:
            raise self._failure
        self._join_pieces()
        events = tuple(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        self._wanted.clear()
        self._due.clear()
        return events

    async def flush(self) -> None:
        """Store what waits, then show it."""
        async with self.writing:
            events = self.take_pending()
            if events:
                await self._store_events(events)
                self._show(events)

    async def flush_in_time(self) -> None:
        """Flush when the oldest waiting event is `FLUSH_AFTER` old or the log is full; runs until cancelled."""
        while True:
            await self._wanted.wait()
            if not self.is_full:
                await self._until_due()
            await self.flush()

    @property
    def is_full(self) -> bool:
        """Whether so much text waits that it is to be flushed at once."""
        return self._pending_bytes >= FLUSH_BYTES

    @property
    def is_flooded(self) -> bool:
        """Whether so much text waits that no more is to be added before it is stored."""
        return self._pending_bytes >= HELD_BYTES

    def close(self, stored: tuple[RunEvent, ...]) -> None:
        """Show the events that ended the run; they are stored."""
        self._closed = True
        self._show(stored)

    def abandon(self, error: str) -> None:
        """End the log for its readers when the store no longer takes the run's end."""
        if not self._closed:
            finished = RunFinished(stop_reason=StopReason.ERROR, error=error)
            self.close((RunEvent(run_id=self._run_id, seq=len(self._visible) + 1, body=finished),))

    async def follow(self, after: int) -> AsyncIterator[RunEvent]:
        """Yield visible events with `seq > after`, then new ones until the run has ended."""
        position = after
        while True:
            changed = self._changed
            for event in self._visible[position:]:
                position = event.seq
                yield event
            if self._closed and position >= len(self._visible):
                return
            if changed is self._changed:
                await changed.wait()

    def _add_text(self, text: str) -> None:
        if self._piece_bytes >= FLUSH_BYTES:
            self._join_pieces()
        if not self._pieces:
            self._last_seq += 1
        self._pieces.append(text)
        size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        self._piece_bytes += size_bytes
        self._pending_bytes += size_bytes

    def _join_pieces(self) -> None:
        if self._pieces:
            body = TextDelta(text="".join(self._pieces))
            self._pending.append(RunEvent(run_id=self._run_id, seq=self._last_seq, body=body))
            self._pieces.clear()
            self._piece_bytes = 0

    async def _store_events(self, events: tuple[RunEvent, ...]) -> None:
        try:
            await self._store.append_events(self._claim, events)
        except (StaleClaim, StoreError) as error:
            self._failure = error
            raise

    async def _until_due(self) -> None:
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._ring_in_time())
            await self._due.wait()
            timer.cancel()

    async def _ring_in_time(self) -> None:
        await self._clock.sleep(FLUSH_AFTER)
        self._due.set()

    def _show(self, events: tuple[RunEvent, ...]) -> None:
        self._visible.extend(events)
        self._changed.set()
        self._changed = asyncio.Event()
