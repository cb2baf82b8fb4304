"""Bare git repositories without a working tree, one per memory, through libgit2.

A commit is objects first, then one compare-and-swap of `refs/heads/main`: a crash in between
leaves objects that nothing leads to, and those are never read.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, SortMode

from core.contracts.clock import Clock
from core.contracts.errors import InvalidInput, MemoryConflict, StorageFull, StoreError, StoreUnavailable
from core.memory.frontmatter import Document
from core.memory.repository import AUTHOR, PERSON, HeadMoved, Note, Record, RefLocked, compose, decompose
from core.memory.tree import Entry, Tree, changed_paths

logger = logging.getLogger(__name__)

HEAD = "refs/heads/main"
STALE_AFTER = timedelta(seconds=10)
"""libgit2 holds a ref lock for milliseconds; an older one belongs to a process that died."""

_MEMORY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REVISION = re.compile(r"[0-9a-f]{6,40}")
_PROBE_BYTES = 100_000
_CACHED_TREES = 4_096
_SMALL_OBJECT_BYTES = 10_000
"""zlib packs at most a thousandfold, so such an object holds at most 10 MB."""


class GitRepositories:
    """All memories under one directory, each as `<memory id>.git`."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        pygit2.settings.enable_fsync_gitdir(True)
        self._directory = directory
        self._clock = clock
        self._open: dict[str, GitRepository] = {}

    def open(self, memory_id: str) -> GitRepository | None:
        """Return an existing repository, its stale locks removed when it is first opened."""
        if memory_id in self._open:
            return self._open[memory_id]
        path = self._path(memory_id)
        if not (path / "HEAD").is_file():
            return None
        try:
            repository = GitRepository(path)
        except (pygit2.GitError, OSError) as error:
            raise StoreUnavailable(f"the memory repository {memory_id!r} cannot be opened: {error}") from error
        repository.sweep(self._clock.now())
        return self._open.setdefault(memory_id, repository)

    def create(self, memory_id: str) -> GitRepository:
        """Return the repository, made if need be; safe to call from several processes at once."""
        known = self.open(memory_id)
        if known is not None:
            return known
        path = self._path(memory_id)
        try:
            made = pygit2.init_repository(path, bare=True, initial_head="main")
            made.config["core.logAllRefUpdates"] = "always"
        except (pygit2.GitError, OSError) as error:
            raise _store_error(
                error, f"the memory repository {memory_id!r} cannot be created", self._directory
            ) from error
        return self._open.setdefault(memory_id, GitRepository(path))

    def _path(self, memory_id: str) -> Path:
        if not _MEMORY_ID.fullmatch(memory_id):
            raise InvalidInput(f"{memory_id!r} is no memory id")
        return self._directory / f"{memory_id}.git"


class _GitBlobs:
    """Reads blobs by their id."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository
        self._objects = f"{repository.path}objects"

    def read(self, blob_id: str) -> bytes:
        try:
            _, data = self._repository.odb.read(blob_id)
        except (KeyError, pygit2.GitError, OSError) as error:
            raise StoreUnavailable(f"object {blob_id} of the memory cannot be read: {error}") from error
        return data

    def size(self, blob_id: str) -> int:
        try:
            _, size_bytes = self._repository.odb.read_header(blob_id)
        except (KeyError, pygit2.GitError, OSError) as error:
            raise StoreUnavailable(f"object {blob_id} of the memory cannot be read: {error}") from error
        return size_bytes

    def load(self, blob_id: str, limit_bytes: int) -> bytes | int:
        if not self._is_small(blob_id) and (size_bytes := self.size(blob_id)) > limit_bytes:
            return size_bytes
        data = self.read(blob_id)
        return data if len(data) <= limit_bytes else len(data)

    def _is_small(self, blob_id: str) -> bool:
        """Return whether the object's own file bounds its size: a look that costs a fifth of `size`."""
        try:
            return os.lstat(f"{self._objects}/{blob_id[:2]}/{blob_id[2:]}").st_size <= _SMALL_OBJECT_BYTES
        except OSError:  # it is in a pack
            return False


class GitRepository:
    """One bare repository; the handle is shared by threads, which libgit2 allows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._git = pygit2.Repository(str(path))
        self._git.set_ident("lodger", "lodger@lodger.invalid")
        self._blobs = _GitBlobs(self._git)
        self._documents: MutableMapping[str, Document] = {}
        self._subtrees: dict[str, Mapping[str, Entry]] = {}
        self._published: set[str] = set()

    def head(self) -> str | None:
        try:
            return str(self._git.references[HEAD].target)
        except KeyError:
            return None

    def resolve(self, revision: str) -> str | None:
        head = self.head()
        if head is None or not _REVISION.fullmatch(revision):
            return None
        if revision == head or revision in self._published:
            return revision
        try:
            full = str(self._commit(revision).id)
        except (KeyError, ValueError):  # nothing, several things, or no commit
            return None
        if full != head and not self._git.descendant_of(head, full):
            return None
        self._published.add(full)
        return full

    def tree(self, revision: str | None) -> Tree:
        return self._tree_of(None if revision is None else self._commit(revision).tree)

    def record(self, revision: str) -> Record:
        return self._record_of(self._commit(revision))

    def history(self) -> Iterator[Record]:
        head = self.head()
        if head is not None:
            for commit in self._git.walk(pygit2.Oid(hex=head), SortMode.TOPOLOGICAL):
                yield self._record_of(commit)

    def merge(self, *, base: str, ours: str, theirs: Tree) -> Tree:
        try:
            merged = self._git.merge_trees(self._commit(base).tree, self._commit(ours).tree, self._write(theirs, base))
            if merged.conflicts is None:
                return self._tree_of(self._git[merged.write_tree(self._git)].peel(pygit2.Tree))
        except (pygit2.GitError, OSError) as error:
            raise _store_error(error, "the merge could not be stored", self._path) from error
        sides = [side.path for conflict in merged.conflicts for side in conflict if side is not None]
        raise MemoryConflict(tuple(sorted(set(sides))))

    def publish(self, tree: Tree, *, parent: str | None, note: Note) -> str:
        try:
            tree_id = self._write(tree, parent)
            author, committer = _signatures(note)
            parents: list[str | pygit2.Oid] = [] if parent is None else [parent]
            revision = self._git.create_commit(HEAD, author, committer, compose(note), tree_id, parents)
        except (pygit2.GitError, OSError) as error:
            raise self._publish_error(error, parent, note.committed_at) from error
        return str(revision)

    def sweep(self, now: datetime) -> bool:
        """Remove locks that a dead process left behind; return whether there was one."""
        found = False
        for lock in (*self._path.glob("*.lock"), *self._path.glob("refs/**/*.lock")):
            try:
                age = now - datetime.fromtimestamp(lock.stat().st_mtime, UTC)
                if age < STALE_AFTER:
                    continue
                lock.unlink()
            except FileNotFoundError:
                continue
            found = True
            fields = {"lock": lock.name, "memory": self._path.stem, "age_seconds": age.total_seconds()}
            logger.warning("memory_stale_lock_removed", extra=fields)
        return found

    def _publish_error(self, error: Exception, parent: str | None, now: datetime) -> Exception:
        """Tell apart: somebody was faster, somebody is writing, the disk refuses."""
        if self.head() != parent:
            return HeadMoved()
        if "lock" in str(error):
            return HeadMoved() if self.sweep(now) else RefLocked(str(error))
        return _store_error(error, "the commit could not be published", self._path)

    def _commit(self, revision: str) -> pygit2.Commit:
        return self._git[revision].peel(pygit2.Commit)

    def _record_of(self, commit: pygit2.Commit) -> Record:
        message, trailers = decompose(commit.message)
        return Record(
            revision=str(commit.id),
            parent=str(commit.parent_ids[0]) if commit.parent_ids else None,
            message=message,
            trailers={AUTHOR: commit.author.name, **trailers},
            committed_at=datetime.fromtimestamp(commit.commit_time, UTC),
        )

    def _tree_of(self, tree: pygit2.Tree | None) -> Tree:
        entries = {} if tree is None else self._flatten(tree)
        if len(self._documents) > 2 * len(entries) + 1_000:
            current = {entry.blob_id for entry in entries.values()}
            self._documents = {key: value for key, value in self._documents.items() if key in current}
        return Tree(entries=entries, blobs=self._blobs, documents=self._documents, loose={})

    def _flatten(self, tree: pygit2.Tree) -> Mapping[str, Entry]:
        """Return all files below `tree`; subtrees are remembered by their id."""
        tree_id = str(tree.id)
        known = self._subtrees.get(tree_id)
        if known is not None:
            return known
        files: dict[str, Entry] = {}
        for item in tree:
            if isinstance(item, pygit2.Tree):
                files.update({f"{item.name}/{path}": entry for path, entry in self._flatten(item).items()})
            else:
                files[item.name or ""] = Entry(str(item.id), int(item.filemode))
        if len(self._subtrees) >= _CACHED_TREES:
            self._subtrees.clear()
        self._subtrees[tree_id] = files
        return files

    def _write(self, tree: Tree, near: str | None) -> pygit2.Oid:
        """Store blobs and directories of `tree` that differ from revision `near`."""
        for data in tree.loose.values():
            self._git.create_blob(data)
        changes = {tuple(path.split("/")): tree.entries.get(path) for path in changed_paths(self.tree(near), tree)}
        return (
            self._rebuild(None if near is None else self._commit(near).tree, changes) or self._git.TreeBuilder().write()
        )

    def _rebuild(self, base: pygit2.Tree | None, changes: Mapping[tuple[str, ...], Entry | None]) -> pygit2.Oid | None:
        """Return the directory `base` with `changes` applied; None when nothing is left in it."""
        builder = self._git.TreeBuilder() if base is None else self._git.TreeBuilder(base)
        deeper: dict[str, dict[tuple[str, ...], Entry | None]] = {}
        for (name, *rest), entry in changes.items():
            if rest:
                deeper.setdefault(name, {})[tuple(rest)] = entry
            elif entry is not None:
                builder.insert(name, entry.blob_id, FileMode(entry.mode))
            elif builder.get(name) is not None:
                builder.remove(name)
        for name, below in deeper.items():
            existing = base[name] if base is not None and name in base else None
            subtree = self._rebuild(existing if isinstance(existing, pygit2.Tree) else None, below)
            if subtree is not None:
                builder.insert(name, subtree, FileMode.TREE)
            elif builder.get(name) is not None:
                builder.remove(name)
        return builder.write() if len(builder) else None


def _signatures(note: Note) -> tuple[pygit2.Signature, pygit2.Signature]:
    seconds = int(note.committed_at.timestamp())
    name = re.sub(r"[<>\x00-\x1f]", " ", note.trailers.get(AUTHOR, "")).strip() or "unknown"
    mailbox = re.sub(r"[^A-Za-z0-9._-]", "-", note.trailers.get(PERSON) or name) or "unknown"
    author = pygit2.Signature(name, f"{mailbox}@lodger.invalid", seconds, 0)
    return author, pygit2.Signature("lodger", "lodger@lodger.invalid", seconds, 0)


def _store_error(error: Exception, what: str, directory: Path) -> StoreError:
    """Say whether the disk is full.

    libgit2 forgets the reason of a failed object write and reports whatever failed before it
    (measured with pygit2 1.21), so a file of our own is written to find out.
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as refused:
        if refused.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StorageFull(f"{what}: no space left")
        return StoreUnavailable(f"{what}: {refused}")
    return StoreUnavailable(f"{what}: {error}")
