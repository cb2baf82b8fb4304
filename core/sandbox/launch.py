"""The starter of commands that no namespace holds together. Runs as a program of its own.

It reads a plan (JSON) from the descriptor named by its first argument, forks, confines the child
and becomes its guard: it adopts every descendant (PR_SET_CHILD_SUBREAPER), whatever session they
moved to, and ends only when all of them have. SIGTERM is passed on to all of them; SIGQUIT, which
also comes when the host dies, ends them at once. Facts go to the descriptor named by the second
argument, a JSON object a line: {"exit-code": int} or {"refused": "why nothing was started"}.

Imports are few and nothing of Lodger, because this file is started once for every command.
"""

import base64
import contextlib
import ctypes
import json
import os
import signal
import stat
import sys
import time
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

# The same numbers on every processor.
_SYS_LANDLOCK_CREATE_RULESET = 444
_SYS_LANDLOCK_ADD_RULE = 445
_SYS_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_RULE_PATH_BENEATH = 1

_WATCHED = (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD)
_STUBBORN_SECONDS = 3.0
_IS_LINUX = sys.platform == "linux"

# Bound before anything is dropped: afterwards the interpreter's own files may be out of reach.
_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main() -> None:
    """Start the plan's command and stay until nothing of it is left."""
    plan_fd, status_fd = int(sys.argv[1]), int(sys.argv[2])
    with open(plan_fd, encoding="utf-8") as file:
        plan = json.load(file)
    if _IS_LINUX:
        _call(_libc.prctl, _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _call(_libc.prctl, _PR_SET_PDEATHSIG, int(signal.SIGQUIT), 0, 0, 0)
        if os.getppid() != plan["host"]:
            os._exit(1)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    child = os.fork()
    if child == 0:
        _become(plan, status_fd)
    code = _guard(child)
    _end_all(child)
    _tell(status_fd, {"exit-code": code})


def _become(plan: dict[str, Any], status_fd: int) -> NoReturn:
    """Confine this process and turn it into the command."""
    try:
        os.setsid()
        os.set_inheritable(status_fd, False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        ruleset = _ruleset(plan["landlock"]) if plan["landlock"] else None
        if plan["identity"]:
            uid, gid = plan["identity"]
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        if _IS_LINUX:  # after the change of user, which would clear it
            _call(_libc.prctl, _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        os.chdir(plan["cwd"])
        if ruleset is not None:
            _call(_libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            _call(_libc.syscall, _SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
            _filter_calls(base64.b64decode(plan["filter"]))
        os.execve(plan["argv"][0], plan["argv"], plan["env"])  # noqa: S606 - a command is what this is for
    except (OSError, ValueError) as error:
        _tell(status_fd, {"refused": str(error)})
    finally:
        os._exit(126)


def _ruleset(landlock: dict[str, Any]) -> int:
    """Return a ruleset that allows what the plan lists; what cannot be opened is not allowed."""
    wanted = _Ruleset(landlock["handled"], 0, landlock["scoped"])
    size = ctypes.sizeof(wanted) if landlock["scoped"] else 8
    ruleset = _call(_libc.syscall, _SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), 0)
    for path, folder_access, file_access in landlock["rules"]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        access = folder_access if stat.S_ISDIR(os.fstat(fd).st_mode) else file_access
        rule = _PathRule(access, fd)
        _call(_libc.syscall, _SYS_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(fd)
    return ruleset


def _filter_calls(program: bytes) -> None:
    described = _Filter(len(program) // 8, program)
    _call(_libc.prctl, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0)


def _guard(child: int) -> int:
    """Wait for the command and return its exit code as a shell would; pass signals on meanwhile."""
    while True:
        number = signal.sigwait(_WATCHED)
        if number == signal.SIGCHLD:
            for pid, status in _ended():
                if pid == child:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
        else:
            _signal_all(child, signal.SIGTERM if number == signal.SIGTERM else signal.SIGKILL)


def _end_all(child: int) -> None:
    """Kill until no descendant is left; one that cannot be killed is left after a while."""
    give_up_at = time.monotonic() + _STUBBORN_SECONDS
    while time.monotonic() < give_up_at:
        _signal_all(child, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.002)
        except ChildProcessError:
            return


def _ended() -> list[tuple[int, int]]:
    ended: list[tuple[int, int]] = []
    with contextlib.suppress(ChildProcessError):
        while (gone := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            ended.append(gone)
    return ended


def _signal_all(child: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, number)
    for pid in _descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants() -> list[int]:
    """Return every process below this one, as /proc shows it; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for pid in _all_processes():
        with contextlib.suppress(OSError):
            children.setdefault(_parent_of(pid), []).append(pid)
    found = list(children.get(os.getpid(), ()))
    for pid in found:  # grows while it is walked
        found += children.get(pid, ())
    return found


def _all_processes() -> list[int]:
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def _parent_of(pid: int) -> int:
    fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    try:
        # The name in brackets may hold anything; state and parent follow the last bracket.
        return int(os.read(fd, 4096).rpartition(b")")[2].split()[1])
    finally:
        os.close(fd)


def _call(function: Any, *arguments: Any) -> int:
    result = int(function(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _tell(status_fd: int, facts: dict[str, Any]) -> None:
    os.write(status_fd, json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main()
