"""Taking a backup of database, memories and files while the host works."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from bot.backup_file import CHUNK_BYTES, DATABASE, FOLDERS, MEMORY, BackupError, BackupWriter
from core.contracts.backup import DatabaseFreezer, FrozenDatabase, MemoryCopies, Refs
from core.contracts.clock import Clock
from core.contracts.errors import StorageFull, StoreError
from core.tools.threads import StopFlag, run_to_end

logger = logging.getLogger(__name__)

BACKUPS: Final = "backups"
"""The folder in the data directory for backups that were not told where to go."""

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBackup:
    """A backup that is whole and on disk."""

    file: Path
    size_bytes: int
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """What a backup is of: the database and, in the same moment, the references of every memory."""

    database: FrozenDatabase
    memories: Mapping[str, Refs]
    at: datetime


class Backups:
    """Takes backups of the data directory; several may be taken at once.

    Database and memories are of one moment: a revision that the database names was published before
    that, so it is in its memory's copy. Files of conversations are read afterwards, and never change.
    """

    def __init__(self, *, data_dir: Path, database: DatabaseFreezer, memory: MemoryCopies, clock: Clock) -> None:
        self._data_dir = data_dir
        self._database = database
        self._memory = memory
        self._clock = clock

    async def events(self, file: str) -> AsyncIterator[Mapping[str, Any]]:
        """Take a backup and tell of it as JSON objects: `begun`, then `result` or `error`.

        Args:
            file: As in `take`.

        Raises:
            BackupError: Nothing can be written there; raised before the first object.
        """
        target = await run_to_end(self._target, file)
        yield {"type": "begun", "file": str(target)}
        try:
            taken = await self._taken(target)
        except (BackupError, StoreError) as error:
            yield {"type": "error", "error": str(error)}
        else:
            told = {"file": str(taken.file), "size_bytes": taken.size_bytes, "memories": taken.memories}
            yield {"type": "result", **told}

    async def take(self, file: str) -> TakenBackup:
        """Take a backup; when this returns it is whole and on disk. One that fails, or is cancelled, leaves nothing.

        Args:
            file: The absolute path of a new file, or of a folder for one with a name of its own.
                Empty: the folder `backups` of the data directory.

        Raises:
            BackupError: It cannot be written there, or the disk is full.
            StoreError: Database or memory cannot be read now.
        """
        return await self._taken(await run_to_end(self._target, file))

    async def _taken(self, target: Path) -> TakenBackup:
        stop = StopFlag()
        async with self._database.frozen(self._memory.heads) as (database, memories):
            moment = _Moment(database=database, memories=memories, at=self._clock.now())
            taken = await run_to_end(self._write, target, moment, stop, on_cancel=stop.set)
        fields = {"file": str(target), "size_bytes": taken.size_bytes, "memories": taken.memories}
        logger.info("backup_taken", extra=fields)
        return taken

    def _target(self, file: str) -> Path:
        """Return where the backup goes; its folder exists."""
        target = Path(file) if file else self._data_dir / BACKUPS
        if not target.is_absolute():
            raise BackupError(f"{file!r} is no absolute path")
        with _failures_told(target):
            if not file:
                target.mkdir(mode=0o700, exist_ok=True)
            if target.is_dir():
                target /= f"lodger-{self._clock.now():%Y%m%dT%H%M%SZ}.tar"
            if os.path.lexists(target):
                raise BackupError(f"{str(target)!r} exists already; name a new file")
            folder = target.parent.resolve(strict=True)
        if any(folder.is_relative_to((self._data_dir / name).resolve()) for name in (MEMORY, *FOLDERS)):
            raise BackupError(f"{str(folder)!r} is a part of what is backed up; name another folder")
        return target

    def _write(self, target: Path, moment: _Moment, stop: StopFlag) -> TakenBackup:
        """Write everything under another name, and give it its own when all of it is on disk."""
        with _failures_told(target), _working_folder(target.parent) as folder:
            archive = folder / "archive"
            with os.fdopen(os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                writer = BackupWriter(stream, on_chunk=lambda: _go_on(stop))
                self._add_database(writer, moment.database, folder / "copy", stop)
                self._add_memories(writer, moment.memories, folder / "repositories", stop)
                self._add_files(writer, folder)
                writer.finish(created_at=moment.at, schema=moment.database.revision, memories=moment.memories)
                stream.flush()
                os.fsync(stream.fileno())
                size_bytes = stream.tell()
            _go_on(stop)
            archive.rename(target)
            sync_folder(target.parent)
        return TakenBackup(file=target, size_bytes=size_bytes, memories=len(moment.memories))

    def _add_database(self, writer: BackupWriter, database: FrozenDatabase, copy: Path, stop: StopFlag) -> None:
        database.copy_to(copy, stopped=lambda: stop.is_set)
        _go_on(stop)
        _add(writer, DATABASE, copy)
        copy.unlink()

    def _add_memories(self, writer: BackupWriter, memories: Mapping[str, Refs], folder: Path, stop: StopFlag) -> None:
        for memory_id, refs in memories.items():
            _go_on(stop)
            self._memory.copy_to(folder, memory_id, refs)
            for path in _files_below(folder):
                _add(writer, f"{MEMORY}/{path.relative_to(folder).as_posix()}", path)
            shutil.rmtree(folder)

    def _add_files(self, writer: BackupWriter, folder: Path) -> None:
        for name in FOLDERS:
            for path in _files_below(self._data_dir / name):
                with _copied(path, folder) as copy:
                    if copy is not None:
                        writer.add(path.relative_to(self._data_dir).as_posix(), copy)


def _go_on(stop: StopFlag) -> None:
    if stop.is_set:
        raise BackupError("the backup was stopped")


def _add(writer: BackupWriter, name: str, path: Path) -> None:
    with path.open("rb") as file:
        writer.add(name, file)


def _files_below(root: Path) -> Iterator[Path]:
    """Yield the plain files below a folder; links are not followed."""
    for folder, _, names in os.walk(root, onerror=_unless_gone):
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink() and path.is_file():
                yield path


def _unless_gone(error: OSError) -> None:
    """Let no folder be left out in silence but one that is not there (any more)."""
    if not isinstance(error, FileNotFoundError):
        raise error


@contextmanager
def _copied(path: Path, folder: Path) -> Iterator[BinaryIO | None]:
    """Give a copy of a file that others may be writing or deleting; None where it is gone already."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    with os.fdopen(descriptor, "rb") as source, tempfile.TemporaryFile(dir=folder) as copy:
        shutil.copyfileobj(source, copy, CHUNK_BYTES)
        copy.flush()
        # The age of a file decides for how long it is kept.
        modified_at = os.fstat(descriptor).st_mtime_ns
        os.utime(copy.fileno(), ns=(modified_at, modified_at))
        copy.seek(0)
        yield copy


@contextmanager
def _working_folder(parent: Path) -> Iterator[Path]:
    """Give a private folder on the disk of the backup; it goes with the block, whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix=".lodger-backup-", suffix=".partial", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _failures_told(target: Path) -> Iterator[None]:
    """Say of what the operating system refuses that there is no backup, and why."""
    try:
        yield
    except StorageFull as error:
        raise _no_space(target) from error
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise _no_space(target) from error
        raise BackupError(f"no backup was written to {str(target)!r}: {error.strerror or error}") from error


def _no_space(target: Path) -> BackupError:
    return BackupError(
        f"no space left in {str(target.parent)!r}, so no backup was written and nothing was left there. "
        "It needs room for twice the database and once all the rest"
    )


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, where the file system can do that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
