"""The form of a backup: a tar archive that ends with a manifest of its members, and with the manifest's sum.

Both stand at the end, so an archive that was cut off anywhere has none. Every byte that is restored is
covered: members by the manifest, the manifest by its sum, and the sum by being compared.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, Final

from core.contracts.backup import Refs
from core.contracts.errors import LodgerError

DATABASE: Final = "host.db"
MEMORY: Final = "memory"
FOLDERS: Final = ("attachments", "overflow")
"""Files of conversations, named by their messages."""

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
MANIFEST_SUM: Final = "manifest.sha256"
LEFT_OUT: Final = ("the configuration and its secrets", "workspaces", "logs")
CHUNK_BYTES: Final = 1 << 20

_LONGEST_MANIFEST_BYTES: Final = 1 << 28


class BackupError(LodgerError):
    """A backup cannot be taken or used; its text is for the person who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of a backup."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup says of itself.

    `release` is the Lodger that wrote it, `schema` the revision of its database, `memories` the
    references of each memory, `files` all members by their names.
    """

    release: str
    created_at: datetime
    schema: str
    memories: Mapping[str, Refs]
    files: Mapping[str, Member]


def this_release() -> str:
    """Return the version of this program; empty where it runs without having been installed."""
    try:
        return metadata.version("lodger")
    except metadata.PackageNotFoundError:
        return ""


class BackupWriter:
    """Writes one backup to a stream; without `finish` it is none."""

    def __init__(self, stream: BinaryIO, *, on_chunk: Callable[[], None]) -> None:
        """Call `on_chunk` again and again while members are written; what it raises ends the writing."""
        self._tar = tarfile.TarFile(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, copybufsize=CHUNK_BYTES)
        self._on_chunk = on_chunk
        self._files: dict[str, Member] = {}

    def add(self, name: str, source: BinaryIO) -> None:
        """Add a file that nobody writes any more, from its begin to its end."""
        state = os.fstat(source.fileno())
        counted = _Summed(source, self._on_chunk)
        self._tar.addfile(_entry(name, state.st_size, int(state.st_mtime)), counted)
        self._files[name] = Member(sha256=counted.sha256, size_bytes=state.st_size)

    def finish(self, *, created_at: datetime, schema: str, memories: Mapping[str, Refs]) -> Manifest:
        """Write manifest, sum and the archive's end."""
        manifest = Manifest(
            release=this_release(), created_at=created_at, schema=schema, memories=memories, files=self._files
        )
        data = _to_json(manifest)
        for name, content in ((MANIFEST, data), (MANIFEST_SUM, hashlib.sha256(data).hexdigest().encode() + b"\n")):
            self._tar.addfile(_entry(name, len(content), int(created_at.timestamp())), io.BytesIO(content))
        self._tar.close()
        return manifest


class _Summed(io.RawIOBase):
    """Reads from a file and sums up what went through."""

    def __init__(self, source: BinaryIO, on_chunk: Callable[[], None]) -> None:
        self._source = source
        self._on_chunk = on_chunk
        self._sum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        self._on_chunk()
        chunk = self._source.read(size)
        self._sum.update(chunk)
        return chunk

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()


def _entry(name: str, size_bytes: int, modified_at: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size_bytes, modified_at, 0o600
    return entry


class BackupReader:
    """An archive whose form and manifest are whole; its members are checked while they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read the manifest.

        Raises:
            BackupError: The archive is no backup, is cut off or damaged, or has another form.
        """
        self._stream = stream
        with _damage_told():
            self._tar = tarfile.TarFile(fileobj=stream, mode="r")
            *members, manifest, last = self._tar.getmembers()
            if (manifest.name, last.name) != (MANIFEST, MANIFEST_SUM):
                raise ValueError("no manifest at its end")
            self._check_end(last)
            self.manifest = _from_json(self._manifest_data(manifest, last))
            self._members = {member.name: member for member in members}
            if len(self._members) != len(members) or self._members.keys() != self.manifest.files.keys():
                raise ValueError("its members are not those of its manifest")
            for member in members:
                _check_member(member)

    def extract_to(self, folder: Path) -> None:
        """Write all members below an empty folder that only this user may enter, and check each.

        Every file is on disk when this returns.

        Raises:
            BackupError: A member is damaged.
            OSError: The folder cannot be written.
        """
        with _damage_told():
            for name, expected in self.manifest.files.items():
                for parent in reversed(Path(name).parents):
                    (folder / parent).mkdir(mode=0o700, exist_ok=True)
                if self._extract(self._members[name], folder / name) != expected:
                    raise ValueError(f"{name!r} is not what its manifest says")

    def _extract(self, entry: tarfile.TarInfo, target: Path) -> Member:
        summed, left = hashlib.sha256(), entry.size
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._stream.seek(entry.offset_data)
        with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
            while left and (chunk := self._stream.read(min(left, CHUNK_BYTES))):
                left -= len(chunk)
                summed.update(chunk)
                file.write(chunk)
            file.flush()
            # The age of a file decides for how long it is kept.
            os.utime(file.fileno(), (entry.mtime, entry.mtime))
            os.fsync(file.fileno())
        return Member(sha256=summed.hexdigest(), size_bytes=entry.size - left)

    def _manifest_data(self, manifest: tarfile.TarInfo, last: tarfile.TarInfo) -> bytes:
        data, told = self._content(manifest), self._content(last)
        if told != hashlib.sha256(data).hexdigest().encode() + b"\n":
            raise ValueError("its manifest is not what its sum says")
        return data

    def _content(self, entry: tarfile.TarInfo) -> bytes:
        if entry.type != tarfile.REGTYPE or entry.size > _LONGEST_MANIFEST_BYTES:
            raise ValueError(f"{entry.name!r} is no manifest")
        self._stream.seek(entry.offset_data)
        return self._stream.read(entry.size)

    def _check_end(self, last: tarfile.TarInfo) -> None:
        """Refuse an archive whose end is missing, even where nothing but zeros is."""
        data_end = last.offset_data + -(-last.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        self._stream.seek(last.offset_data + last.size)
        rest = self._stream.read(3 * tarfile.RECORDSIZE)
        whole = self._stream.tell() % tarfile.RECORDSIZE == 0
        if not whole or any(rest) or self._stream.tell() - data_end < 2 * tarfile.BLOCKSIZE:
            raise ValueError("its end is missing")


@contextmanager
def open_backup(file: Path) -> Iterator[BackupReader]:
    """Open a backup and read its manifest.

    Raises:
        BackupError: The file cannot be read, or see `BackupReader`.
    """
    try:
        stream = file.open("rb")
    except OSError as error:
        raise BackupError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    with stream:
        yield BackupReader(stream)


@contextmanager
def _damage_told() -> Iterator[None]:
    """Say of whatever goes wrong with foreign bytes that they are no whole backup."""
    try:
        yield
    except (
        tarfile.TarError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise BackupError(f"this is no whole backup: it is cut off, damaged or something else ({error})") from error


def _check_member(entry: tarfile.TarInfo) -> None:
    """Refuse whatever is no plain file in one of the places that a backup has."""
    first, *rest = entry.name.split("/")
    is_inside = entry.name == DATABASE or (first in {MEMORY, *FOLDERS} and rest)
    is_plain = "\0" not in entry.name and not {"", ".", ".."}.intersection(rest)
    if entry.type != tarfile.REGTYPE or not (is_inside and is_plain):
        raise ValueError(f"the member {entry.name!r} does not belong into a backup")


def _to_json(manifest: Manifest) -> bytes:
    data = {
        "format": FORMAT,
        **asdict(manifest),
        "created_at": manifest.created_at.astimezone(UTC).isoformat(),
        "left_out": LEFT_OUT,
    }
    return json.dumps(data, indent=1, sort_keys=True).encode("ascii") + b"\n"


def _from_json(data: bytes) -> Manifest:
    found: dict[str, Any] = json.loads(data)
    if found["format"] != FORMAT:
        raise BackupError(
            f"the backup has form {found['format']!r} and was written by Lodger {found['release']}; "
            f"this one knows form {FORMAT}. Install the newer release"
        )
    files = {name: Member(**member) for name, member in found["files"].items()}
    if DATABASE not in files:
        raise ValueError("it holds no database")
    return Manifest(
        release=found["release"],
        created_at=datetime.fromisoformat(found["created_at"]),
        schema=found["schema"],
        memories=found["memories"],
        files=files,
    )
