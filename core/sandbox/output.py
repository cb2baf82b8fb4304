"""Keeps both ends of a command's output in bounded memory; the whole of it goes to a file when it does not fit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)


class KeptOutput:
    """Head and tail of one stream. Not for concurrent use; `add` is called in the stream's order.

    Invariant: `head` is full before `_tail` gets its first byte, and `head + tail` is the whole
    stream until `dropped_bytes` grows.
    """

    def __init__(self, *, keep_bytes: int, spill: Path | None, spill_limit_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._total_bytes = 0
        self._spill = _Spill(spill, spill_limit_bytes) if spill is not None else None

    @property
    def head(self) -> bytes:
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        return bytes(self._tail[max(0, len(self._tail) - self._keep_bytes) :])

    @property
    def dropped_bytes(self) -> int:
        return self._total_bytes - len(self._head) - len(self.tail)

    @property
    def spilled(self) -> bool:
        """Whether the spill file holds the output, up to its limit."""
        return self._spill is not None and self._spill.holds_output

    async def add(self, chunk: bytes) -> None:
        """Take the next bytes; disk writes happen in a thread and their failure is no error here."""
        if self._spill is not None and self._total_bytes + len(chunk) > 2 * self._keep_bytes:
            start = b"" if self._spill.started else bytes(self._head + self._tail)
            if self._spill.wants_more:
                await asyncio.to_thread(self._spill.write, start + chunk)
        self._total_bytes += len(chunk)
        room = max(0, self._keep_bytes - len(self._head))
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Trimmed only when twice too long, so that small chunks do not move the buffer each time.
        if len(self._tail) > 2 * self._keep_bytes:
            del self._tail[: len(self._tail) - self._keep_bytes]

    async def close(self) -> None:
        """Close the spill file."""
        if self._spill is not None:
            await asyncio.to_thread(self._spill.close)


class _Spill:
    """The file that takes the whole output, up to a limit. A failed write gives it up for good."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._room_bytes = limit_bytes
        self._file: int | None = None
        self._failed = False
        self.started = False

    @property
    def holds_output(self) -> bool:
        return self.started and not self._failed

    @property
    def wants_more(self) -> bool:
        return not self._failed and self._room_bytes > 0

    def write(self, data: bytes) -> None:
        part = memoryview(data)[: self._room_bytes]
        self._room_bytes -= len(part)
        try:
            if self._file is None:
                self._file = self._open()
            while part:
                part = part[os.write(self._file, part) :]
        except OSError as error:  # no space left, above all: the command must not break for it
            logger.warning("command_output_not_spilled", extra={"error": str(error)})
            self._give_up()

    def _give_up(self) -> None:
        self._failed = True
        if self._file is not None:  # else what stands at that path is not ours
            self.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                os.close(file)

    def _open(self) -> int:
        self.started = True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
