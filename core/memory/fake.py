"""An in-memory repository and the store on it: the same admission and history, without git."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from typing import TypeVar

from core.contracts.clock import Clock, FakeClock
from core.contracts.errors import MemoryConflict
from core.memory.admission import Mask
from core.memory.frontmatter import Document
from core.memory.repository import HeadMoved, Note, Record, compose
from core.memory.store import VersionedStore
from core.memory.tree import Tree

T = TypeVar("T")


class FakeMemoryStore(VersionedStore):
    """A `MemoryStore` that forgets everything with its process and never leaves the caller's thread."""

    def __init__(self, clock: Clock | None = None, mask: Mask = str) -> None:
        super().__init__(InMemoryRepositories(), clock or FakeClock(), mask, _inline)


async def _inline(operation: Callable[[], T]) -> T:
    return operation()


class InMemoryRepositories:
    """All memories of one process."""

    def __init__(self) -> None:
        self._all: dict[str, InMemoryRepository] = {}

    def open(self, memory_id: str) -> InMemoryRepository | None:
        return self._all.get(memory_id)

    def create(self, memory_id: str) -> InMemoryRepository:
        return self._all.setdefault(memory_id, InMemoryRepository())


class _Bytes:
    """Blobs in a dictionary."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    def read(self, blob_id: str) -> bytes:
        return self.stored[blob_id]

    def size(self, blob_id: str) -> int:
        return len(self.stored[blob_id])

    def load(self, blob_id: str, limit_bytes: int) -> bytes | int:
        data = self.stored[blob_id]
        return data if len(data) <= limit_bytes else len(data)


class InMemoryRepository:
    """One line of commits in a dictionary, newest last."""

    def __init__(self) -> None:
        self._commits: dict[str, tuple[Record, Tree]] = {}
        self._blobs = _Bytes()
        self._documents: MutableMapping[str, Document] = {}

    def head(self) -> str | None:
        return next(reversed(self._commits), None)

    def resolve(self, revision: str) -> str | None:
        found = [known for known in self._commits if known.startswith(revision)]
        return found[0] if len(found) == 1 and len(revision) >= 6 else None  # noqa: PLR2004 - as git.py

    def tree(self, revision: str | None) -> Tree:
        if revision is None:
            return Tree(entries={}, blobs=self._blobs, documents=self._documents, loose={})
        return self._commits[revision][1]

    def record(self, revision: str) -> Record:
        return self._commits[revision][0]

    def history(self) -> Iterator[Record]:
        return (record for record, _ in reversed(self._commits.values()))

    def merge(self, *, base: str, ours: str, theirs: Tree) -> Tree:
        before, head = self.tree(base), self.tree(ours)
        merged, conflicts = _merge(before, head, theirs)
        if conflicts:
            raise MemoryConflict(tuple(conflicts))
        return head.with_files(merged)

    def publish(self, tree: Tree, *, parent: str | None, note: Note) -> str:
        if self.head() != parent:
            raise HeadMoved
        self._blobs.stored.update(tree.loose)
        content = repr((parent, sorted(tree.entries.items()), compose(note), note.committed_at.isoformat()))
        revision = hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest()
        record = Record(
            revision=revision,
            parent=parent,
            message=note.message,
            trailers=note.trailers,
            committed_at=note.committed_at.replace(microsecond=0),
        )
        self._commits[revision] = (record, replace(tree, loose={}))
        return revision


def _merge(base: Tree, ours: Tree, theirs: Tree) -> tuple[Mapping[str, bytes | None], list[str]]:
    """Return what `theirs` changed since `base`, fitted to `ours`, and where that cannot be."""
    merged: dict[str, bytes | None] = {}
    conflicts: list[str] = []
    for path in sorted(base.entries.keys() | theirs.entries.keys()):
        before, wanted, present = (tree.entries.get(path) for tree in (base, theirs, ours))
        if wanted in {before, present}:
            continue
        if present == before:
            merged[path] = None if wanted is None else theirs.read(path)
            continue
        lines = _merge_lines(base, ours, theirs, path) if before and wanted and present else None
        if lines is None:
            conflicts.append(path)
        else:
            merged[path] = lines
    return merged, conflicts


def _merge_lines(base: Tree, ours: Tree, theirs: Tree, path: str) -> bytes | None:
    """Return a file with both sides' changes, or None where they touch or adjoin each other."""
    old, left, right = (tree.read(path).splitlines(keepends=True) for tree in (base, ours, theirs))
    edits = [*_edits(old, left), *_edits(old, right)]
    edits.sort(key=lambda edit: (edit[0], edit[1]))
    merged: list[bytes] = []
    position = -1
    for start, end, lines in edits:
        if start <= position:
            return None
        merged += [*old[max(position, 0) : start], *lines]
        position = end
    return b"".join([*merged, *old[max(position, 0) :]])


def _edits(old: list[bytes], new: list[bytes]) -> Iterator[tuple[int, int, list[bytes]]]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield start, end, new[new_start:new_end]
