"""The preview of one answer: one writer, the latest text wins."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, Self

from channels.contract import SentCallback
from channels.discord.errors import RETRY_SOON, OldEditsLimited
from channels.discord.limits import NONCE_LIFE, Timing
from channels.pacing import ChatPacer
from channels.workers import Worker, outlast
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendUnknown, StoreError

logger = logging.getLogger(__name__)


class PreviewPort(Protocol):
    """What a preview needs of its place. All methods raise `ChannelError`."""

    async def show(self, text: str, external_id: str | None) -> str:
        """Post the text, or put it in the place of that message's; return the message's id.

        Posted again within `NONCE_LIFE`, it returns the first message, as that looks.
        """
        ...

    async def typing(self) -> None:
        """Show that the bot writes, for about ten seconds."""
        ...


class Preview:
    """Shows a growing text as one message that is edited, and "typing" until it is there.

    An answer that is complete within the preview delay gets no preview. Edits keep the chat's
    pace; texts in between are skipped. When it is unknown whether the first post arrived it is made
    again, as long as Discord recognises it.

    Leaving the block stops it between two calls, never inside one, and waits for the call that
    is under way. Left without an error it makes a post of unknown outcome once more, so that the
    final can take the place of a preview that nobody knew of.
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
        """Take `chat`, by which the pacer knows what shares a pace."""
        self._port = port
        self._chat = chat
        self._pacer = pacer
        self._clock = clock
        self._timing = timing
        self._on_sent = on_sent
        self._wanted = ""
        self._shown = ""
        self._external_id: str | None = None
        self._in_doubt_since: float | None = None
        self._changed = asyncio.Event()
        self._is_typing = True
        self._workers: tuple[Worker, ...] = ()

    async def __aenter__(self) -> Self:
        self._workers = (Worker(self._write), Worker(self._type))
        return self

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        await outlast(*(worker.task for worker in self._workers))
        if error is None and self._external_id is None and self._in_doubt_since is not None:
            await outlast(asyncio.create_task(self._settle()))

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
                await self._begin(external_id)
        except SendUnknown:
            return self._external_id is not None or self._is_tried_again()
        except (OldEditsLimited, StoreError) as error:
            return self._end(error)
        except SendLimited as error:
            self._pacer.hold(self._chat, error.retry_after)
            self._changed.set()
        except ChannelError as error:
            return self._end(error)
        return True

    async def _begin(self, external_id: str) -> None:
        self._external_id = external_id
        self._is_typing = False
        if self._in_doubt_since is not None:
            self._changed.set()  # what is shown may be the first post, which held less
        await self._on_sent(external_id)

    def _is_tried_again(self) -> bool:
        """Take note of a first post of unknown outcome; return whether it may be made again."""
        now = self._clock.monotonic()
        if self._in_doubt_since is None:
            self._in_doubt_since = now
        self._pacer.hold(self._chat, RETRY_SOON)
        self._changed.set()
        return self._is_recognised()

    def _is_recognised(self) -> bool:
        """Return whether Discord would give the first post again."""
        since = self._in_doubt_since
        return since is not None and self._clock.monotonic() - since < NONCE_LIFE.total_seconds()

    async def _settle(self) -> None:
        if self._is_recognised():
            await self._put(self._wanted)

    def _end(self, error: Exception) -> bool:
        """Give up on previews: the final tells whoever must know; without a recorded id it is a new message."""
        logger.info("discord_preview_ended", extra={"reason": type(error).__name__})
        return False

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
        except ChannelError as error:
            # A limit of its own: what is written there has another budget.
            logger.debug("discord_typing_failed", extra={"reason": type(error).__name__})
