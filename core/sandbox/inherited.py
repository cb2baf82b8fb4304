"""Files that exist only to be handed to one started program."""

from __future__ import annotations

import contextlib
import json
import os
from types import TracebackType
from typing import Self


class InheritedFiles:
    """Owns descriptors from before a program starts until after it has ended.

    Each is made for one program: two that shared a descriptor would share its position.
    """

    def __init__(self) -> None:
        self._mine: list[int] = []
        self._theirs: list[int] = []

    @property
    def fds(self) -> tuple[int, ...]:
        """What the program inherits."""
        return tuple(self._theirs)

    def memory(self, data: bytes) -> int:
        """Return a file in memory that holds `data`, to be read by the program; never on disk."""
        fd = os.memfd_create("lodger")
        self._theirs.append(fd)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def report_pipe(self) -> tuple[int, int]:
        """Return (our non-blocking read end, the program's write end)."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        self._mine.append(read_end)
        self._theirs.append(write_end)
        return read_end, write_end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for fd in (*self._mine, *self._theirs):
            os.close(fd)


class StatusPipe:
    """What a starter reports about its command, one JSON object a line; readable at any time, without waiting."""

    def __init__(self, read_end: int) -> None:
        self._read_end = read_end
        self._text = ""

    def facts(self) -> dict[str, object]:
        """Return all that has been reported so far, as one object."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._read_end, 65_536):
                self._text += chunk.decode(errors="replace")
        facts: dict[str, object] = {}
        for line in self._text.splitlines(keepends=True):
            if line.endswith("\n"):
                facts.update(json.loads(line))
        return facts
