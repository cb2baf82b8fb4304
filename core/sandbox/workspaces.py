"""The folders that agents work in: made so that commands can use them, and tried before they are needed."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import Sandbox, SandboxCommand, SandboxReport
from core.sandbox.identity import others_may_enter
from core.sandbox.proof import UNPRIVILEGED

_TRIAL_TIMEOUT = timedelta(seconds=20)


def make_workspace(workspace: Path, report: SandboxReport) -> None:
    """Create a workspace if it is missing, owned by somebody whom the sandbox can run commands as.

    That is the host's own user, except where the host is root and Landlock is all there is: it
    cannot confine root, so the folder goes to `nobody`. Only a folder that is new is given away,
    and only where `nobody` can reach it; otherwise it is of no use to either.

    Raises:
        OSError: It cannot be created, or is no folder.
    """
    is_new = not workspace.exists()
    workspace.mkdir(parents=True, exist_ok=True)
    if is_new and os.geteuid() == 0 and report.kind == "landlock" and others_may_enter(workspace.resolve()):
        os.chown(workspace, UNPRIVILEGED, UNPRIVILEGED)


async def workspace_problem(sandbox: Sandbox, workspace: Path) -> str:
    """Run `true` in a workspace; return what kept it from running, for a person, or nothing."""
    trial = SandboxCommand(argv=("true",), workspace=workspace, env={}, timeout=_TRIAL_TIMEOUT)
    try:
        result = await sandbox.run(trial)
    except SandboxUnavailable as error:
        return error.reason
    return "" if result.exit_code == 0 else f"`true` ended with {result.exit_code!r} in {str(workspace)!r}"
