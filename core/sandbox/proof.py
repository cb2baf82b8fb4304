"""Proves a sandbox by running a real command in it: looking at kernel settings tells too little."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import Sandbox, SandboxCommand

UNPRIVILEGED = 65_534
"""`nobody`: the user a proof for root drops to."""

_PROOF_TIMEOUT = timedelta(seconds=20)


async def prove(sandbox: Sandbox, scratch: Path, *, owner: int | None) -> None:
    """Run `true` in a workspace of `owner`; None is the host's own user, with the workspace in `scratch`.

    Raises:
        SandboxUnavailable: It did not run.
    """
    workspace = await asyncio.to_thread(_make_workspace, scratch, owner)
    try:
        result = await sandbox.run(SandboxCommand(argv=("true",), workspace=workspace, env={}, timeout=_PROOF_TIMEOUT))
    finally:
        await asyncio.to_thread(shutil.rmtree, workspace, ignore_errors=True)
    if result.exit_code != 0:
        said = (result.head + result.tail).decode(errors="replace").strip()
        raise SandboxUnavailable(f"`true` ended with {result.exit_code!r} in it: {said}")


def _make_workspace(scratch: Path, owner: int | None) -> Path:
    if owner is None:
        scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="proof-", dir=scratch))
    # Another user may not reach `scratch`, but every user reaches the system's temporary folder.
    workspace = Path(tempfile.mkdtemp(prefix="lodger-proof-"))
    os.chown(workspace, owner, owner)
    return workspace
