"""Commands in namespaces of their own, by the bubblewrap program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand, SandboxReport
from core.sandbox.cgroup import ProcessCap
from core.sandbox.environment import TEMPORARY, inside_environment
from core.sandbox.identity import Identity, checked_workspace, workspace_identity
from core.sandbox.inherited import InheritedFiles, StatusPipe
from core.sandbox.minimal_root import root_arguments
from core.sandbox.process import Launch, run_to_end
from core.sandbox.proof import UNPRIVILEGED, prove
from core.sandbox.rlimits import ResourceLimits, limited
from core.sandbox.seccomp import SOCKETS_IN_A_NAMESPACE, filter_program

_END_SECONDS = 5.0

# --disable-userns needs --unshare-user. --new-session takes the terminal away.
_ISOLATION = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent",
    "--cap-drop", "ALL", "--hostname", "sandbox",
)  # fmt: skip

_STARTER_ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/bin:/bin"}
"""Bubblewrap stays as process 1 inside, where /proc/1/environ shows what it was started with."""

_UNPROVEN = SandboxReport(kind="bubblewrap", works=False, detail="not tried yet")
_ROOT_RUNS_AS = (
    "the host is root: commands run as the workspace's owner, or as root without capabilities where root owns it"
)
_LIMITS = (
    "memory is bounded per process, not for a command as a whole",
    "with network, services on this machine's loopback and its abstract sockets can be reached",
)

_ALLOW_NAMESPACES = (
    "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces>0;"
    " on Ubuntu sysctl kernel.apparmor_restrict_unprivileged_userns=0 or a profile for bwrap;"
    " in Docker --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
)
_FIXES: Mapping[str, str] = {
    "Unknown option": "install bubblewrap 0.8 or newer",
    "mount proc": "in a container allow a fresh /proc (Docker: --security-opt systempaths=unconfined)",
    "namespace": _ALLOW_NAMESPACES,
    "uid map": _ALLOW_NAMESPACES,
    "Operation not permitted": _ALLOW_NAMESPACES,
    "source path": "let the user it runs as enter every folder above the workspace and the read-only paths",
}
"""What to do about a message of bubblewrap; the first sign that is found counts."""


class BubblewrapSandbox:
    """Runs each command in fresh namespaces over a minimal root."""

    def __init__(
        self,
        *,
        program: str,
        report: SandboxReport,
        limits: ResourceLimits | None = None,
        process_cap: ProcessCap | None = None,
    ) -> None:
        self._program = program
        self._report = report
        self._limits = limits or ResourceLimits()
        self._process_cap = process_cap

    @property
    def report(self) -> SandboxReport:
        return self._report

    async def run(self, command: SandboxCommand) -> CommandResult:
        workspace = checked_workspace(command.workspace)
        identity = workspace_identity(workspace)
        async with AsyncExitStack() as stack:
            files = stack.enter_context(InheritedFiles())
            read_end, write_end = files.report_pipe()
            status = StatusPipe(read_end)
            options = self._options(command, identity, files, write_end)
            packed = files.memory(b"".join(os.fsencode(option) + b"\0" for option in options))
            argv = (self._program, "--args", str(packed), "--", *limited(command.argv, self._limits))
            if identity.uid == 0 and self._process_cap is not None:
                argv = await stack.enter_async_context(self._process_cap.around(argv, self._limits.processes))
            launch = Launch(argv=argv, env=_STARTER_ENVIRONMENT, fds=files.fds, identity=identity)
            result, code = await run_to_end(launch, command, lambda process: _Namespace(process, status))
            return _told(result, code, status)

    def _options(self, command: SandboxCommand, identity: Identity, files: InheritedFiles, status_fd: int) -> list[str]:
        place = command.workspace.absolute()  # with its links: paths mean the same inside and outside
        environment = inside_environment(place, command.env, temporary=TEMPORARY)
        filter_fd = files.memory(filter_program(SOCKETS_IN_A_NAMESPACE))
        return [
            *_ISOLATION,
            *(("--share-net",) if command.network else ()),
            *("--uid", str(identity.uid), "--gid", str(identity.gid)),
            *("--seccomp", str(filter_fd), "--json-status-fd", str(status_fd)),
            *root_arguments(
                workspace=place,
                read_only=command.read_only,
                network=command.network,
                identity=identity,
                files=files,
                home=Path(environment["HOME"]),
            ),
            *(word for name, value in environment.items() for word in ("--setenv", name, value)),
        ]


class _Namespace:
    """A process tree held by a pid namespace: its first process takes all others with it."""

    def __init__(self, starter: Process, status: StatusPipe) -> None:
        self._starter = starter
        self._status = status

    def terminate(self) -> None:
        # The command shares process group and session with the first process, which ignores SIGTERM.
        first = self._first_process()
        if first is None:
            self.kill()
            return
        try:
            os.killpg(first, signal.SIGTERM)
        except ProcessLookupError:  # it has no session of its own yet, so the command has not begun
            self.kill()

    def kill(self) -> None:
        if self._starter.returncode is not None:
            return  # --die-with-parent has done it, and the numbers may belong to others by now
        first = self._first_process()
        with contextlib.suppress(ProcessLookupError):
            if first is not None:
                os.kill(first, signal.SIGKILL)
        # Before it has its own session the first process is still in the starter's group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._starter.pid, signal.SIGKILL)

    async def gone(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._starter.wait()
                first = self._first_process()
                if first is not None:
                    await _exit_of(first)

    def _first_process(self) -> int | None:
        first = self._status.facts().get("child-pid")
        return first if isinstance(first, int) else None


async def _exit_of(pid: int) -> None:
    """Return when a process that is no child of ours has ended; the kernel empties its namespace before."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _told(result: CommandResult, code: int, status: StatusPipe) -> CommandResult:
    """Return the result with the command's own exit code.

    Raises:
        SandboxUnavailable: Bubblewrap ended before it started the command.
    """
    if result.timed_out:
        return result
    inside = status.facts().get("exit-code")
    if isinstance(inside, int):
        return replace(result, exit_code=inside)
    if code > 0:
        said = (result.head + result.tail).decode(errors="replace").strip()
        raise SandboxUnavailable(f"bubblewrap did not start the command: {said}{_fix(said)}")
    return result


def _fix(said: str) -> str:
    return next((f"; {fix}" for sign, fix in _FIXES.items() if sign in said), "")


async def open_bubblewrap(scratch: Path, program: str | None = None) -> BubblewrapSandbox:
    """Return a sandbox that has run a command here.

    Args:
        scratch: A folder of the host's own for the trial.
        program: Where bubblewrap is; None looks it up.

    Raises:
        SandboxUnavailable: It is not installed, or the kernel refuses it; the text names the fix.
    """
    found = program or shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            "bubblewrap is not installed; run: apt-get install bubblewrap (or dnf, pacman, apk add)"
        )
    root = os.geteuid() == 0
    cap = await ProcessCap.find() if root else None
    candidate = BubblewrapSandbox(program=found, report=_UNPROVEN, process_cap=cap)
    await prove(candidate, scratch, owner=None)
    limits = list(_LIMITS)
    if root and cap is None:
        limits.append("no pids cgroup can be written: processes are not counted where root owns the workspace")
    if root:
        try:
            await prove(candidate, scratch, owner=UNPRIVILEGED)
        except SandboxUnavailable as error:
            limits.append(f"a workspace must belong to root, because other users cannot use bubblewrap: {error.reason}")
    who = _ROOT_RUNS_AS if root else f"commands run as uid {os.geteuid()}, the host's own"
    report = SandboxReport(
        kind="bubblewrap",
        works=True,
        detail=f"own namespaces, minimal root, system call filter; {who}",
        limits=tuple(limits),
    )
    return BubblewrapSandbox(program=found, report=report, process_cap=cap)


if TYPE_CHECKING:
    _conforms: type[Sandbox] = BubblewrapSandbox
