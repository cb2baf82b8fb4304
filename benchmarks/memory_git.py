"""Memory of 1,000 files in git: compiling it into a prompt, once more unchanged, and committing into it.

In this process, on the real store, with a repository on disk. Compiling is the snapshot of one
revision and the prompt text; each cold round opens the store anew, so that nothing is kept from the
round before (the system's file cache is warm). A commit edits one file and is on disk when it
returns; each time is the caller's, thread hop included. Beside it, what pygit2 alone takes to read
every file of the same repository: the least a compile can cost.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pygit2

from benchmarks.figures import MS, NO_TARGET, Figure, Target, spread
from benchmarks.scale import Scale
from benchmarks.targets import COMMIT, COMPILE, UNCHANGED
from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.defaults import DEFAULT_FILES
from core.memory.store import GitMemoryStore
from core.prompts.compile import compile_prompt

_MEMORY = "memory-1"
_FILES = 1_000
_PER_DIRECTORY = 20
_CORE_CHARS = 65_536
_EVERYONE = Audience()
_AGENT = CommitOrigin(author="agent", audience=_EVERYONE)


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    rounds = scale.of(20, 5)
    with tempfile.TemporaryDirectory(prefix="lodger-bench-") as directory:
        base = Path(directory)
        created_ms = await _timed(_store(base).create(_MEMORY, (*DEFAULT_FILES, *_files())))
        cold = [await _timed(_compile(_store(base))) for _ in range(rounds)]
        yield _figure(f"memory of {_FILES:,} files: compile", cold, COMPILE)
        alone = [await _timed(asyncio.to_thread(_read_alone, base)) for _ in range(rounds)]
        yield _figure(f"memory of {_FILES:,} files: pygit2 alone reads", alone, NO_TARGET)
        store = _store(base)
        await _compile(store)
        unchanged = [await _timed(store.snapshot(_MEMORY, _EVERYONE)) for _ in range(rounds)]
        yield _figure(f"memory of {_FILES:,} files: unchanged snapshot", unchanged, UNCHANGED)
        commits = [await _timed(_commit(store, number)) for number in range(rounds)]
        yield _figure(f"memory of {_FILES:,} files: commit", commits, COMMIT)
        yield Figure(name=f"memory of {_FILES:,} files: create", value=created_ms, unit="ms", note="once")


def _store(base: Path) -> GitMemoryStore:
    return GitMemoryStore(base, SystemClock())


def _files() -> list[tuple[str, str]]:
    return [(_path(number), _text(number, 0)) for number in range(_FILES)]


def _path(number: int) -> str:
    """Return the path of a file; the first of each directory is its index."""
    place = number % _PER_DIRECTORY
    return f"topic{number // _PER_DIRECTORY:02}/" + (f"note{place:02}.md" if place else "MEMORY.md")


def _text(number: int, version: int) -> str:
    body = "A remembered line of ordinary length, as an agent writes it.\n" * 10
    return f"---\ndescription: What is known of subject {number}\n---\nVersion {version}.\n{body}"


async def _compile(store: GitMemoryStore) -> None:
    snapshot = await store.snapshot(_MEMORY, _EVERYONE)
    assert len(snapshot.files) == _FILES + len(DEFAULT_FILES)
    compile_prompt(agent_name="Lodger", snapshot=snapshot, audience=_EVERYONE, core_budget_chars=_CORE_CHARS)


def _read_alone(base: Path) -> int:
    """Read every file of the newest revision and return how many characters they have."""
    repository = pygit2.Repository(str(next(base.iterdir())))
    return _chars(repository.revparse_single("HEAD^{tree}"))


def _chars(entry: Any) -> int:
    if isinstance(entry, pygit2.Tree):
        return sum(_chars(inner) for inner in entry)
    return len(entry.data.decode())


async def _commit(store: GitMemoryStore, number: int) -> None:
    path = _path(number * 7 % _FILES)
    change = MemoryChange(kind=ChangeKind.REPLACE, path=path, text=_text(number, 1))
    await store.commit(_MEMORY, [change], message=f"revise {path}", origin=_AGENT)


async def _timed(work: Awaitable[object]) -> float:
    """Return the milliseconds that awaiting it took."""
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * MS


def _figure(name: str, times_ms: list[float], target: Target) -> Figure:
    middle = statistics.median(times_ms)
    return Figure(name=name, value=middle, unit="ms", target=target, note=spread(times_ms, "ms"))
