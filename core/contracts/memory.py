"""An agent's memory: Markdown files in its own git repository; only committed bytes are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from core.contracts.agents import EVERYONE, Audience
from core.contracts.ids import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFile:
    """One file of one revision. `body` is the text behind the frontmatter.

    Paths are relative POSIX paths. `core` files (root `*.md`) are compiled into the prompt.
    """

    path: str
    body: str
    description: str = ""
    limit_chars: int = 20_000
    read_only: bool = False
    audience: str = EVERYONE
    hidden: bool = False
    core: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySnapshot:
    """One revision as one audience may see it, files ordered by path."""

    revision: Revision
    files: tuple[MemoryFile, ...]


class ChangeKind(StrEnum):
    """What a change does to one file."""

    CREATE = "create"
    REPLACE = "replace"
    EDIT = "edit"
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One change of one file.

    CREATE and REPLACE take `text` (with or without frontmatter; `description` adds or changes
    it). EDIT replaces `old` by `text`; `old` must stand exactly once in the file. MOVE takes
    `target`. DELETE takes nothing more.
    """

    kind: ChangeKind
    path: str
    text: str = ""
    old: str = ""
    target: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOrigin:
    """Where a commit comes from: who is named, and how wide it may write.

    `author` is `agent`, `lodger` or a person's name; `audience` bounds what may be touched.
    """

    author: str
    audience: Audience
    conversation_id: str = ""
    run_id: str = ""
    person: str = ""
    approved: bool = False
    """An authorised person approved a change that admission would otherwise ask about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCommit:
    """One entry of the history."""

    revision: Revision
    parent: Revision | None
    author: str
    message: str
    committed_at: datetime
    paths: tuple[str, ...]
    conversation_id: str = ""


class MemoryStore(Protocol):
    """All agents' repositories. May be called concurrently; commits of one agent are ordered."""

    async def create(self, memory_id: str, files: Sequence[tuple[str, str]]) -> Revision:
        """Create the repository with one admitted commit by `lodger`; one with a HEAD is left alone.

        Raises:
            MemoryRefused: The files break the rules.
        """
        ...

    async def head(self, memory_id: str) -> Revision:
        """Return the newest revision.

        Raises:
            NotFound: No repository, or one without a commit.
        """
        ...

    async def snapshot(self, memory_id: str, audience: Audience, *, at: Revision | None = None) -> MemorySnapshot:
        """Return all Markdown files of a revision that `audience` may see.

        Raises:
            NotFound: No such repository or revision.
        """
        ...

    async def read(self, memory_id: str, path: str, audience: Audience, *, at: Revision | None = None) -> MemoryFile:
        """Return one file.

        Raises:
            NotFound: No such file for this audience.
        """
        ...

    async def commit(
        self, memory_id: str, changes: Sequence[MemoryChange], *, message: str, origin: CommitOrigin
    ) -> MemoryCommit:
        """Apply all changes to the newest revision as one commit, or none of them.

        Published by compare-and-swap; when the head moved the change is merged three-way and
        admitted again.

        Raises:
            MemoryRefused: Admission refused; names file, rule and fix.
            MemoryConflict: The merge left conflicts.
            StorageFull: Nothing was published.
        """
        ...

    async def check(self, memory_id: str, changes: Sequence[MemoryChange], *, origin: CommitOrigin) -> str | None:
        """Dry-run: return the question a person must answer first, or None.

        Raises:
            MemoryRefused: The change would be refused whatever anybody says.
        """
        ...

    async def log(
        self, memory_id: str, *, path: str | None = None, limit: int = 20, audience: Audience | None = None
    ) -> tuple[MemoryCommit, ...]:
        """Return the newest commits first, optionally those that touch `path`.

        With an `audience`, what it may not see is left out: paths, and messages that speak of them.
        """
        ...

    async def diff(self, memory_id: str, revision: Revision, audience: Audience) -> str:
        """Return the unified diff of one commit against its parent, as far as `audience` may see.

        Raises:
            NotFound: No such commit.
        """
        ...

    async def undo(self, memory_id: str, revision: Revision, *, origin: CommitOrigin) -> MemoryCommit:
        """Revert one commit by a new one.

        Raises:
            NotFound: No such commit.
            MemoryConflict: Later commits touched the same lines.
            MemoryRefused: The result breaks the rules.
        """
        ...
