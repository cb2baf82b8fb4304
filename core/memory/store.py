"""The memory store: commits are admitted, merged where the head moved, and published or not at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from core.contracts.agents import Audience
from core.contracts.clock import Clock
from core.contracts.errors import MemoryConflict, MemoryRefused, NotFound, StoreUnavailable
from core.contracts.ids import Revision
from core.contracts.memory import (
    ChangeKind,
    CommitOrigin,
    MemoryChange,
    MemoryCommit,
    MemoryFile,
    MemorySnapshot,
    MemoryStore,
)
from core.memory.admission import Mask, Proposal, Question, Refusal, admit
from core.memory.changes import apply_changes
from core.memory.credentials import scrub
from core.memory.defaults import DEFAULT_FILES
from core.memory.frontmatter import clean
from core.memory.git import GitRepositories
from core.memory.reading import Reader
from core.memory.repository import (
    AUTHOR,
    CONVERSATION,
    PERSON,
    HeadMoved,
    Note,
    RefLocked,
    Repositories,
    Repository,
)
from core.memory.tree import Tree

logger = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=30)
_FIRST_WAIT = timedelta(milliseconds=10)
_LONGEST_WAIT = timedelta(milliseconds=500)
_MESSAGE_CHARS = 2_000
_SCRUBBED = " (secret values were replaced by placeholders)"

T = TypeVar("T")


class Hop(Protocol):
    """Runs a blocking operation where it disturbs nobody."""

    def __call__(self, operation: Callable[[], T]) -> Awaitable[T]: ...


async def _in_thread(operation: Callable[[], T]) -> T:
    return await asyncio.to_thread(operation)


@dataclass(slots=True)
class _Memory:
    """One open memory. `turn` orders the commits of this process; others are met by compare-and-swap."""

    repository: Repository
    reader: Reader
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


Propose = Callable[[Repository, str], Tree]
"""Returns the tree that should follow the head of the given revision."""


class VersionedStore:
    """A `MemoryStore` over any `Repository`."""

    def __init__(self, repositories: Repositories, clock: Clock, mask: Mask, hop: Hop) -> None:
        self._repositories = repositories
        self._clock = clock
        self._mask = mask
        self._hop = hop
        self._memories: dict[str, _Memory] = {}

    async def create(self, memory_id: str, files: Sequence[tuple[str, str]]) -> Revision:
        """Create the repository; without files it gets the default ones. See `MemoryStore`."""
        return await self._hop(lambda: self._create(memory_id, tuple(files) or DEFAULT_FILES))

    async def head(self, memory_id: str) -> Revision:
        return await self._hop(lambda: Revision(_head(self._memory(memory_id).repository, memory_id)))

    async def snapshot(self, memory_id: str, audience: Audience, *, at: Revision | None = None) -> MemorySnapshot:
        def take() -> MemorySnapshot:
            memory = self._memory(memory_id)
            return memory.reader.snapshot(_revision(memory.repository, memory_id, at), audience)

        return await self._hop(take)

    async def read(self, memory_id: str, path: str, audience: Audience, *, at: Revision | None = None) -> MemoryFile:
        def take() -> MemoryFile:
            memory = self._memory(memory_id)
            return memory.reader.file(_revision(memory.repository, memory_id, at), path, audience)

        return await self._hop(take)

    async def commit(
        self,
        memory_id: str,
        changes: Sequence[MemoryChange],
        *,
        message: str,
        origin: CommitOrigin,
        base: Revision | None = None,
    ) -> MemoryCommit:
        """Apply all changes as one commit. See `MemoryStore`.

        With `base` the changes are made to that revision and then merged into the newest one:
        for a writer that read it long ago and replaces whole files.
        """
        scrubbed = tuple(self._scrubbed(change) for change in changes)
        edit = _Edit(changes=scrubbed, origin=origin, base=base, memory_id=memory_id)
        note = self._note(message, origin, scrubbed=scrubbed != tuple(changes))
        return await self._land(memory_id, edit.propose, note, origin)

    async def check(self, memory_id: str, changes: Sequence[MemoryChange], *, origin: CommitOrigin) -> str | None:
        scrubbed = tuple(self._scrubbed(change) for change in changes)

        def judge() -> str | None:
            repository = self._memory(memory_id).repository
            head = _head(repository, memory_id)
            edit = _Edit(changes=scrubbed, origin=origin, base=None, memory_id=memory_id)
            question = self._judge(repository.tree(head), edit.propose(repository, head), origin)
            return None if question is None or origin.approved else question.text

        return await self._hop(judge)

    async def log(
        self, memory_id: str, *, path: str | None = None, limit: int = 20, audience: Audience | None = None
    ) -> tuple[MemoryCommit, ...]:
        """Return the newest commits first. See `MemoryStore`.

        With `audience` only what it may see is told: of paths, and of commits without any.
        """
        return await self._hop(lambda: self._memory(memory_id).reader.log(path=path, limit=limit, audience=audience))

    async def diff(self, memory_id: str, revision: Revision, audience: Audience) -> str:
        def compare() -> str:
            memory = self._memory(memory_id)
            return memory.reader.diff(_revision(memory.repository, memory_id, revision), audience)

        return await self._hop(compare)

    async def undo(self, memory_id: str, revision: Revision, *, origin: CommitOrigin) -> MemoryCommit:
        def reverse(repository: Repository, head: str) -> Tree:
            undone = repository.record(_revision(repository, memory_id, revision))
            return repository.merge(base=undone.revision, ours=head, theirs=repository.tree(undone.parent))

        def note_of() -> Note:
            repository = self._memory(memory_id).repository
            undone = repository.record(_revision(repository, memory_id, revision))
            note = self._note(f"Undo: {undone.message}", origin, scrubbed=False)
            return replace(note, trailers={**note.trailers, "Undoes": undone.revision})

        return await self._land(memory_id, reverse, await self._hop(note_of), origin)

    def _create(self, memory_id: str, files: Sequence[tuple[str, str]]) -> Revision:
        repository = self._repositories.create(memory_id)
        head = repository.head()
        if head is not None:
            return Revision(head)
        origin = CommitOrigin(author="lodger", audience=Audience())
        changes = [MemoryChange(kind=ChangeKind.CREATE, path=path, text=text) for path, text in files]
        empty = repository.tree(None)
        tree = apply_changes(empty, changes, lambda _: True)
        self._judge(empty, tree, origin)
        try:
            note = self._note("Begin the memory", origin, scrubbed=False)
            return Revision(repository.publish(tree, parent=None, note=note))
        except HeadMoved:  # another process created it meanwhile
            return Revision(_head(repository, memory_id))
        except RefLocked as error:
            raise StoreUnavailable(f"the memory {memory_id!r} is being written: {error}") from error

    async def _land(self, memory_id: str, propose: Propose, note: Note, origin: CommitOrigin) -> MemoryCommit:
        """Publish what `propose` makes of the head, again and again until no other writer came first."""
        memory = await self._hop(lambda: self._memory(memory_id))
        deadline = self._clock.monotonic() + PATIENCE.total_seconds()
        wait = _FIRST_WAIT
        async with memory.turn:
            while True:
                try:
                    return await self._hop(lambda: self._attempt(memory, memory_id, propose, note, origin))
                except HeadMoved:
                    reason = "other writers were always faster"
                except RefLocked as error:
                    reason = str(error)
                if self._clock.monotonic() >= deadline:
                    raise StoreUnavailable(f"the memory {memory_id!r} could not be written: {reason}")
                await self._clock.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)

    def _attempt(
        self, memory: _Memory, memory_id: str, propose: Propose, note: Note, origin: CommitOrigin
    ) -> MemoryCommit:
        repository = memory.repository
        head = _head(repository, memory_id)
        tree = propose(repository, head)
        question = self._judge(repository.tree(head), tree, origin)
        if question is not None and not origin.approved:
            rule = f"a person has to agree first: {question.text}"
            raise MemoryRefused(path=memory_id, rule=rule, fix="Ask, or change less at once.")
        note = replace(note, committed_at=self._clock.now())
        revision = repository.publish(tree, parent=head, note=note)
        fields = {"memory": memory_id, "revision": revision, "author": origin.author}
        logger.info("memory_committed", extra=fields)
        return memory.reader.commit_of(repository.record(revision))

    def _judge(self, old: Tree, new: Tree, origin: CommitOrigin) -> Question | None:
        if old.entries == new.entries:
            raise MemoryRefused(path="memory", rule="the change changes nothing", fix="It already reads so: go on.")
        verdict = admit(Proposal(old=old, new=new, origin=origin, mask=self._mask))
        if isinstance(verdict, Refusal):
            raise MemoryRefused(path=verdict.path, rule=verdict.rule, fix=verdict.fix)
        return verdict

    def _memory(self, memory_id: str) -> _Memory:
        known = self._memories.get(memory_id)
        if known is not None:
            return known
        repository = self._repositories.open(memory_id)
        if repository is None:
            raise NotFound("memory", memory_id)
        return self._memories.setdefault(memory_id, _Memory(repository, Reader(repository)))

    def _scrubbed(self, change: MemoryChange) -> MemoryChange:
        """Replace secrets by placeholders: what was said around them is worth keeping."""
        text, description = self._mask(scrub(change.text)), self._mask(scrub(change.description))
        return replace(change, text=text, description=description)

    def _note(self, message: str, origin: CommitOrigin, *, scrubbed: bool) -> Note:
        words = clean(message).strip()[:_MESSAGE_CHARS] or "Change memory"
        trailers = {
            AUTHOR: origin.author,
            CONVERSATION: origin.conversation_id,
            "Run": origin.run_id,
            PERSON: origin.person,
            "Approved": "yes" if origin.approved else "",
        }
        return Note(
            message=self._mask(scrub(words)) + (_SCRUBBED if scrubbed else ""),
            trailers=trailers,
            committed_at=self._clock.now(),
        )


@dataclass(slots=True, kw_only=True)
class _Edit:
    """Changes of one writer; they belong to the revision that was newest when they were made."""

    changes: Sequence[MemoryChange]
    origin: CommitOrigin
    base: str | None
    memory_id: str

    def propose(self, repository: Repository, head: str) -> Tree:
        self.base = head if self.base is None else _revision(repository, self.memory_id, Revision(self.base))
        old, new = repository.tree(self.base), repository.tree(head)
        edited = self._applied(old)
        if self.base == head:
            return edited
        try:
            return repository.merge(base=self.base, ours=head, theirs=edited)
        except MemoryConflict:
            if not self._repeatable(old, new):
                raise
            return self._applied(new)

    def _repeatable(self, old: Tree, new: Tree) -> bool:
        """Return whether making the changes again on newer files loses nothing that came meanwhile.

        An edit names the exact text it replaces: it fits or is refused. A whole file that is
        replaced or deleted has to be the one that the writer knew.
        """
        whole = (change.path for change in self.changes if change.kind in {ChangeKind.REPLACE, ChangeKind.DELETE})
        return all(old.entries.get(path) == new.entries.get(path) for path in whole)

    def _applied(self, tree: Tree) -> Tree:
        sees = (lambda _: True) if self.origin.author == "lodger" else self.origin.audience.sees
        return apply_changes(tree, self.changes, sees)


def _head(repository: Repository, memory_id: str) -> str:
    head = repository.head()
    if head is None:
        raise NotFound("memory", memory_id)
    return head


def _revision(repository: Repository, memory_id: str, at: Revision | None) -> str:
    if at is None:
        return _head(repository, memory_id)
    resolved = repository.resolve(at)
    if resolved is None:
        raise NotFound("revision", at)
    return resolved


class GitMemoryStore(VersionedStore):
    """A `MemoryStore` of bare git repositories under `base`; blocking work runs in threads."""

    def __init__(self, base: Path, clock: Clock, mask: Mask = str) -> None:
        super().__init__(GitRepositories(base, clock), clock, mask, _in_thread)


if TYPE_CHECKING:
    _conforms: type[MemoryStore] = VersionedStore
