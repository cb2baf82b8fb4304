"""Permission modes: what each lets through by itself, behind the guards, denials and always-ask rules."""

from __future__ import annotations

from typing import assert_never

from core.contracts.agents import PermissionMode
from core.contracts.permissions import Subject
from core.contracts.tools import Access
from core.permissions.guards import is_in_workspace, is_obeyed

EDITING_TOOLS = frozenset({"apply_patch", "edit", "write"})


def mode_allows(tool: str, access: Access | None, subject: Subject) -> bool:
    """Return whether the subject's mode alone lets the call run.

    `accept_edits` means files of the workspace, not granted ones elsewhere, and not files that
    other programs obey.
    """
    match subject.mode:
        case PermissionMode.UNRESTRICTED:
            return True
        case PermissionMode.ACCEPT_EDITS:
            return tool in EDITING_TOOLS and access is not None and _only_edits(access, subject)
        case PermissionMode.ASK | PermissionMode.STRICT:
            return False
        case _ as unreachable:
            assert_never(unreachable)


def allows_by_itself(mode: PermissionMode) -> bool:
    """Return whether reading and own memory need no rule in this mode."""
    return mode is not PermissionMode.STRICT


def _only_edits(access: Access, subject: Subject) -> bool:
    if not access.writes or access.command is not None or access.network or access.memory_writes:
        return False
    paths = (*access.reads, *access.writes)
    return all(is_in_workspace(path, subject) and not is_obeyed(path, subject) for path in paths)
