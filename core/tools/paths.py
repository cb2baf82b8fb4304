"""From the path a model wrote to a file beneath a root the call may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from core.contracts.errors import ToolError
from core.contracts.tools import ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or folder: the root it is opened beneath, and its path from there (`.` is the root)."""

    root: Path
    path: str

    @property
    def absolute(self) -> Path:
        """Return the absolute path, not resolved through links."""
        return self.root if self.path == "." else self.root / self.path


def absolute_path(path: str, workspace: Path) -> Path:
    """Return the absolute, normalised path that `path` means, wherever it leads.

    Purely lexical: what is declared before a call is exactly what the call opens, and opening
    beneath the root refuses links that would make the two differ.

    Raises:
        ToolError: The path is empty.
    """
    if not path.strip():
        raise ToolError("The path is empty; give one relative to the workspace.")
    return Path(os.path.normpath(workspace / path))


def place_in_workspace(path: str, context: ToolContext) -> Place:
    """Return where `path` lies in the workspace.

    Raises:
        ToolError: It lies outside.
    """
    return _beneath(absolute_path(path, context.workspace), (context.workspace,), path, context)


def place_to_read(path: str, context: ToolContext) -> Place:
    """Return where `path` lies: in the workspace, the conversation's long outputs, or what else it may read.

    Raises:
        ToolError: It lies in none of them.
    """
    roots = (context.workspace, context.overflow, *context.readable)
    return _beneath(absolute_path(path, context.workspace), roots, path, context)


def _beneath(target: Path, roots: tuple[Path, ...], path: str, context: ToolContext) -> Place:
    for root in roots:
        if target.is_relative_to(root):
            return Place(root=root, path=target.relative_to(root).as_posix())
    raise ToolError(f"{path!r} is outside the workspace {str(context.workspace)!r}; only files in it can be used.")
