"""Deleting what is old, a while after the start and then every few hours."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from core.contracts.clock import Clock
from core.contracts.errors import StoreError
from core.contracts.retention import RetentionLimits, RetentionStore

logger = logging.getLogger(__name__)

FIRST_AFTER = timedelta(minutes=2)
"""A start has better things to do."""
EVERY = timedelta(hours=6)


class Retention:
    """Deletes rows of the store and files of conversations once they are older than their limits."""

    def __init__(
        self, *, store: RetentionStore, data_dir: Path, limits: Callable[[], RetentionLimits], clock: Clock
    ) -> None:
        """Take the limits in force from `limits`, anew each time: a reload may change them."""
        self._store = store
        self._data_dir = data_dir
        self._limits = limits
        self._clock = clock

    async def run(self) -> None:
        """Prune until cancelled; what fails is tried again the next time."""
        await self._clock.sleep(FIRST_AFTER)
        while True:
            await self.prune()
            await self._clock.sleep(EVERY)

    async def prune(self) -> Mapping[str, int]:
        """Delete what is old now; log and return how much of each kind went. A kind that fails stops no other."""
        removed = {name: await self._pruned(name, prune, age) for name, (prune, age) in self._kinds().items()}
        if any(removed.values()):
            logger.info("retention_pruned", extra=removed)
        return removed

    def _kinds(self) -> Mapping[str, tuple[Callable[[datetime], Awaitable[int]], timedelta]]:
        limits = self._limits()
        return {
            "events": (self._store.prune_events, limits.events),
            "inbox_rows": (self._store.prune_inbox, limits.inbox),
            "session_lines": (self._store.prune_sessions, limits.sessions),
            "attachment_files": (self._files("attachments"), limits.attachments),
            "overflow_files": (self._files("overflow"), limits.overflow),
            "outgoing_files": (self._files("outgoing"), limits.attachments),
        }

    def _files(self, folder: str) -> Callable[[datetime], Awaitable[int]]:
        return lambda before: asyncio.to_thread(prune_files, self._data_dir / folder, before)

    async def _pruned(self, name: str, prune: Callable[[datetime], Awaitable[int]], age: timedelta) -> int:
        try:
            return await prune(self._clock.now() - age)
        except (StoreError, OSError) as error:
            logger.warning("retention_failed", extra={"kind": name, "error": str(error)})
            return 0


def prune_files(root: Path, before: datetime) -> int:
    """Delete the files below `root` that were last written earlier, and folders left empty; return how many files.

    A folder goes when nobody has put anything into it or taken anything out since then. Links below `root`
    are deleted like files and never followed, and what cannot be deleted is left for the next time.
    """
    if not root.is_dir():
        return 0
    oldest, removed = before.timestamp(), 0
    unused: set[tuple[int, int]] = set()
    for _, folders, files, descriptor in os.fwalk(root.resolve(), topdown=False, follow_symlinks=False):
        folder = os.fstat(descriptor)  # looked at first: what is deleted below makes it young
        if folder.st_mtime < oldest:
            unused.add((folder.st_dev, folder.st_ino))
        for name in (*files, *folders):
            with suppress(OSError):
                removed += _removed(name, descriptor, oldest, unused)
    return removed


def _removed(name: str, folder: int, oldest: float, unused: Collection[tuple[int, int]]) -> int:
    """Delete one entry of a folder if it may go; return 1 for a file that went."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        if (found.st_dev, found.st_ino) in unused:
            os.rmdir(name, dir_fd=folder)
        return 0
    if found.st_mtime >= oldest:
        return 0
    os.unlink(name, dir_fd=folder)
    return 1
