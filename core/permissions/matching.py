"""Whether a rule speaks of a call: surely, possibly, or not."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from core.contracts.permissions import Subject
from core.contracts.tools import Access
from core.permissions.commands import simple_command
from core.permissions.guards import spellings
from core.permissions.patterns import GlobPattern, ShellPattern
from core.permissions.rules import Rule


class Match(StrEnum):
    """How surely a restricting rule meets a call."""

    YES = "yes"
    MAYBE = "maybe"
    """It cannot be ruled out: the call is asked about, in every mode."""
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call to be judged."""

    tool: str
    access: Access | None
    subject: Subject

    @property
    def command(self) -> str | None:
        """Return the shell line of the call, if it has one."""
        return None if self.access is None else self.access.command


def covers(rule: Rule, case: Case) -> bool:
    """Return whether an allow rule covers the whole call: every path, host and file it touches."""
    if not rule.concerns(case.tool, case.subject):
        return False
    match rule.pattern:
        case None:
            return True
        case ShellPattern() as pattern:
            return case.command is not None and pattern.covers(case.command)
        case GlobPattern() as pattern:
            targets = target_names(case)
            whole = case.command is None and bool(targets)
            return whole and all(pattern.matches(name) for target in targets for name in target)
        case _ as unreachable:
            assert_never(unreachable)


def meets(rule: Rule, case: Case) -> Match:
    """Return whether a deny, ask or always-ask rule meets anything that the call touches."""
    if not rule.concerns(case.tool, case.subject):
        return Match.NO
    if rule.pattern is None:
        return Match.YES
    if case.access is None:
        return Match.MAYBE
    match rule.pattern:
        case ShellPattern() as pattern:
            return _meets_line(pattern, case.command)
        case GlobPattern() as pattern:
            return _meets_targets(pattern, case)
        case _ as unreachable:
            assert_never(unreachable)


def target_names(case: Case) -> tuple[frozenset[str], ...]:
    """Return the names of everything a call touches; a path has one name for each way it is spelled."""
    if case.access is None:
        return ()
    paths = (*case.access.reads, *case.access.writes)
    others = (*case.access.network, *case.access.memory_writes)
    return tuple(spellings(path, case.subject) for path in paths) + tuple(frozenset({name}) for name in others)


def _meets_line(pattern: ShellPattern, line: str | None) -> Match:
    if line is None:
        return Match.MAYBE
    if pattern.finds(line):
        return Match.YES
    return Match.MAYBE if pattern.suspects(line) else Match.NO


def _meets_targets(pattern: GlobPattern, case: Case) -> Match:
    names = [name for target in target_names(case) for name in target]
    if any(pattern.matches(name) for name in names):
        return Match.YES
    if any(pattern.reaches_below(name) and _is_directory(name, case) for name in names):
        return Match.MAYBE
    return Match.NO if case.command is None else _meets_words(pattern, case.command)


def _meets_words(pattern: GlobPattern, line: str) -> Match:
    words = simple_command(line) or ()
    # A command may touch any path, so that no path rule can be ruled out.
    return Match.YES if any(pattern.matches(posixpath.normpath(word)) for word in words) else Match.MAYBE


def _is_directory(name: str, case: Case) -> bool:
    try:
        return (case.subject.workspace / name).is_dir()
    except (OSError, ValueError):
        return False
