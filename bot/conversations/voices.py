"""What was said in recordings: transcribed before their message is queued, or told in words why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.conversations.answers import Answers
from bot.conversations.recordings import recording_in
from core.contracts.addresses import MessageBody
from core.contracts.attachments import AttachmentStore, StoredAttachment
from core.contracts.clock import Clock
from core.contracts.delivery import InboxRow
from core.contracts.errors import SpeechFailed, SpeechRefused
from core.contracts.speech import Recording, SpeechLimits, Transcriber

logger = logging.getLogger(__name__)

RETRY_AFTER = (timedelta(seconds=2), timedelta(seconds=15), timedelta(minutes=1))
"""A recording that could not be transcribed is tried again after each of these, and then given up."""
STORED_CHARS = 50_000
"""The most that is kept of one transcript, whatever a service returns."""

NOT_SET_UP = "this host does not transcribe recordings"
NOTHING_SAID = "no words could be heard in it"
_NOT_DONE = "it could not be transcribed"
_OTHER_KIND = "it is no Ogg, MP3, M4A, WAV or WebM recording, or a damaged one"


@dataclass(slots=True)
class _Tries:
    """How often a recording was given to the transcriber in vain, and when it may be again."""

    failures: int
    not_before: datetime


class Voices:
    """Has the recordings of messages transcribed, one after the other, and keeps what was heard with its file.

    A file with a transcript, or with the reason why it has none, is done with: after a crash only what is
    missing is listened to again. How often one failed is counted in memory: a restart begins to count anew.
    """

    def __init__(
        self,
        *,
        attachments: AttachmentStore,
        answers: Answers,
        transcriber: Transcriber | None,
        clock: Clock,
        clean: Callable[[str], str],
    ) -> None:
        """Take what writes speech down, if anything does, and `clean`, which masks secrets in it."""
        self._attachments = attachments
        self._answers = answers
        self._transcriber = transcriber
        self._clock = clock
        self._clean = clean
        self._tries: dict[str, _Tries] = {}

    async def hear(self, rows: Sequence[InboxRow]) -> timedelta | None:
        """Transcribe what came with a message, or an album; return how long to wait before the next try.

        None: each recording has a transcript, or none for good. Where a message is nothing but recordings in
        which nothing was heard, its sender is told why.

        Raises:
            StorageFull, StoreUnavailable: What was heard could not be kept.
        """
        wait: timedelta | None = None
        for file in await self._stored(rows):
            later = await self._listen(file)
            wait = later if wait is None or (later is not None and later < wait) else wait
        if wait is None:
            await self._tell_unheard(rows)
        return wait

    async def _stored(self, rows: Sequence[InboxRow]) -> tuple[StoredAttachment, ...]:
        with_files = [row.id for row in rows if isinstance(row.event.body, MessageBody) and row.event.body.attachments]
        return await self._attachments.attachments_of(with_files) if with_files else ()

    async def _listen(self, file: StoredAttachment) -> timedelta | None:
        """Have one file transcribed, if it is a recording; return how long to wait where it has to be tried again."""
        if not file.path or file.transcript or file.unheard:
            return None
        tries = self._tries.get(file.id)
        if tries is not None and tries.not_before > self._clock.now():
            return tries.not_before - self._clock.now()
        recording = await asyncio.to_thread(recording_in, file)
        if recording is None:
            if file.media_type.lower().startswith("audio/"):
                await self._attachments.set_transcript(file.id, unheard=_OTHER_KIND)
            return None
        try:
            transcript = self._clean(await self._words(recording)).strip()[:STORED_CHARS]
            unheard = "" if transcript else NOTHING_SAID
        except SpeechRefused as error:
            transcript, unheard = "", error.detail
        except SpeechFailed as error:
            wait = self._next_try(file)
            logger.info("speech_failed", extra={"file": file.id, "error": error.detail, "last": wait is None})
            if wait is not None:
                return wait
            transcript, unheard = "", _NOT_DONE
        await self._attachments.set_transcript(file.id, transcript=transcript, unheard=unheard)
        self._tries.pop(file.id, None)
        return None

    async def _words(self, recording: Recording) -> str:
        if self._transcriber is None:
            raise SpeechRefused(NOT_SET_UP)
        refusal = _beyond(self._transcriber.limits, recording)
        if refusal:
            raise SpeechRefused(refusal)
        return await self._transcriber.transcribe(recording)

    def _next_try(self, file: StoredAttachment) -> timedelta | None:
        """Count a failure; return how long until the next try, None when there is none left."""
        known = self._tries.get(file.id)
        failures = 0 if known is None else known.failures
        if failures == len(RETRY_AFTER):
            return None
        wait = RETRY_AFTER[failures]
        self._tries[file.id] = _Tries(failures=failures + 1, not_before=self._clock.now() + wait)
        return wait

    async def _tell_unheard(self, rows: Sequence[InboxRow]) -> None:
        """Tell a sender of whom nothing has arrived; with other words, the agent can answer those."""
        files = await self._stored(rows)
        unheard = [file for file in files if file.unheard]
        has_words = any(isinstance(row.event.body, MessageBody) and row.event.body.text.strip() for row in rows)
        if unheard and not has_words and not any(file.transcript for file in files):
            lines = [f"- `{shown_name(file.name)}`: {file.unheard}" for file in unheard]
            await self._answers.answer(rows[0], "\n".join(["I could not hear what you said:", *lines]), about="voice")


def shown_name(name: str) -> str:
    """Return a file's name as it can stand between backquotes."""
    return " ".join(name.split()).replace("`", "'")


def _beyond(limits: SpeechLimits, recording: Recording) -> str:
    """Return why a recording is too much to be transcribed; empty where it is not."""
    if recording.size_bytes > limits.size_bytes:
        return f"it has more than {limits.size_bytes / 1_000_000:g} MB"
    if recording.duration is not None and recording.duration > limits.duration:
        minutes = limits.duration.total_seconds() / 60
        return f"it is longer than {minutes:g} minute{'' if minutes == 1 else 's'}"
    return ""
