"""The preview of one answer: one writer, the latest text wins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Self

from channels.contract import SentCallback
from channels.pacing import ChatPacer
from channels.slack.limits import Timing
from channels.slack.statuses import Statuses
from channels.slack.streams import LiveMessage
from channels.workers import Worker, outlast
from core.contracts.addresses import Address
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendUnknown, StoreError

logger = logging.getLogger(__name__)

_FIRST_STATUS = "thinking"


class Preview:
    """Shows a growing text as one message, and what the agent does below its thread.

    An answer that is complete within the preview delay gets neither. Calls keep the channel's pace;
    texts in between are skipped. When it is unknown whether the first post arrived it is looked for;
    where it is not found there is no second one, `on_sent` is not called, and the final text becomes a
    message of its own: a doubled preview would be worse than a late answer.

    Leaving the block stops it between two calls, never inside one, waits for the call that is under
    way, and ends what Slack would show on: the stream and the status.
    """

    def __init__(
        self,
        message: LiveMessage,
        statuses: Statuses,
        *,
        address: Address,
        pacer: ChatPacer,
        clock: Clock,
        timing: Timing,
        on_sent: SentCallback,
    ) -> None:
        self._message = message
        self._statuses = statuses
        self._address = address
        self._pacer = pacer
        self._clock = clock
        self._timing = timing
        self._on_sent = on_sent
        self._wanted = ""
        self._shown = ""
        self._external_id: str | None = None
        self._changed = asyncio.Event()
        self._status = _FIRST_STATUS
        self._told_status = ""
        self._is_at_work = False
        self._workers: tuple[Worker, ...] = ()

    async def __aenter__(self) -> Self:
        self._workers = (Worker(self._write), Worker(self._tell))
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        try:
            await outlast(*(worker.task for worker in self._workers))
        finally:
            await outlast(asyncio.create_task(self._end()))

    async def show(self, text: str) -> None:
        self._wanted = text.strip()  # as the platform does; a change of outer blanks is none
        if self._wanted and self._wanted != self._shown:
            self._changed.set()

    async def set_status(self, status: str) -> None:
        self._status = status.strip()

    async def _write(self, worker: Worker) -> None:
        await self._changed.wait()
        await self._clock.sleep(self._timing.preview_delay)
        writing = True
        while writing:
            await self._changed.wait()
            async with self._pacer.preview(self._address.chat):
                self._changed.clear()
                with worker.calling():
                    writing = await self._put(self._wanted)

    async def _put(self, text: str) -> bool:
        """Make `text` the visible one; return whether to go on with previews."""
        try:
            external_id = await self._message.show(text)
            self._shown = text
            if self._external_id is None:
                self._external_id = external_id
                self._status = self._told_status = ""  # Slack clears it with a message
                await self._on_sent(external_id)
        except SendLimited as error:
            self._pacer.hold(self._address.chat, error.retry_after)
            self._changed.set()
        except SendUnknown:
            return self._external_id is not None
        except (ChannelError, StoreError) as error:
            # The final tells whoever must know; without a recorded id it is a new message.
            logger.info("slack_preview_ended", extra={"reason": type(error).__name__})
            return False
        return True

    async def _tell(self, worker: Worker) -> None:
        """Keep the status below the thread what it shall be; Slack forgets it after a while."""
        await self._clock.sleep(self._timing.preview_delay)
        with worker.calling():
            self._is_at_work = True
            await self._statuses.begin(self._address)
        told_at = self._clock.monotonic()
        while True:
            is_old = self._clock.monotonic() - told_at >= self._timing.status_interval.total_seconds()
            if self._status != self._told_status or (self._status and is_old):
                told_at = self._clock.monotonic()
                with worker.calling():
                    self._told_status = self._status
                    await self._statuses.show(self._address, self._told_status)
            await self._clock.sleep(self._timing.edit_interval)

    async def _end(self) -> None:
        """End what would be shown on behind the block; the calls go out beside each other."""
        ending: list[Coroutine[Any, Any, None]] = [self._end_stream()]
        if self._told_status:
            ending.append(self._statuses.show(self._address, ""))
        if self._is_at_work:
            ending.append(self._statuses.end(self._address))
        await asyncio.gather(*ending)

    async def _end_stream(self) -> None:
        """End the stream; where that cannot be, the delivery of the final text does it."""
        if self._pacer.is_held(self._address.chat):
            return
        try:
            await self._message.end()
        except ChannelError as error:
            logger.info("slack_stream_left_open", extra={"reason": type(error).__name__})
