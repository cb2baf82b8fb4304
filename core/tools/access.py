"""Which calls may run side by side, by what they declared to touch. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from core.contracts.tools import Access


def conflicts(a: Access | None, b: Access | None, workspace: Path) -> bool:
    """Return whether two calls on one workspace must not overlap; symmetric.

    Reads share. A write excludes reads and writes of the same file, of folders around it and of
    what lies below it. A command, and a call that declares nothing (None), has the workspace
    alone. Writes of the memory exclude its reads and writes, so that a step's read sees the
    write before it. Free calls exclude nothing.
    """
    if _is_free(a) or _is_free(b):
        return False
    if a is None or b is None or a.command is not None or b.command is not None:
        return _touches(a, workspace) and _touches(b, workspace)
    return _files_conflict(a, b) or _files_conflict(b, a) or _memory_conflicts(a, b) or _memory_conflicts(b, a)


def _is_free(access: Access | None) -> bool:
    return access is not None and access.free


def _touches(access: Access | None, workspace: Path) -> bool:
    if access is None or access.command is not None:
        return True
    return _any_overlap((workspace,), (*access.reads, *access.writes))


def _files_conflict(writer: Access, other: Access) -> bool:
    return _any_overlap(writer.writes, (*other.reads, *other.writes))


def _memory_conflicts(writer: Access, other: Access) -> bool:
    return bool(writer.memory_writes) and (other.memory_reads or bool(other.memory_writes))


def _any_overlap(left: Iterable[Path], right: Iterable[Path]) -> bool:
    others = tuple(right)
    return any(overlap(a, b) for a in left for b in others)


def overlap(a: Path, b: Path) -> bool:
    """Return whether two paths are the same, or one contains the other."""
    return a.is_relative_to(b) or b.is_relative_to(a)
