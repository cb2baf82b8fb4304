"""Standard input as lines of bytes, whatever it is: a pipe, a file, a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Iterator

_CHUNK_BYTES = 65_536
_CHUNKS_AHEAD = 16


class LineSplitter:
    """Splits chunks at line ends. Of a line that is too long only its beginning is kept."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that a chunk completes, without their ends; one too long is cut just above the limit."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            self._keep(part)
            yield bytes(self._held)
            self._held.clear()
        self._keep(rest)

    def finish(self) -> Iterator[bytes]:
        """Yield what has no line end, if there is something."""
        if self._held:
            yield bytes(self._held)
            self._held.clear()

    def _keep(self, part: bytes) -> None:
        self._held += part[: max(0, self._limit + 1 - len(self._held))]


async def input_lines(limit_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield the lines of standard input until its end. The reader is left behind when nobody wants more."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_CHUNKS_AHEAD)

    def read() -> None:
        # Past Python's buffers: a thread that waits in those cannot be left when the program ends.
        chunk = b"begun"
        while chunk:
            room.acquire()
            chunk = os.read(descriptor, _CHUNK_BYTES)
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:  # the loop is closed: the program is about to end
                return

    threading.Thread(target=read, name="standard input", daemon=True).start()
    splitter = LineSplitter(limit_bytes)
    while chunk := await chunks.get():
        room.release()
        for line in splitter.feed(chunk):
            yield line
    for line in splitter.finish():
        yield line
