"""A process to be killed: writes memory commits for ever, or migrates a database, and says how far it is."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path

from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.store import GitMemoryStore
from core.stores.connection import Database

MEMORY = "memory-1"


async def commit_for_ever(root: Path) -> None:
    """Commit one text after the other, each commit printed once it is made."""
    store = GitMemoryStore(root, SystemClock(), str)
    origin = CommitOrigin(author="lodger", audience=Audience())
    for number in itertools.count():
        change = MemoryChange(
            kind=ChangeKind.REPLACE, path="human.md", text=f"Number {number} of {os.getpid()}.", description="human"
        )
        commit = await store.commit(MEMORY, [change], message=f"n{number}", origin=origin)
        print(commit.revision, flush=True)


def main() -> None:
    task, path = sys.argv[1], Path(sys.argv[2])
    print("begins", flush=True)
    if task == "commit":
        asyncio.run(commit_for_ever(path))
    else:
        asyncio.run(Database.open(path).close())
        print("migrated", flush=True)


if __name__ == "__main__":
    main()
