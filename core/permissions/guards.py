"""Guards: what is refused in every mode, before any rule is looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.contracts.permissions import Subject
from core.contracts.tools import Access

WORKSPACE_GUARD = "guard: workspace"
MEMORY_GUARD = "guard: memory"

# Files that other programs obey without being asked: writing them is more than editing text.
# `HEAD` is what makes a plain directory a git repository with a configuration of its own.
_OBEYED = frozenset({".bash_profile", ".bashrc", ".config", ".envrc", ".gnupg", ".profile", ".ssh", ".vscode", "head"})
_HARMLESS_GIT = frozenset({".gitignore", ".gitkeep"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A guard's no: `rule` names the guard, `reason` is for the model and for `/why`."""

    rule: str
    reason: str


def guard(access: Access, subject: Subject) -> Refusal | None:
    """Return why a call is refused whatever the mode and the rules say, or None.

    A path counts as the place where it really leads: `..` and links of the part that exists are
    resolved. The deepest root that holds it decides (workspace, granted or forbidden); a path
    that no root holds is outside. A folder that contains a forbidden one is refused, too.
    """
    for path in (*access.reads, *access.writes):
        reason = _refused_path(path, subject)
        if reason:
            return Refusal(rule=WORKSPACE_GUARD, reason=reason)
    for name in access.memory_writes:
        if _leaves_memory(name):
            return Refusal(rule=MEMORY_GUARD, reason=f"{name!r} is not a file of the agent's own memory")
    return None


def is_in_workspace(path: Path, subject: Subject) -> bool:
    """Return whether a path leads to a place in the workspace that no guard refuses."""
    real, root = _real(path, subject), _real(subject.workspace, subject)
    return real is not None and root is not None and real.is_relative_to(root) and not _refused_path(path, subject)


def is_obeyed(path: Path, subject: Subject) -> bool:
    """Return whether other programs take orders from this file, such as `.git/config`."""
    return any(
        part in _OBEYED or (part.startswith(".git") and part not in _HARMLESS_GIT)
        for name in spellings(path, subject)
        for part in PurePosixPath(name.lower()).parts
    )


def spellings(path: Path, subject: Subject) -> frozenset[str]:
    """Return a path as written and as it really leads, each relative to the workspace where inside."""
    return frozenset(_spellings(path, subject))


def _spellings(path: Path, subject: Subject) -> Iterator[str]:
    yield _relative(Path(os.path.normpath(subject.workspace / path)), subject.workspace)
    real, root = _real(path, subject), _real(subject.workspace, subject)
    if real is not None and root is not None:
        yield _relative(real, root)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _refused_path(path: Path, subject: Subject) -> str:
    real = _real(path, subject)
    if real is None:
        return f"{str(path)!r} cannot be resolved to a place in the workspace"
    forbidden = _roots(subject.forbidden, subject)
    if any(root.is_relative_to(real) for root in forbidden):
        return f"{str(path)!r} holds data of the host or of other agents"
    allowed = _roots((subject.workspace, *subject.granted), subject)
    depth = max((len(root.parts) for root in allowed if real.is_relative_to(root)), default=0)
    if depth == 0:
        return f"{str(path)!r} is outside the workspace {str(subject.workspace)!r}"
    if any(real.is_relative_to(root) and len(root.parts) >= depth for root in forbidden):
        return f"{str(path)!r} holds data of the host or of other agents"
    return ""


def _roots(paths: tuple[Path, ...], subject: Subject) -> tuple[Path, ...]:
    return tuple(root for path in paths if (root := _real(path, subject)) is not None)


def _real(path: Path, subject: Subject) -> Path | None:
    """Return where a path leads, or None where that cannot be said (`~`, a loop, a NUL)."""
    if path.parts[:1] and path.parts[0].startswith("~"):
        return None
    try:
        return (subject.workspace / path).resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _leaves_memory(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\0" in name or name.startswith("~")
