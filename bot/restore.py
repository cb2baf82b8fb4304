"""Putting a backup in the place of what a data directory holds."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from bot.backup import sync_folder
from bot.backup_file import DATABASE, FOLDERS, MEMORY, BackupError, Manifest, open_backup

UNPACKING: Final = ".unpacking-"
"""A backup that is being unpacked; worth nothing when its process is gone."""
RESTORED: Final = "restored-"
"""A backup that is whole and on disk, on its way to where the host looks."""
REPLACED: Final = "replaced-"
"""What the directory held before. It is never deleted."""

_PARTS: Final = (MEMORY, *FOLDERS, DATABASE)
"""The database last: without it a directory counts as new."""
_BESIDE: Final = {DATABASE: (f"{DATABASE}-wal", f"{DATABASE}-shm")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was restored, and where the former state is; None where there was none."""

    manifest: Manifest
    replaced: Path | None


def restore(file: Path, data_dir: Path, *, schemas: Collection[str], force: bool, now: datetime) -> Restored:
    """Replace database, memories and files of conversations by those of a backup.

    Nothing of the directory changes before all of the backup is unpacked beside it, checked and on
    disk. From then on it is restored whatever happens: `finish_restore` goes on where a crash ended
    this. To be called under the directory's lock.

    Args:
        file: The backup.
        data_dir: An existing data directory.
        schemas: The revisions of the database that this program can start from.
        force: Whether to move a former state aside.
        now: Names the folder that it is moved to.

    Raises:
        BackupError: The backup is damaged or of a newer release, the directory holds a state, or
            cannot be written. Nothing was changed.
    """
    try:
        finish_restore(data_dir)
        if not force and any(os.path.lexists(data_dir / part) for part in _PARTS):
            raise BackupError(f"{str(data_dir)!r} holds a database or memories; --force moves them aside")
        manifest, unpacked = _unpack(file, data_dir, schemas)
        unpacked.rename(data_dir / f"{RESTORED}{now:%Y%m%dT%H%M%S.%fZ}")
        sync_folder(data_dir)
        return Restored(manifest=manifest, replaced=finish_restore(data_dir))
    except OSError as error:
        raise BackupError(f"{str(data_dir)!r} cannot be restored: {error.strerror or error}") from error


def finish_restore(data_dir: Path) -> Path | None:
    """Bring a restore that was cut off to its end, and remove what one that never began left behind.

    To be called under the directory's lock before its database is opened; without either it does nothing.

    Returns:
        Where the former state was moved, if there was one.

    Raises:
        OSError: The directory cannot be written; calling again goes on.
    """
    for left in data_dir.glob(f"{UNPACKING}*"):
        shutil.rmtree(left)
    replaced: Path | None = None
    for restored in sorted(data_dir.glob(f"{RESTORED}*")):
        aside = data_dir / restored.name.replace(RESTORED, REPLACED)
        for part in _PARTS:
            if (restored / part).exists():  # otherwise it is in its place already
                _move_aside(data_dir, part, aside)
                (restored / part).rename(data_dir / part)
        sync_folder(data_dir)
        restored.rmdir()
        replaced = aside if aside.exists() else None
    return replaced


def _move_aside(data_dir: Path, part: str, aside: Path) -> None:
    for name in (part, *_BESIDE.get(part, ())):
        if os.path.lexists(data_dir / name):
            aside.mkdir(mode=0o700, exist_ok=True)
            (data_dir / name).rename(_free(aside / name))


def _free(path: Path) -> Path:
    """Return a path where nothing is: something may have come after a crash, and nothing is ever replaced."""
    free, number = path, 2
    while os.path.lexists(free):
        free, number = path.with_name(f"{path.name}.{number}"), number + 1
    return free


def _unpack(file: Path, data_dir: Path, schemas: Collection[str]) -> tuple[Manifest, Path]:
    """Return the manifest and a folder with all that the backup holds; in case of failure, nothing is left."""
    with open_backup(file) as backup:
        schema, release = backup.manifest.schema, backup.manifest.release
        if schema not in schemas:
            raise BackupError(
                f"the backup's database has schema {schema!r}, which this release does not know: "
                f"it was written by Lodger {release}. Install that release or a newer one"
            )
        folder = Path(tempfile.mkdtemp(prefix=UNPACKING, dir=data_dir))
        try:
            for part in (MEMORY, *FOLDERS):
                (folder / part).mkdir(mode=0o700)
            backup.extract_to(folder)
            for path, _, _ in os.walk(folder, topdown=False):
                sync_folder(Path(path))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return backup.manifest, folder
