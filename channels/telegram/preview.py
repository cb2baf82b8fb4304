"""The preview of one answer: one writer, the latest text wins."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, Self

from channels.contract import SentCallback
from channels.pacing import ChatPacer
from channels.telegram.limits import Timing
from channels.workers import Worker, outlast
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendUnknown, StoreError

logger = logging.getLogger(__name__)


class PreviewPort(Protocol):
    """What a preview needs of its chat. All methods raise `ChannelError`."""

    async def show(self, text: str, external_id: str | None) -> str:
        """Post the text, or put it in the place of that message's; return the message's id."""
        ...

    async def typing(self) -> None:
        """Show that the bot writes, for a few seconds."""
        ...


class Preview:
    """Shows a growing text as one message that is edited, and "typing" until it is there.

    An answer that is complete within the preview delay gets no preview. Edits keep the chat's
    pace; texts in between are skipped. When it is unknown whether the first post arrived there
    is no second one, `on_sent` is not called, and the final text becomes a message of its own:
    a doubled preview would be worse than a late answer.

    Leaving the block stops it between two calls, never inside one, and waits for the call that
    is under way.
    """

    def __init__(
        self,
        port: PreviewPort,
        *,
        chat: str,
        pacer: ChatPacer,
        clock: Clock,
        timing: Timing,
        on_sent: SentCallback,
    ) -> None:
        self._port = port
        self._chat = chat
        self._pacer = pacer
        self._clock = clock
        self._timing = timing
        self._on_sent = on_sent
        self._wanted = ""
        self._shown = ""
        self._external_id: str | None = None
        self._changed = asyncio.Event()
        self._is_typing = True
        self._workers: tuple[Worker, ...] = ()

    async def __aenter__(self) -> Self:
        self._workers = (Worker(self._write), Worker(self._type))
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        await outlast(*(worker.task for worker in self._workers))

    async def show(self, text: str) -> None:
        self._wanted = text.strip()  # as the platform does; a change of outer blanks is none
        if self._wanted and self._wanted != self._shown:
            self._changed.set()

    async def set_status(self, status: str) -> None:
        self._is_typing = bool(status)

    async def _write(self, worker: Worker) -> None:
        await self._changed.wait()
        await self._clock.sleep(self._timing.preview_delay)
        writing = True
        while writing:
            await self._changed.wait()
            async with self._pacer.preview(self._chat):
                self._changed.clear()
                with worker.calling():
                    writing = await self._put(self._wanted)

    async def _put(self, text: str) -> bool:
        """Make `text` the visible one; return whether to go on with previews."""
        try:
            external_id = await self._port.show(text, self._external_id)
            self._shown = text
            if self._external_id is None:
                self._external_id = external_id
                self._is_typing = False
                await self._on_sent(external_id)
        except SendLimited as error:
            self._pacer.hold(self._chat, error.retry_after)
            self._changed.set()
        except SendUnknown:
            return self._external_id is not None
        except (ChannelError, StoreError) as error:
            # The final tells whoever must know; without a recorded id it is a new message.
            logger.info("telegram_preview_ended", extra={"reason": type(error).__name__})
            return False
        return True

    async def _type(self, worker: Worker) -> None:
        await self._clock.sleep(self._timing.preview_delay)
        while True:
            if self._is_typing and not self._pacer.is_held(self._chat):
                with worker.calling():
                    await self._show_typing()
            await self._clock.sleep(self._timing.typing_interval)

    async def _show_typing(self) -> None:
        try:
            await self._port.typing()
        except SendLimited as error:
            self._pacer.hold(self._chat, error.retry_after)
        except ChannelError as error:
            logger.debug("telegram_typing_failed", extra={"reason": type(error).__name__})
