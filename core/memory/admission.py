"""Whether a new tree may follow an old one: refused, asked about, or admitted. Pure.

What was in the memory before is never judged again: a file placed by hand stays readable and
every other file can still be changed. What a change touches has to be sound afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from core.contracts.memory import CommitOrigin
from core.memory import skills
from core.memory.audience import narrowest, widened_texts
from core.memory.credentials import scrub
from core.memory.layout import INDEX, POLICY, Place, index_of, is_audience, path_fault, place_of
from core.memory.policy import MemoryPolicy, policy_of, read_policy
from core.memory.tree import FILE_MODE, PROGRAM_MODE, Tree, changed_paths

SHRINKING_BYTES = 1_000
_SHOWN_CHARS = 1_500
_CORE = frozenset({Place.CORE, Place.PERSON})

Mask: TypeAlias = Callable[[str], str]
"""Replaces every registered secret value in a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No: whatever anybody says. All three fields are for the model."""

    path: str
    rule: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Only if an authorised person says yes to this."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A new tree that wants to follow an old one."""

    old: Tree
    new: Tree
    origin: CommitOrigin
    mask: Mask

    @cached_property
    def policy(self) -> MemoryPolicy:
        """The limits that the new tree has to keep."""
        return policy_of(self.new)

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Paths that differ, in order."""
        return tuple(changed_paths(self.old, self.new))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Changed paths that exist afterwards."""
        return tuple(path for path in self.changed if path in self.new.entries)

    @property
    def by_host(self) -> bool:
        """Whether the host itself is the author: it plants what it later protects."""
        return self.origin.author == "lodger" and not self.origin.person

    @property
    def by_agent(self) -> bool:
        """Whether no person is the author."""
        return self.origin.author == "agent"


def admit(proposal: Proposal) -> Refusal | Question | None:
    """Return why the new tree may not follow, what to ask a person first, or None: it may."""
    refusal = next(_refusals(proposal), None)
    if refusal is not None:
        return refusal
    questions = () if proposal.by_host else tuple(_questions(proposal))
    return Question(text="\n\n".join(questions)) if questions else None


def _refusals(proposal: Proposal) -> Iterator[Refusal]:
    for path in proposal.changed:
        yield from _judge_rights(proposal, path)
    for path in proposal.written:
        yield from _judge_path(proposal, path)
        yield from _judge_content(proposal, path)
    yield from _judge_clashes(proposal)
    yield from _judge_directories(proposal)
    yield from _judge_core_total(proposal)
    yield from (
        Refusal(path=path, rule=rule, fix=fix) for path, rule, fix in skills.faults(proposal.new, proposal.changed)
    )


def _judge_rights(proposal: Proposal, path: str) -> Iterator[Refusal]:
    """May this origin touch the file at all, as it was and as it becomes?"""
    trees = [tree for tree in (proposal.old, proposal.new) if path in tree.entries]
    audiences = [tree.audience(path) for tree in trees]
    hidden = [word for word in audiences if not proposal.origin.audience.sees(word)]
    if hidden and not proposal.by_host:
        rule = f"the file's audience {hidden[0]!r} is not among those who read this conversation"
        yield Refusal(
            path=path, rule=rule, fix="Write it where its audience is, or choose this conversation's audience."
        )
    protected = proposal.policy.protects(path) or (path in proposal.old.entries and _is_read_only(proposal.old, path))
    if protected and proposal.by_agent:
        yield Refusal(path=path, rule="the file is read-only", fix="Ask a person to change it, or write another file.")


def _is_read_only(tree: Tree, path: str) -> bool:
    return tree.document(path).flag("read_only")


def _judge_path(proposal: Proposal, path: str) -> Iterator[Refusal]:
    if proposal.new.entries[path].mode not in {FILE_MODE, PROGRAM_MODE}:
        yield Refusal(path=path, rule="it is a link or a special file", fix="Store the text itself.")
    if proposal.mask(scrub(path)) != path:
        yield Refusal(path="(a file)", rule="its name holds a secret", fix="Name it for what it is about.")
    if path in proposal.old.entries:
        return
    if fault := path_fault(path):
        yield Refusal(path=path, rule=fault, fix="Use short names of letters, digits, dashes and underscores.")
    if path.lower() == "archive.md":
        fix = "Move what should stop loading to files under archive/, with archive/MEMORY.md as their index."
        yield Refusal(path=path, rule="an archive at the root would be loaded into every prompt", fix=fix)
    if place_of(path) is Place.STRAY:
        fix = "Name it .md; data belongs into the workspace, a skill's files under skills/<name>/ beside SKILL.md."
        yield Refusal(path=path, rule="memory holds Markdown files only", fix=fix)
    depth = proposal.policy.depth
    if place_of(path) in {Place.DEFERRED, Place.PERSON} and path.count("/") >= depth:
        yield Refusal(path=path, rule=f"it lies deeper than {depth} levels", fix="Use <directory>/<name>.md.")


def _judge_content(proposal: Proposal, path: str) -> Iterator[Refusal]:
    match place_of(path):
        case Place.POLICY:
            problem = read_policy(proposal.new.read(path))
            if isinstance(problem, str):
                yield Refusal(path=path, rule=problem, fix='Write an object such as {"core_chars": 65536}.')
        case Place.CORE | Place.DEFERRED | Place.PERSON | Place.SKILL:
            yield from _judge_text(proposal, path)
            yield from _judge_header(proposal, path)
        case Place.COMPANION | Place.STRAY:
            pass
    text = proposal.new.read(path).decode("utf-8", "replace") if _is_small(proposal.new, path) else ""
    if proposal.mask(scrub(text)) != text:
        fix = "Leave the value out; secrets belong into the vault, memory may name them."
        yield Refusal(path=path, rule="it holds a secret or something shaped like one", fix=fix)


def _is_small(tree: Tree, path: str) -> bool:
    return tree.size_bytes(path) <= skills.COMPANION_BYTES


def _judge_text(proposal: Proposal, path: str) -> Iterator[Refusal]:
    new = proposal.new.document(path)
    old = proposal.old.document(path) if path in proposal.old.entries else None
    if new.escaped > (old.escaped if old else 0) or "\0" in new.raw:
        yield Refusal(path=path, rule="it is not UTF-8 text", fix="Write it as UTF-8 without NUL bytes.")
    if not new.editable:
        yield Refusal(path=path, rule=f"it cannot be loaded ({new.fault})", fix="Keep large data in the workspace.")
    limit = proposal.policy.file_chars
    own_limit = new.number("limit")
    if own_limit is not None and own_limit <= limit:
        limit = own_limit
    length = len(new.body)
    if length > limit and length > (len(old.body) if old else 0):
        fix = "Shorten it, or move parts to files in a directory with a MEMORY.md."
        yield Refusal(path=path, rule=f"{length:,} characters are more than its limit of {limit:,}", fix=fix)


def _judge_header(proposal: Proposal, path: str) -> Iterator[Refusal]:
    new = proposal.new.document(path)
    old = proposal.old.document(path) if path in proposal.old.entries else None
    if old is not None and old.header == new.header:
        return
    if new.fault and not new.escaped:
        fix = "Begin the file with ---, lines such as `description: text`, and a closing ---."
        yield Refusal(path=path, rule=f"the frontmatter cannot be read ({new.fault})", fix=fix)
    if not new.word("description").strip():
        fix = "Say in one line what the file is for: the description is what you will see when it is not loaded."
        yield Refusal(path=path, rule="the frontmatter has no description", fix=fix)
    if "audience" in new.fields and not is_audience(proposal.new.audience(path)):
        fix = "Use everyone, person:<id> or address:<channel>/<chat>."
        yield Refusal(path=path, rule=f"unknown audience {new.fields['audience']!r}", fix=fix)
    if "limit" in new.fields and not 1 <= (new.number("limit") or 0) <= proposal.policy.file_chars:
        rule = f"the limit is no number from 1 to {proposal.policy.file_chars:,}"
        yield Refusal(path=path, rule=rule, fix="Correct it or leave it out.")


def _judge_clashes(proposal: Proposal) -> Iterator[Refusal]:
    """No two paths that a case-blind disk holds for one, no file where a directory is."""
    added = [path for path in proposal.written if path not in proposal.old.entries]
    if not added:
        return
    files: dict[str, int] = {}
    directories: set[str] = set()
    for path in proposal.new.entries:
        folded = path.casefold()
        files[folded] = files.get(folded, 0) + 1
        while "/" in folded:
            folded = folded.rpartition("/")[0]
            directories.add(folded)
    for path in added:
        parents = {path.casefold().rsplit("/", depth)[0] for depth in range(1, path.count("/") + 1)}
        if files[path.casefold()] > 1 or path.casefold() in directories or parents & files.keys():
            yield Refusal(path=path, rule="another file or directory has that name", fix="Choose a different name.")


def _judge_directories(proposal: Proposal) -> Iterator[Refusal]:
    """A deferred directory that a change touches has its index afterwards."""
    touched = {index for path in proposal.changed if place_of(path) is Place.DEFERRED and (index := index_of(path))}
    filled = {index_of(path) for path in proposal.new.entries if place_of(path) is Place.DEFERRED}
    for index in sorted(touched & filled):
        if index not in proposal.new.entries:
            fix = f"Create {index} in the same commit; its description tells what the directory holds."
            yield Refusal(path=index, rule=f"a directory without {INDEX} would never be found again", fix=fix)


def _judge_core_total(proposal: Proposal) -> Iterator[Refusal]:
    if not any(place_of(path) in _CORE for path in proposal.written):
        return
    total, limit = _core_chars(proposal.new), proposal.policy.core_chars
    if total > limit and total > _core_chars(proposal.old):
        fix = "Move what is not needed in every conversation to a directory with a MEMORY.md."
        rule = f"core memory would have {total:,} characters, more than {limit:,} in all"
        yield Refusal(path=proposal.written[0], rule=rule, fix=fix)


def _core_chars(tree: Tree) -> int:
    """Return what one conversation can load: the root files and the largest of a person's own."""
    root = sum(len(tree.document(path).body) for path in tree.entries if place_of(path) is Place.CORE)
    people = (len(tree.document(path).body) for path in tree.entries if place_of(path) is Place.PERSON)
    return root + max(people, default=0)


def _questions(proposal: Proposal) -> Iterator[str]:
    if POLICY in proposal.changed and proposal.policy.looser_than(policy_of(proposal.old)):
        yield f"May the memory's policy in {POLICY} be loosened?"
    kept = {proposal.new.entries[path].blob_id for path in proposal.written}
    for path in proposal.changed:
        if path not in proposal.old.entries or (
            path not in proposal.new.entries and proposal.old.entries[path].blob_id in kept
        ):
            continue
        yield from _shrinking(proposal, path)
    for path, audience, text in widened_texts(proposal.old, proposal.new):
        yield f"May {_readers(audience)} see this text of {path}?\n{_excerpt(text)}"
    if proposal.policy.ask_shared:
        yield from _sharing(proposal)


def _shrinking(proposal: Proposal, path: str) -> Iterator[str]:
    before = proposal.old.size_bytes(path)
    if path not in proposal.new.entries:
        if place_of(path) in _CORE or before > SHRINKING_BYTES:
            yield f"May {path} ({before:,} bytes) be deleted?"
        return
    after = proposal.new.size_bytes(path)
    if before > SHRINKING_BYTES and after * 2 < before:
        yield f"May {path} shrink from {before:,} to {after:,} bytes?"


def _sharing(proposal: Proposal) -> Iterator[str]:
    readers = narrowest(proposal.origin.audience)
    for path in proposal.written:
        audience = proposal.new.audience(path)
        if audience not in readers:
            before = proposal.old.document(path).body.splitlines() if path in proposal.old.entries else []
            added = [line for line in proposal.new.document(path).body.splitlines() if line not in before]
            yield f"May {_readers(audience)} see what is added to {path}?\n{_excerpt(chr(10).join(added))}"


def _readers(audience: str) -> str:
    return "everyone who talks to the agent" if audience == "everyone" else f"{audience!r}"


def _excerpt(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}\n[{len(text):,} characters in all]"
