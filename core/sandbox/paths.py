"""The files of a workspace, for the tools of the host: read, written and walked without leaving it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.contracts.errors import ToolError
from core.sandbox.beneath import LeadsOutside, open_beneath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# Without O_NONBLOCK a named pipe that a command left behind would hold the host for ever.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_LOOK = os.O_PATH if sys.platform == "linux" else _READ
_CHUNK_BYTES = 1 << 20

_REASONS: Mapping[int, str] = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "a part of the path is no folder",
    errno.EISDIR: "is a folder",
    errno.ELOOP: "a link leads in a circle",
    errno.EACCES: "permission denied",
    errno.ENOSPC: "no space is left on the disk; nothing was changed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What is known of a file; `modified_ns` counts from the epoch."""

    size_bytes: int
    modified_ns: int
    is_dir: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkEntry:
    """A file or folder that was found; `path` is relative to the workspace, with `/`."""

    path: str
    is_dir: bool
    size_bytes: int
    modified_ns: int


class BeneathFiles:
    """Files below `root`. Paths are relative to it, or absolute and written below it.

    Every method refuses what leads out, by `..` or by a link, and says so to the model. Links that
    stay inside may be read through; nothing is written through a link. The calls block: use them
    in a thread; several threads may use one object.

    All methods raise:
        ToolError: It cannot be done; the text is for the model.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def read(self, path: str, *, limit_bytes: int) -> bytes:
        """Return at most the first `limit_bytes` of a regular file."""
        with self._opened(path, _READ) as fd:
            _require_regular(os.fstat(fd), path)
            return _read_up_to(fd, limit_bytes)

    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file as a whole: a reader sees the old content or the new, never a part.

        Missing folders are made. What is new belongs to the owner of the workspace; a replaced
        file keeps its permissions.
        """
        folder, name = self._split(path)
        with self._translated(path), self._root_fd() as root_fd, _made_folder(root_fd, folder) as folder_fd:
            _replace(root_fd, folder_fd, name, data)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself; never a folder."""
        folder, name = self._split(path)
        with self._opened(folder, _FOLDER, shown=path) as folder_fd, self._translated(path):
            os.unlink(name, dir_fd=folder_fd)

    def stat(self, path: str) -> FileFacts:
        """Return the facts of a file or folder."""
        # O_PATH opens nothing: neither a device nor a pipe notices.
        with self._opened(path, _LOOK) as fd:
            facts = os.fstat(fd)
        return FileFacts(size_bytes=facts.st_size, modified_ns=facts.st_mtime_ns, is_dir=stat.S_ISDIR(facts.st_mode))

    def list(self, path: str) -> tuple[WalkEntry, ...]:
        """Return what stands in a folder, by name; links that lead nowhere or outside are left out."""
        with self._root_fd(path) as root_fd, self._translated(path):
            return tuple(_entries(root_fd, self._relative(path)))

    def walk(self, path: str) -> Iterator[WalkEntry]:
        """Yield everything below a folder, a folder before its content, by name.

        Links to folders are not entered. What vanishes or is closed to the host is left out.
        """
        start = self._relative(path)
        with self._root_fd(path) as root_fd:
            with self._translated(path):
                pending = _entries(root_fd, start)[::-1]
            while pending:
                entry = pending.pop()
                yield entry
                if entry.is_dir:
                    with contextlib.suppress(OSError):
                        pending += _entries(root_fd, entry.path)[::-1]

    def _relative(self, path: str) -> str:
        """Return the path below the root; the kernel decides about `..` and links later."""
        try:
            encoded = os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ToolError(f"{path!r} cannot be a file's name") from error
        if b"\0" in encoded:
            raise ToolError(f"{path!r} cannot be a file's name")
        if not path.startswith("/"):
            return path or "."
        below = os.path.normpath(path)
        if Path(below).is_relative_to(self._root):
            return str(Path(below).relative_to(self._root))
        raise _outside(path)

    def _split(self, path: str) -> tuple[str, str]:
        folder, name = os.path.split(self._relative(path))
        if name in {"", ".", ".."}:
            raise ToolError(f"{path!r} does not name a file")
        return folder or ".", name

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int, *, shown: str | None = None) -> Iterator[int]:
        with self._root_fd(path) as root_fd:
            with self._translated(shown or path):
                fd = open_beneath(root_fd, self._relative(path), flags)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def _root_fd(self, path: str = ".") -> Iterator[int]:
        """Open the workspace anew each time: it may have been moved away and made again."""
        try:
            fd = os.open(self._root, _FOLDER)
        except OSError as error:
            raise ToolError(f"the workspace of {path!r} cannot be opened: {error.strerror}") from error
        try:
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except LeadsOutside as error:
            raise _outside(path) from error
        except OSError as error:
            raise ToolError(f"{path!r}: {_REASONS.get(error.errno or 0, error.strerror)}") from error


def _outside(path: str) -> ToolError:
    return ToolError(f"{path!r} leads out of the workspace; only files inside it can be used")


def _require_regular(facts: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise ToolError(f"{path!r} is a folder")
    if not stat.S_ISREG(facts.st_mode):
        raise ToolError(f"{path!r} is not a regular file")


def _read_up_to(fd: int, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    room = limit_bytes
    while room > 0 and (part := os.read(fd, min(room, _CHUNK_BYTES))):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _entries(root_fd: int, folder: str) -> list[WalkEntry]:
    """Return what stands in a folder, by name, without links to folders and links that lead out."""
    fd = open_beneath(root_fd, folder, _FOLDER)
    try:
        with os.scandir(fd) as entries:
            names = sorted(entry.name for entry in entries)
    finally:
        os.close(fd)
    prefix = "" if folder == "." else f"{folder.rstrip('/')}/"
    found = (_entry(root_fd, prefix + name) for name in names)
    return [entry for entry in found if entry is not None]


def _entry(root_fd: int, path: str) -> WalkEntry | None:
    try:
        fd = open_beneath(root_fd, path, _LOOK | os.O_NOFOLLOW)
        try:
            facts = os.fstat(fd)
        finally:
            os.close(fd)
        if stat.S_ISLNK(facts.st_mode):
            return _linked_file(root_fd, path)
    except OSError:
        return None
    return WalkEntry(
        path=path, is_dir=stat.S_ISDIR(facts.st_mode), size_bytes=facts.st_size, modified_ns=facts.st_mtime_ns
    )


def _linked_file(root_fd: int, path: str) -> WalkEntry | None:
    fd = open_beneath(root_fd, path, _LOOK)
    try:
        facts = os.fstat(fd)
    finally:
        os.close(fd)
    if stat.S_ISDIR(facts.st_mode):
        return None
    return WalkEntry(path=path, is_dir=False, size_bytes=facts.st_size, modified_ns=facts.st_mtime_ns)


@contextlib.contextmanager
def _made_folder(root_fd: int, folder: str) -> Iterator[int]:
    try:
        fd = open_beneath(root_fd, folder, _FOLDER)
    except FileNotFoundError:
        _make_folders(root_fd, folder)
        fd = open_beneath(root_fd, folder, _FOLDER)
    try:
        yield fd
    finally:
        os.close(fd)


def _make_folders(root_fd: int, folder: str) -> None:
    above = "."
    for part in folder.split("/"):
        above_fd = open_beneath(root_fd, above, _FOLDER)
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=above_fd)
                if os.geteuid() == 0:
                    owner = os.fstat(root_fd)
                    os.chown(part, owner.st_uid, owner.st_gid, dir_fd=above_fd, follow_symlinks=False)
        finally:
            os.close(above_fd)
        above = f"{above}/{part}"


def _replace(root_fd: int, folder_fd: int, name: str, data: bytes) -> None:
    """Write beside the file and rename over it, both by the folder's descriptor."""
    old = _replaceable(folder_fd, name)
    temporary = f".lodger-{uuid.uuid4().hex}.part"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder_fd)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if os.geteuid() == 0:
                owner = old or os.fstat(root_fd)
                os.fchown(fd, owner.st_uid, owner.st_gid)
            os.fchmod(fd, stat.S_IMODE(old.st_mode) & 0o777 if old else 0o644)
        finally:
            os.close(fd)
        os.rename(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder_fd)
        raise


def _replaceable(folder_fd: int, name: str) -> os.stat_result | None:
    """Return the facts of the file that will be replaced; None when there is none."""
    try:
        facts = os.lstat(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(facts.st_mode):
        target = os.readlink(name, dir_fd=folder_fd)
        raise ToolError(f"{name!r} is a link to {target!r} and is not written through; name the file itself")
    _require_regular(facts, name)
    return facts
