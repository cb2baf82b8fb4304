"""One revision's files as a value: paths to blobs, read when asked for, changed by making another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Protocol

from core.contracts.agents import EVERYONE
from core.memory import frontmatter
from core.memory.frontmatter import Document
from core.memory.layout import Place, declared_audience, place_of, skill_of

FILE_MODE = 0o100644
PROGRAM_MODE = 0o100755


@dataclass(frozen=True, slots=True)
class Entry:
    """A blob and its git mode."""

    blob_id: str
    mode: int = FILE_MODE


class Blobs(Protocol):
    """Where the committed bytes are. Safe to share between threads."""

    def read(self, blob_id: str) -> bytes:
        """Return a blob's bytes."""
        ...

    def size(self, blob_id: str) -> int:
        """Return a blob's size without loading it."""
        ...

    def load(self, blob_id: str, limit_bytes: int) -> bytes | int:
        """Return a blob's bytes, or its size when that is over the limit; memory stays bounded."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All files of one revision, or of one that could be published.

    `loose` holds the blobs that are not stored yet; `documents` is a cache by blob id that all
    trees of a repository share.
    """

    entries: Mapping[str, Entry]
    blobs: Blobs
    documents: MutableMapping[str, Document]
    loose: Mapping[str, bytes]

    def read(self, path: str) -> bytes:
        """Return the bytes of a file that exists."""
        blob_id = self.entries[path].blob_id
        return self.loose[blob_id] if blob_id in self.loose else self.blobs.read(blob_id)

    def size_bytes(self, path: str) -> int:
        """Return the size of a file that exists, without loading it."""
        blob_id = self.entries[path].blob_id
        return len(self.loose[blob_id]) if blob_id in self.loose else self.blobs.size(blob_id)

    def document(self, path: str) -> Document:
        """Return a file that exists, parsed; a blob of more than 1 MB is never loaded."""
        blob_id = self.entries[path].blob_id
        known = self.documents.get(blob_id)
        if known is None:
            known = self._load(path)
            self.documents[blob_id] = known
        return known

    def audience(self, path: str) -> str:
        """Return the audience word of a file; a skill's companions share that of its SKILL.md."""
        if place_of(path) is Place.COMPANION:
            path = skill_of(path)
        return declared_audience(path, self.document(path)) if path in self.entries else EVERYONE

    def with_files(self, files: Mapping[str, bytes | None]) -> Tree:
        """Return the tree with these files written, or removed where the bytes are None."""
        entries, loose = dict(self.entries), dict(self.loose)
        for path, data in files.items():
            if data is None:
                entries.pop(path, None)
                continue
            identifier = blob_id_of(data)
            loose[identifier] = data
            entries[path] = Entry(identifier, entries[path].mode) if path in entries else Entry(identifier)
        return replace(self, entries=entries, loose=loose)

    def _load(self, path: str) -> Document:
        blob_id = self.entries[path].blob_id
        data = self.loose.get(blob_id)
        loaded = self.blobs.load(blob_id, frontmatter.LARGE_BYTES) if data is None else data
        if isinstance(loaded, bytes) and len(loaded) <= frontmatter.LARGE_BYTES:
            return frontmatter.parse(loaded)
        return frontmatter.too_large(loaded if isinstance(loaded, int) else len(loaded))


def changed_paths(old: Tree, new: Tree) -> Iterator[str]:
    """Yield, in order, the paths whose blob or mode differs."""
    differing = dict(old.entries.items() ^ new.entries.items())
    yield from sorted(differing)


def blob_id_of(data: bytes) -> str:
    """Return the id that git gives these bytes."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()
