"""Starts commands behind the guard of `launch.py`, for sandboxes without a pid namespace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, SandboxCommand
from core.sandbox.environment import SEARCH_PATH
from core.sandbox.identity import Identity
from core.sandbox.inherited import InheritedFiles, StatusPipe
from core.sandbox.process import Launch, run_to_end

_GUARD = Path(__file__).with_name("launch.py")
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What Landlock and the system call filter allow; `rules` are (path, access of a folder, of a file)."""

    handled: int
    scoped: int
    rules: tuple[tuple[str, int, int], ...]
    filter_base64: str


async def run_supervised(
    command: SandboxCommand,
    *,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    cwd: Path,
    identity: Identity | None,
    confinement: Confinement | None,
) -> CommandResult:
    """Run `argv` (its program by absolute path) behind a guard and return how it ended.

    Raises:
        SandboxUnavailable: The guard could not confine or start it.
    """
    plan = {
        "host": os.getpid(),
        "argv": argv,
        "env": dict(env),
        "cwd": str(cwd),
        "identity": [identity.uid, identity.gid] if identity is not None and identity.dropped else None,
        "landlock": _landlock(confinement) if confinement is not None else None,
        "filter": confinement.filter_base64 if confinement is not None else "",
    }
    with InheritedFiles() as files:
        read_end, write_end = files.report_pipe()
        plan_fd = files.memory(json.dumps(plan).encode())
        # -I and -S: neither the environment nor installed packages take part in the start.
        launch = Launch(
            argv=(sys.executable, "-I", "-S", str(_GUARD), str(plan_fd), str(write_end)),
            env={"PATH": SEARCH_PATH},
            fds=files.fds,
        )
        status = StatusPipe(read_end)
        result, _ = await run_to_end(launch, command, _Guarded)
        return _told(result, status)


def _landlock(confinement: Confinement) -> dict[str, Any]:
    return {"handled": confinement.handled, "scoped": confinement.scoped, "rules": confinement.rules}


def _told(result: CommandResult, status: StatusPipe) -> CommandResult:
    facts = status.facts()
    refused = facts.get("refused")
    if isinstance(refused, str):
        raise SandboxUnavailable(f"the command could not be confined: {refused}")
    code = facts.get("exit-code")
    if result.timed_out or not isinstance(code, int):
        return result
    return replace(result, exit_code=code)


class _Guarded:
    """A process tree held by its guard, which ends when the tree has."""

    def __init__(self, guard: Process) -> None:
        self._guard = guard

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGQUIT)

    async def gone(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._guard.wait()
                return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._guard.pid, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._guard.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._guard.pid, number)
