"""One owner of a data directory at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from core.contracts.errors import DirectoryInUse

LOCK_FILE: Final = "host.lock"


class DirectoryLock:
    """Held from `acquire` to `release`, or to the end of the process, however that comes.

    The lock is the operating system's (`flock`), so none is left behind by `kill -9`. The file
    stays: deleting it could let two owners hold locks on two files of one name. It holds the
    process id of its latest owner, for messages only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once; never waits.

        Raises:
            DirectoryInUse: Another process, or another lock of this one, holds it.
        """
        descriptor = os.open(self._directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = _read_owner(descriptor)
            os.close(descriptor)
            raise DirectoryInUse(str(self._directory), owner) from error
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up; without effect where it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def _read_owner(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None
