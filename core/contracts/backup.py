"""One moment of database and memory, copied while the host works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")

Refs: TypeAlias = Mapping[str, str]
"""A repository's references and the commits they name, such as `refs/heads/main`."""


class FrozenDatabase(Protocol):
    """The database as it was at one moment, however it goes on."""

    @property
    def revision(self) -> str:
        """The revision of its schema."""
        ...

    def copy_to(self, file: Path, *, stopped: Callable[[], bool]) -> None:
        """Write the database of that moment to a new file, once; blocks, for as long as the copy takes.

        What holds the moment is let go with the copy. `stopped` is asked every few megabytes; once it
        says so, this returns with half a file.

        Raises:
            StorageFull: No space for the copy.
            StoreUnavailable: The database cannot be read, or the file not written.
        """
        ...


class DatabaseFreezer(Protocol):
    """Gives moments of a database that is being written."""

    def frozen(self, beside: Callable[[], T]) -> AbstractAsyncContextManager[tuple[FrozenDatabase, T]]:
        """Freeze one moment, and give it together with what `beside` returned in it.

        While `beside` runs no transaction is committed; writers wait, so it has to be quick. They
        go on as soon as it is done, not when the block ends.

        Raises:
            StoreUnavailable: The database cannot be read now.
        """
        ...


class MemoryCopies(Protocol):
    """Copies the repositories of all memories. Blocking; may be called from any thread."""

    def heads(self) -> Mapping[str, Refs]:
        """Return the references of every memory that has a commit, by memory id; takes a moment.

        Raises:
            StoreUnavailable: A repository cannot be read.
        """
        ...

    def copy_to(self, folder: Path, memory_id: str, refs: Refs) -> None:
        """Make a repository in `folder` that holds exactly `refs` and what they lead to.

        It is named as the host names it, so `folder` can stand in for the folder of all memories.
        Commits that come meanwhile are not in it.

        Raises:
            StorageFull: No space for the copy.
            StoreUnavailable: The repository cannot be read, or the copy not written.
        """
        ...
