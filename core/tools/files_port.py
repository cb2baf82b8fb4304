"""The port through which tools touch files: opened beneath one root, never through a link out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeAlias


class FileStat(Protocol):
    """What is known of one file or folder."""

    @property
    def size_bytes(self) -> int:
        """Return the length of a file; of a folder it says nothing."""
        ...

    @property
    def modified_ns(self) -> int:
        """Return the time of the last change, in nanoseconds since the epoch."""
        ...

    @property
    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        ...


class FileEntry(Protocol):
    """One file or folder met on a walk; `path` is relative to the root, with `/` between parts."""

    @property
    def path(self) -> str:
        """Return the path, relative to the root."""
        ...

    @property
    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return the length of a file."""
        ...


class WorkspaceFiles(Protocol):
    """Files beneath one root. Paths are relative to it, `.` is the root itself.

    Every method blocks and may be called from any thread. All may raise:
        ToolError: It cannot be done, also where a link or a `..` would lead out of the root; the
            text is for the model. The cause is the system's own error where there was one, so a
            `FileNotFoundError` for what does not exist.
    """

    def read(self, path: str, *, limit_bytes: int) -> bytes:
        """Return the first `limit_bytes` of a regular file, or all of a shorter one."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replace or create a file as a whole, with the folders it needs."""
        ...

    def stat(self, path: str) -> FileStat:
        """Return what is known of a file or folder."""
        ...

    def walk(self, path: str) -> Iterator[FileEntry]:
        """Yield everything below a folder, links not followed; what cannot be read is left out."""
        ...


FilesFactory: TypeAlias = Callable[[Path], WorkspaceFiles]
"""Opens the files beneath a root, such as `core.sandbox.paths.BeneathFiles`."""
