"""What a store needs of a versioned tree: one line of commits, published by compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.memory.tree import Tree

CONVERSATION = "Conversation"
PERSON = "Person"
AUTHOR = "Author"


class HeadMoved(Exception):
    """Somebody else published first; nothing of this attempt is visible."""


class RefLocked(Exception):
    """Another writer holds the lock of the head; nothing of this attempt is visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One commit. `message` is what the author wrote, `trailers` what the host recorded."""

    revision: str
    parent: str | None
    message: str
    trailers: Mapping[str, str]
    committed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a new commit says about itself."""

    message: str
    trailers: Mapping[str, str]
    committed_at: datetime


class Repository(Protocol):
    """One memory's history. Blocking; may be called from several threads.

    Objects that no published commit leads to are never read.
    """

    def head(self) -> str | None:
        """Return the newest revision."""
        ...

    def resolve(self, revision: str) -> str | None:
        """Return the full name of a published revision, also for a prefix of at least 6 digits."""
        ...

    def tree(self, revision: str | None) -> Tree:
        """Return the files of a published revision; the empty tree for None."""
        ...

    def record(self, revision: str) -> Record:
        """Return a published commit."""
        ...

    def history(self) -> Iterator[Record]:
        """Yield the published commits, newest first."""
        ...

    def merge(self, *, base: str, ours: str, theirs: Tree) -> Tree:
        """Return `ours` with what `theirs` changed since `base`.

        Raises:
            MemoryConflict: Both changed the same lines.
        """
        ...

    def publish(self, tree: Tree, *, parent: str | None, note: Note) -> str:
        """Make `tree` the newest revision if `parent` still is; returns when it is on disk.

        Raises:
            HeadMoved, RefLocked: Try again.
            StorageFull, StoreUnavailable: Nothing was published.
        """
        ...


class Repositories(Protocol):
    """Where the memories of all agents are."""

    def open(self, memory_id: str) -> Repository | None:
        """Return an existing repository."""
        ...

    def create(self, memory_id: str) -> Repository:
        """Return the repository, made if need be."""
        ...


def compose(note: Note) -> str:
    """Return a commit message: the author's words, then the trailers as the last paragraph.

    There is always at least one trailer, so nothing in the author's words can pose as one.
    """
    trailers = [f"{name}: {' '.join(value.split())}" for name, value in note.trailers.items() if value.strip()]
    return f"{note.message.strip()}\n\n" + "\n".join(trailers) + "\n"


def decompose(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the author's words and the trailers of a commit message."""
    message, _, block = text.strip().rpartition("\n\n")
    lines = [line.partition(": ") for line in block.split("\n")]
    if not message or not all(separator for _, separator, _ in lines):
        return text.strip(), {}
    return message, {name: value for name, _, value in lines}
