"""Copies of memory repositories as they were at one moment, each with one pack of all it holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pygit2
from pygit2.enums import SortMode

from core.contracts.backup import MemoryCopies, Refs
from core.contracts.clock import Clock
from core.contracts.errors import StorageFull, StoreError, StoreUnavailable
from core.memory.git import GitRepositories

_SUFFIX: Final = ".git"


class GitCopies:
    """Copies the repositories under `directory`.

    It reads with handles of its own and takes no lock: objects never change, and a reference is
    replaced as a whole. So a copy of references read earlier is complete whatever was committed since.
    """

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock

    def heads(self) -> Mapping[str, Refs]:
        found: dict[str, Refs] = {}
        for path in sorted(self._directory.glob(f"*{_SUFFIX}")):
            try:
                refs = _references(pygit2.Repository(str(path)))
            except (pygit2.GitError, OSError) as error:
                raise StoreUnavailable(f"the memory repository {path.name!r} cannot be read: {error}") from error
            if refs:  # without any, it is being created just now
                found[path.name.removesuffix(_SUFFIX)] = refs
        return found

    def copy_to(self, folder: Path, memory_id: str, refs: Refs) -> None:
        source, target = self._directory / f"{memory_id}{_SUFFIX}", folder / f"{memory_id}{_SUFFIX}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            GitRepositories(folder, self._clock).create(memory_id)
            _pack(pygit2.Repository(str(source)), refs, target / "objects" / "pack")
            copy = pygit2.Repository(str(target))
            copy.set_ident("lodger", "lodger@lodger.invalid")
            for name, commit in refs.items():
                copy.references.create(name, commit)
        except (pygit2.GitError, KeyError, OSError) as error:
            raise _store_error(error, memory_id, source, folder) from error


def _references(repository: pygit2.Repository) -> Refs:
    references = repository.listall_reference_objects()
    return {each.name: str(each.target) for each in references if isinstance(each.target, pygit2.Oid)}


def _pack(source: pygit2.Repository, refs: Refs, folder: Path) -> None:
    """Write one pack with everything that the references lead to."""
    # One thread: the host's own work goes first.
    builder = pygit2.PackBuilder(source)
    builder.set_threads(1)
    seen: set[pygit2.Oid] = set()
    for commit in _commits(source, refs):
        builder.add(commit.id)
        _add_tree(source, builder, commit.tree_id, seen)
    builder.write(folder)


def _commits(source: pygit2.Repository, refs: Refs) -> Iterator[pygit2.Commit]:
    walker = source.walk(None, SortMode.TOPOLOGICAL)
    for commit in refs.values():
        walker.push(pygit2.Oid(hex=commit))
    yield from walker


def _add_tree(
    source: pygit2.Repository, builder: pygit2.PackBuilder, tree_id: pygit2.Oid, seen: set[pygit2.Oid]
) -> None:
    """Add a directory and all below it, each object once."""
    if tree_id in seen:
        return
    seen.add(tree_id)
    builder.add(tree_id)
    for entry in source[tree_id].peel(pygit2.Tree):
        if isinstance(entry, pygit2.Tree):
            _add_tree(source, builder, entry.id, seen)
        elif entry.id not in seen:
            seen.add(entry.id)
            builder.add(entry.id)


def _store_error(error: Exception, memory_id: str, source: Path, folder: Path) -> StoreError:
    """Say whether the disk is full: libgit2 forgets why a write failed, and takes back what it had written."""
    objects = sum(path.stat().st_size for path in (source / "objects").rglob("*") if path.is_file())
    if shutil.disk_usage(folder).free < objects:
        return StorageFull(f"the memory {memory_id!r} cannot be copied: no space left")
    return StoreUnavailable(f"the memory {memory_id!r} cannot be copied: {error}")


if TYPE_CHECKING:
    _conforms: type[MemoryCopies] = GitCopies
