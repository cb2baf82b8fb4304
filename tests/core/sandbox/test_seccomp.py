"""The system call filter: run in the kernel for this processor, and interpreted for both."""

from __future__ import annotations

import errno
import platform
import socket
import struct

import pytest

from core.contracts.errors import SandboxUnavailable
from core.sandbox.seccomp import MACHINES, SOCKETS_IN_A_NAMESPACE, SOCKETS_OF_THE_HOST, filter_program
from tests.core.sandbox.labs import Lab

ALLOWED = 0x7FFF0000
KILLED = 0x80000000
AF_VSOCK = 40
CLONE_THREAD_FLAGS = 0x003D0F00
NAMESPACE_FLAGS = {
    "NEWNS": 0x00020000, "NEWCGROUP": 0x02000000, "NEWUTS": 0x04000000, "NEWIPC": 0x08000000,
    "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000,
}  # fmt: skip


def refused(code: int) -> int:
    return 0x00050000 | code


def decide(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Interpret the filter as the kernel would."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number if number < 2**31 else number - 2**32, arch, 0, *given)
    code = list(struct.iter_unpack("<HBBI", program))
    at, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(operation)


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


def verdict(machine: str, name: str, *arguments: int, families: tuple[int, ...] = SOCKETS_IN_A_NAMESPACE) -> int:
    facts = MACHINES[machine]
    return decide(filter_program(families, machine), facts.audit_arch, facts.numbers[name], *arguments)


def test_every_dangerous_call_is_refused(machine: str) -> None:
    names = set(MACHINES[machine].numbers) - {"ioctl", "clone", "clone3", "socket", "socketpair"}

    assert {"unshare", "mount", "ptrace", "keyctl", "bpf", "io_uring_setup", "perf_event_open", "userfaultfd"} < names
    assert {name: verdict(machine, name) for name in names} == dict.fromkeys(names, refused(errno.EPERM))


def test_clone3_looks_missing_so_that_libraries_use_clone(machine: str) -> None:
    assert verdict(machine, "clone3") == refused(errno.ENOSYS)


def test_clone_makes_threads_and_processes_but_no_namespaces(machine: str) -> None:
    assert verdict(machine, "clone", 17) == ALLOWED
    assert verdict(machine, "clone", CLONE_THREAD_FLAGS) == ALLOWED
    for flag in NAMESPACE_FLAGS.values():
        assert verdict(machine, "clone", flag | 17) == refused(errno.EPERM)


def test_typing_into_a_terminal_is_refused_whatever_the_high_half_says(machine: str) -> None:
    for request in (0x5412, 0x541C, 0xFFFFFFFF_00005412):
        assert verdict(machine, "ioctl", 0, request) == refused(errno.EPERM)
    assert verdict(machine, "ioctl", 0, 0x5401) == ALLOWED


def test_only_known_kinds_of_socket_are_allowed(machine: str) -> None:
    assert verdict(machine, "socket", AF_VSOCK) == refused(errno.EPERM)
    for family in SOCKETS_IN_A_NAMESPACE:
        assert verdict(machine, "socket", family) == ALLOWED


def test_without_a_namespace_no_socket_reaches_a_socket_file(machine: str) -> None:
    for families in (SOCKETS_OF_THE_HOST, ()):
        assert verdict(machine, "socket", socket.AF_UNIX, families=families) == refused(errno.EPERM)
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC):
            assert verdict(machine, "socketpair", 1, kind, families=families) == refused(errno.EPERM)
        assert verdict(machine, "socketpair", 1, socket.SOCK_STREAM, families=families) == ALLOWED


def test_without_families_there_are_no_sockets(machine: str) -> None:
    for family in SOCKETS_IN_A_NAMESPACE:
        assert verdict(machine, "socket", family, families=()) == refused(errno.EPERM)


def test_an_ordinary_call_is_allowed(machine: str) -> None:
    program = filter_program(SOCKETS_IN_A_NAMESPACE, machine)

    assert decide(program, MACHINES[machine].audit_arch, {"x86_64": 0, "aarch64": 63}[machine]) == ALLOWED


def test_calls_of_another_processors_kind_end_the_process(machine: str) -> None:
    program = filter_program(SOCKETS_IN_A_NAMESPACE, machine)

    assert decide(program, 0x40000003, 1) == KILLED
    assert decide(program, MACHINES["x86_64"].audit_arch, 0x40000000 | 101) in {KILLED, refused(errno.ENOSYS)}


def test_a_processor_without_a_filter_has_no_sandbox() -> None:
    with pytest.raises(SandboxUnavailable, match="'riscv64'"):
        filter_program((), "riscv64")


TRY_CALLS = """
import ctypes, errno, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
for pair in sys.argv[1:]:
    name, number = pair.split("=")
    libc.syscall(int(number), 0, 0, 0, 0, 0)
    print(name, errno.errorcode.get(ctypes.get_errno(), "none"))
"""


async def test_the_kernel_refuses_them_too(isolating_lab: Lab) -> None:
    numbers = MACHINES[platform.machine()].numbers
    names = sorted(set(numbers) - {"ioctl", "clone", "clone3", "socket", "socketpair"})
    (isolating_lab.workspace / "try.py").write_text(TRY_CALLS)
    pairs = " ".join(f"{name}={numbers[name]}" for name in names)

    shown = await isolating_lab.text(f"python3 try.py {pairs} clone3=435")

    assert shown.splitlines() == [*(f"{name} EPERM" for name in names), "clone3 ENOSYS"]


async def test_threads_and_subprocesses_still_work(isolating_lab: Lab) -> None:
    (isolating_lab.workspace / "work.py").write_text(
        "import subprocess, threading, asyncio\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')\n"
        "asyncio.run(asyncio.sleep(0)); print('loop')\n"
    )

    assert await isolating_lab.text("python3 work.py") == "thread\nchild\nloop\n"
