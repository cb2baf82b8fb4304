"""Readers of one memory: snapshots, single files, history and diffs, for one audience each."""

from __future__ import annotations

import difflib
import itertools
import logging
from collections import OrderedDict
from typing import TypeAlias

from core.contracts.agents import Audience
from core.contracts.errors import NotFound
from core.contracts.ids import Revision
from core.contracts.memory import MemoryCommit, MemoryFile, MemorySnapshot
from core.memory.frontmatter import clean
from core.memory.layout import Place, place_of, to_file
from core.memory.policy import policy_of
from core.memory.repository import AUTHOR, CONVERSATION, Record, Repository
from core.memory.tree import Tree, changed_paths

logger = logging.getLogger(__name__)

_KEPT_SNAPSHOTS = 8
_FileKey: TypeAlias = tuple[str, str, str, int]
"""All that a reader's file follows from: path, blob id, audience word and the policy's characters."""
_PRIVATE = "(a change that not everybody here may see)"


class Reader:
    """Reads published revisions; what never changes is kept. Safe to share between threads."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._snapshots: OrderedDict[tuple[str, str], MemorySnapshot] = OrderedDict()
        self._newest_files: dict[_FileKey, MemoryFile] = {}
        """Those of the snapshot taken last: the next one makes only what a commit touched. Replaced, never changed."""
        self._warned: set[str] = set()

    def snapshot(self, revision: str, audience: Audience) -> MemorySnapshot:
        """Return all Markdown files that the audience may see, ordered by path."""
        key = (revision, audience.key)
        known = self._snapshots.get(key)
        if known is None:
            known = MemorySnapshot(revision=Revision(revision), files=self._files(revision, audience))
            self._snapshots[key] = known
            while len(self._snapshots) > _KEPT_SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return known

    def file(self, revision: str, path: str, audience: Audience) -> MemoryFile:
        """Return one file, whatever its kind.

        Raises:
            NotFound: There is none for this audience.
        """
        tree = self._repository.tree(revision)
        word = tree.audience(path)
        if path not in tree.entries or not audience.sees(word):
            raise NotFound("memory file", path)
        return self._file(tree, path, word, policy_of(tree).file_chars)

    def log(self, *, path: str | None, limit: int, audience: Audience | None) -> tuple[MemoryCommit, ...]:
        """Return the newest commits first."""
        commits = (self._told(record, audience) for record in self._repository.history())
        wanted = (commit for commit in commits if commit is not None and (path is None or path in commit.paths))
        return tuple(itertools.islice(wanted, max(limit, 0)))

    def commit_of(self, record: Record) -> MemoryCommit:
        """Return a commit with the paths it changed."""
        old, new = self._repository.tree(record.parent), self._repository.tree(record.revision)
        return _commit(record, tuple(changed_paths(old, new)))

    def diff(self, revision: str, audience: Audience) -> str:
        """Return a commit's unified diff as far as the audience may see both sides."""
        record = self._repository.record(revision)
        old, new = self._repository.tree(record.parent), self._repository.tree(revision)
        return "".join(
            _file_diff(old, new, path) for path in changed_paths(old, new) if _visible(old, new, path, audience)
        )

    def _told(self, record: Record, audience: Audience | None) -> MemoryCommit | None:
        old, new = self._repository.tree(record.parent), self._repository.tree(record.revision)
        paths = tuple(changed_paths(old, new))
        if audience is None:
            return _commit(record, paths)
        visible = tuple(path for path in paths if _visible(old, new, path, audience))
        if visible == paths:
            return _commit(record, paths)
        return _commit(record, visible, message=_PRIVATE) if visible else None

    def _files(self, revision: str, audience: Audience) -> tuple[MemoryFile, ...]:
        tree = self._repository.tree(revision)
        file_chars = policy_of(tree).file_chars
        known, files = self._newest_files, dict[_FileKey, MemoryFile]()
        for path in sorted(tree.entries):
            if not path.endswith(".md") or place_of(path) is Place.STRAY:
                continue
            word = tree.audience(path)
            if audience.sees(word):
                key = (path, tree.entries[path].blob_id, word, file_chars)
                files[key] = known.get(key) or self._file(tree, path, word, file_chars)
        self._newest_files = files
        return tuple(files.values())

    def _file(self, tree: Tree, path: str, audience: str, file_chars: int) -> MemoryFile:
        document = tree.document(path)
        blob_id = tree.entries[path].blob_id
        if document.fault and place_of(path) not in {Place.COMPANION, Place.POLICY} and blob_id not in self._warned:
            self._warned.add(blob_id)
            logger.warning("memory_file_malformed", extra={"path": path, "fault": document.fault})
        return to_file(path, document, audience=audience, file_chars=file_chars)


def _visible(old: Tree, new: Tree, path: str, audience: Audience) -> bool:
    return all(audience.sees(tree.audience(path)) for tree in (old, new) if path in tree.entries)


def _commit(record: Record, paths: tuple[str, ...], *, message: str | None = None) -> MemoryCommit:
    return MemoryCommit(
        revision=Revision(record.revision),
        parent=None if record.parent is None else Revision(record.parent),
        author=record.trailers.get(AUTHOR, ""),
        message=record.message if message is None else message,
        committed_at=record.committed_at,
        paths=paths,
        conversation_id=record.trailers.get(CONVERSATION, ""),
    )


def _file_diff(old: Tree, new: Tree, path: str) -> str:
    sides = [tree.document(path) if path in tree.entries else None for tree in (old, new)]
    if any(side is not None and not (side.editable and "\0" not in side.raw) for side in sides):
        return f"Binary file {path} changed\n"
    before, after = (_lines(side.text) if side else [] for side in sides)
    names = (f"a/{path}" if sides[0] else "/dev/null", f"b/{path}" if sides[1] else "/dev/null")
    return "".join(difflib.unified_diff(before, after, *names))


def _lines(text: str) -> list[str]:
    """Return lines that all end in a newline, also the last one, as a diff shows them."""
    lines = clean(text).split("\n")
    end = [f"{lines[-1]}\n"] if lines[-1] else []
    return [*(f"{line}\n" for line in lines[:-1]), *end]
