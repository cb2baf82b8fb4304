"""The lock of a workspace, over all conversations that share it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from core.contracts.tools import Access
from core.tools.access import conflicts, overlap


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """One call's place in the line; `granted` is done once it may run."""

    workspace: Path
    access: Access | None
    granted: asyncio.Future[None]

    def excludes(self, other: _Place) -> bool:
        # Workspaces may lie inside one another; what is shared is then the outer one.
        if not overlap(self.workspace, other.workspace):
            return False
        outer = min(self.workspace, other.workspace, key=lambda path: len(path.parts))
        return conflicts(self.access, other.access, outer)


class WorkspaceLocks:
    """Lets calls run together where their declared access allows it.

    Fair: a call waits for every conflicting call that came before it, running or waiting, and
    for nothing else; so no stream of reads can starve a command. Not reentrant. One instance
    serves one event loop; conversations of other processes are not seen.
    """

    def __init__(self) -> None:
        self._line: list[_Place] = []

    @asynccontextmanager
    async def hold(self, workspace: Path, access: Access | None) -> AsyncIterator[None]:
        """Hold the part of `workspace` that `access` declares; None holds all of it.

        A cancelled waiter leaves the line, and those behind it move up.
        """
        place = _Place(workspace, access, asyncio.get_running_loop().create_future())
        self._line.append(place)
        self._grant()
        try:
            await place.granted
            yield
        finally:
            self._line.remove(place)
            self._grant()

    @property
    def waiting(self) -> int:
        """How many calls stand in the line without running."""
        return sum(1 for place in self._line if not place.granted.done())

    def _grant(self) -> None:
        """Grant every place that excludes none before it. `_line` holds runners and waiters in order."""
        for index, place in enumerate(self._line):
            if not place.granted.done() and not any(place.excludes(earlier) for earlier in self._line[:index]):
                place.granted.set_result(None)
