"""Recorded speech, and who writes it down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A file of recorded speech, whole on this machine.

    `name` ends in the extension that belongs to `media_type`, which was found by the file's content:
    services go by either of them. `duration` is None where the file does not say it.
    """

    path: Path
    name: str
    media_type: str
    size_bytes: int
    duration: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechLimits:
    """The longest recording that is worth giving to a transcriber."""

    size_bytes: int = 25_000_000
    duration: timedelta = timedelta(minutes=10)


class Transcriber(Protocol):
    """Writes down what was said. May be called concurrently; the same recording may be given again."""

    @property
    def limits(self) -> SpeechLimits:
        """Return what it takes; whoever calls it holds them."""
        ...

    async def transcribe(self, recording: Recording) -> str:
        """Return the words, without secrets masked; empty where nothing was said.

        After a cancellation nothing of the call goes on.

        Raises:
            SpeechRefused: It cannot be done with this recording, or on this host as it is set up.
            SpeechFailed: It could not be done now.
        """
        ...
