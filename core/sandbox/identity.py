"""As which user a command runs: never as a privileged one that owns more than the workspace."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from core.contracts.errors import SandboxUnavailable
from core.sandbox.environment import TEMPORARY

_SYSTEM_FOLDERS = ("/", "/bin", "/dev", "/etc", "/lib", "/proc", "/run", "/sys", "/usr")
_NEVER_A_WORKSPACE = frozenset((*map(Path, _SYSTEM_FOLDERS), TEMPORARY))


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`dropped` says that the host is root and leaves it for this user."""

    uid: int
    gid: int
    dropped: bool


def checked_workspace(workspace: Path) -> Path:
    """Return the workspace without links.

    Raises:
        SandboxUnavailable: It is gone, no folder, or a folder of the system.
    """
    try:
        real = workspace.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SandboxUnavailable(
            f"the workspace {str(workspace)!r} cannot be reached ({error}); create it again or set another one"
        ) from error
    if not real.is_dir():
        raise SandboxUnavailable(f"the workspace {str(workspace)!r} is not a folder")
    if real in _NEVER_A_WORKSPACE:
        raise SandboxUnavailable(f"the workspace {str(workspace)!r} is a folder of the system; set a folder of its own")
    return real


def require_existing(path: Path) -> None:
    """Check a path that a command may read.

    Raises:
        SandboxUnavailable: It cannot be reached.
    """
    try:
        path.stat()
    except OSError as error:
        raise SandboxUnavailable(f"the read-only path {str(path)!r} cannot be reached: {error.strerror}") from error


def workspace_identity(workspace: Path) -> Identity:
    """Return who a command in `workspace` (a real path) runs as.

    Not root: the same user. Root: the workspace's owner, or root where root owns it; the sandbox
    then has to take every capability away.

    Raises:
        SandboxUnavailable: That user cannot enter or write the workspace; the text names the fix.
    """
    facts = workspace.stat()
    if os.geteuid() != 0:
        if not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
            raise SandboxUnavailable(
                f"uid {os.geteuid()} may not write the workspace {str(workspace)!r};"
                f" run: chown -R {os.geteuid()} {workspace}"
            )
        return Identity(uid=os.geteuid(), gid=os.getegid(), dropped=False)
    if facts.st_uid == 0:
        return Identity(uid=0, gid=0, dropped=False)
    identity = Identity(uid=facts.st_uid, gid=_primary_group(facts.st_uid), dropped=True)
    closed = next((folder for folder in reversed(workspace.parents) if not _may_enter(folder, identity)), None)
    if closed is not None:
        raise SandboxUnavailable(
            f"the workspace {str(workspace)!r} belongs to uid {identity.uid}, which may not enter {str(closed)!r};"
            f" run: chmod o+x {closed}, or set a workspace that it can reach"
        )
    return identity


def _primary_group(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def others_may_enter(workspace: Path) -> bool:
    """Whether any user may reach a workspace (a real path)."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in workspace.parents)


def _may_enter(folder: Path, identity: Identity) -> bool:
    """Judge by the mode bits; whether it really works is seen when the command starts."""
    facts = folder.stat()
    if facts.st_uid == identity.uid:
        return bool(facts.st_mode & stat.S_IXUSR)
    if facts.st_gid == identity.gid:
        return bool(facts.st_mode & stat.S_IXGRP)
    return bool(facts.st_mode & stat.S_IXOTH)
