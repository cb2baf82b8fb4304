"""Commands confined by Landlock, a system call filter and their own user: where namespaces are refused.

Landlock leaves UDP, sockets that are files, and /proc of other processes open. So the filter
refuses sockets altogether unless the network is wanted, and always those that are files; and /proc
is not among the folders that may be read.
"""

from __future__ import annotations

import base64
import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand, SandboxReport
from core.sandbox.environment import HOME_FOLDER, inside_environment
from core.sandbox.identity import Identity, checked_workspace, require_existing, workspace_identity
from core.sandbox.proof import UNPRIVILEGED, prove
from core.sandbox.rlimits import ResourceLimits, limited
from core.sandbox.seccomp import SOCKETS_OF_THE_HOST, filter_program
from core.sandbox.supervised import Confinement, run_supervised

_SYS_LANDLOCK_CREATE_RULESET = 444
_ASK_FOR_VERSION = 1

# linux/landlock.h
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_UP_TO_TRUNCATE = (1 << 15) - 1
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1

_TRUNCATE_ABI = 3
"""Below it a command could empty any file its user may write."""
_IOCTL_ABI = 5
_SCOPE_ABI = 6

_READ = _EXECUTE | _READ_FILE | _READ_DIR

_READABLE = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ca-certificates",
    "/etc/crypto-policies", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
)  # fmt: skip
_READABLE_FOR_NAMES = ("/etc/gai.conf", "/etc/host.conf", "/etc/protocols", "/etc/resolv.conf", "/etc/services")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_ENVIRONMENT: Mapping[str, str] = {"GIT_CONFIG_NOSYSTEM": "1"}
"""Git ends with an error where its system configuration is there but closed."""

_LIMITS = (
    "weaker than bubblewrap: no namespaces, so names, sizes and times of files outside can be seen",
    "permissions and times of files that its user owns outside the workspace can be changed",
    "without network a command can open no socket at all, not even on the loopback",
    "with network there is no isolation of TCP or UDP: services of this machine's loopback can be reached",
    "no /tmp (TMPDIR is in the workspace), no /proc, no unix sockets",
    "commands go on when the host and the guard of its processes are both killed at the same moment",
)
_UNPROVEN = SandboxReport(kind="landlock", works=False, detail="not tried yet")


class LandlockSandbox:
    """Runs each command with access to the workspace and the machine's programs only."""

    def __init__(self, *, abi: int, report: SandboxReport, limits: ResourceLimits | None = None) -> None:
        self._abi = abi
        self._report = report
        self._limits = limits or ResourceLimits()

    @property
    def report(self) -> SandboxReport:
        return self._report

    async def run(self, command: SandboxCommand) -> CommandResult:
        workspace = checked_workspace(command.workspace)
        identity = workspace_identity(workspace)
        if identity.uid == 0:
            raise SandboxUnavailable(
                "Landlock cannot confine root, who may change the permissions of every file: install bubblewrap, or"
                f" set a workspace that another user owns and can reach, not {str(workspace)!r}; for example:"
                f" install -d -o {UNPRIVILEGED} /srv/lodger-workspace"
            )
        place = command.workspace.absolute()  # with its links: paths mean the same as for the host
        return await run_supervised(
            command,
            argv=limited(command.argv, self._limits_for(identity)),
            env=inside_environment(place, {**_ENVIRONMENT, **command.env}, temporary=place / HOME_FOLDER / "tmp"),
            cwd=place,
            identity=identity,
            confinement=self._confinement(command, workspace),
        )

    def _limits_for(self, identity: Identity) -> ResourceLimits:
        return self._limits if identity.dropped else self._limits.without_process_count()

    def _confinement(self, command: SandboxCommand, workspace: Path) -> Confinement:
        handled = _UP_TO_TRUNCATE | (_IOCTL_DEVICE if self._abi >= _IOCTL_ABI else 0)
        readable = [*_READABLE, *(_READABLE_FOR_NAMES if command.network else ())]
        readable += [_outside(path, workspace) for path in command.read_only]
        rules = [
            *((path, _READ, _READ & _FOR_FILES) for path in readable),
            *((path, 0, _READ_FILE | _WRITE_FILE) for path in _DEVICES),
            (str(workspace), handled, 0),
        ]
        program = filter_program(SOCKETS_OF_THE_HOST if command.network else ())
        return Confinement(
            handled=handled,
            scoped=_SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if self._abi >= _SCOPE_ABI else 0,
            rules=tuple(rules),
            filter_base64=base64.b64encode(program).decode(),
        )


def _outside(path: Path, workspace: Path) -> str:
    """Return a read-only path; Landlock's rights add up, so one inside the workspace would stay writable."""
    require_existing(path)
    if path.resolve().is_relative_to(workspace):
        raise SandboxUnavailable(f"Landlock cannot keep {str(path)!r} read-only, because it is inside the workspace")
    return str(path)


def landlock_abi() -> int:
    """Return the version of Landlock this kernel runs; 0 where it has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_FOR_VERSION)))


async def open_landlock(scratch: Path) -> LandlockSandbox:
    """Return a sandbox that has run a command here.

    Raises:
        SandboxUnavailable: The kernel has no Landlock, or one that is too old.
    """
    abi = landlock_abi()
    if abi == 0:
        raise SandboxUnavailable("this kernel has no Landlock, or a container's filter hides it")
    if abi < _TRUNCATE_ABI:
        raise SandboxUnavailable(f"Landlock version {abi} is too old; Linux 6.2 or newer has version {_TRUNCATE_ABI}")
    root = os.geteuid() == 0
    await prove(LandlockSandbox(abi=abi, report=_UNPROVEN), scratch, owner=UNPRIVILEGED if root else None)
    return LandlockSandbox(abi=abi, report=_report(abi, root=root))


def _report(abi: int, *, root: bool) -> SandboxReport:
    limits = list(_LIMITS)
    if root:
        limits.append("a workspace that belongs to root is refused")
        who = "the host is root: commands run as the workspace's owner"
    else:
        limits.append("the number of processes is not bounded")
        who = f"commands run as uid {os.geteuid()}, the host's own"
    if abi < _SCOPE_ABI and not root:
        limits.append("processes of the same user, the host's too, can be sent signals")
    return SandboxReport(
        kind="landlock",
        works=True,
        detail=f"Landlock version {abi} and a system call filter, no namespaces; {who}",
        limits=tuple(limits),
    )


if TYPE_CHECKING:
    _conforms: type[Sandbox] = LandlockSandbox
