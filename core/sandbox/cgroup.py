"""A cgroup that bounds the number of processes where RLIMIT_NPROC cannot: for root it does not count."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

_UNIFIED = Path("/sys/fs/cgroup")
_PIDS_V1 = Path("/sys/fs/cgroup/pids")
_PREFIX = "lodger-"
_DEFAULT_PROCESSES = 512
_REMOVAL_TRIES = 50
_JOIN = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True, slots=True)
class ProcessCap:
    """Makes cgroups below `parent`, a folder of the pids controller that may be written."""

    parent: Path

    @classmethod
    async def find(cls) -> ProcessCap | None:
        """Return the cap this machine offers, proven by making a cgroup; None if none."""
        for parent in (_PIDS_V1, _UNIFIED):
            try:
                _sweep(parent)
                async with cls(parent).around((), _DEFAULT_PROCESSES):
                    return cls(parent)
            except OSError:
                continue
        return None

    @contextlib.asynccontextmanager
    async def around(self, argv: tuple[str, ...], processes: int | None) -> AsyncIterator[tuple[str, ...]]:
        """Yield `argv` behind a shell that enters a new cgroup; it is removed on leaving."""
        group = self.parent / f"{_PREFIX}{os.getpid()}-{uuid.uuid4().hex}"
        group.mkdir()
        try:
            (group / "pids.max").write_text(str(processes or _DEFAULT_PROCESSES))
            yield ("/bin/sh", "-c", _JOIN, str(group), *argv)
        finally:
            await asyncio.to_thread(_remove, group)


def _sweep(parent: Path) -> None:
    """Remove what a killed host left behind. Those of a living one stay: it may be about to use them."""
    for left in parent.glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                left.rmdir()


def _remove(group: Path) -> None:
    # The kernel lets go of an ended process a moment after its parent has seen it end.
    for _ in range(_REMOVAL_TRIES):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.001)
        else:
            return
    logger.warning("cgroup_not_removed", extra={"cgroup": str(group)})
