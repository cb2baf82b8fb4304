"""The system call filter of every sandbox: classic BPF, written by hand for x86_64 and aarch64.

It closes what namespaces and Landlock leave open: new namespaces and mounts, tracing, typing into
a terminal, kernel keys, bpf, io_uring, perf, userfaultfd, and sockets to the machine below
(AF_VSOCK passes through a private network namespace). Refused calls answer EPERM. clone3 answers
ENOSYS, because its flags lie in memory that a filter cannot read; C libraries fall back to clone.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.contracts.errors import SandboxUnavailable

# linux/bpf_common.h and linux/seccomp.h
_LOAD_WORD = 0x20
_AND = 0x54
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

# struct seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6], little endian
_NUMBER_OFFSET = 0
_ARCH_OFFSET = 4
_ARGUMENTS_OFFSET = 16

_X32_BIT = 0x40000000
_NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_AF_NETLINK = 16
_SOCKET_TYPE_MASK = 0xF
_DATAGRAMS = (socket.SOCK_DGRAM, socket.SOCK_RAW)

Instruction = tuple[int, int, int, int]

_X86_64: Mapping[str, int] = {
    "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "ptrace": 101, "syslog": 103, "pivot_root": 155,
    "chroot": 161, "acct": 163, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
    "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip

_AARCH64: Mapping[str, int] = {
    "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89,
    "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116, "ptrace": 117,
    "reboot": 142, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219,
    "clone": 220, "swapon": 224, "swapoff": 225, "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
    "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip

_BOTH: Mapping[str, int] = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip

_DECIDED_BY_ARGUMENT = frozenset({"ioctl", "clone", "clone3", "socket", "socketpair"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a filter has to know about a processor."""

    audit_arch: int
    numbers: Mapping[str, int]

    @property
    def always_refused(self) -> tuple[int, ...]:
        """Numbers of the calls that no argument makes harmless."""
        return tuple(sorted(n for name, n in self.numbers.items() if name not in _DECIDED_BY_ARGUMENT))


MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(audit_arch=0xC000003E, numbers={**_X86_64, **_BOTH}),
    "aarch64": Machine(audit_arch=0xC00000B7, numbers={**_AARCH64, **_BOTH}),
}

SOCKETS_IN_A_NAMESPACE = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, _AF_NETLINK)
"""Where a private network namespace and mount table already decide what can be reached."""

SOCKETS_OF_THE_HOST = (socket.AF_INET, socket.AF_INET6, _AF_NETLINK)
"""Where they do not: sockets that are files (docker.sock, ssh-agent) stay closed."""


def filter_program(families: Iterable[int], machine: str | None = None) -> bytes:
    """Return the filter as `struct sock_filter[]`; sockets only of `families`.

    Raises:
        SandboxUnavailable: No filter is written for this processor.
    """
    name = machine if machine is not None else platform.machine()
    facts = MACHINES.get(name)
    if facts is None:
        raise SandboxUnavailable(
            f"there is no system call filter for the processor {name!r}, only for {list(MACHINES)}"
        )
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in _program(facts, tuple(families)))


def _program(machine: Machine, families: tuple[int, ...]) -> list[Instruction]:
    numbers = machine.numbers
    program: list[Instruction] = [
        (_LOAD_WORD, 0, 0, _ARCH_OFFSET),
        (_JUMP_EQUAL, 1, 0, machine.audit_arch),
        _leave(_KILL_PROCESS),  # the numbers below mean other calls to a 32-bit program
        (_LOAD_WORD, 0, 0, _NUMBER_OFFSET),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(errno.ENOSYS),
    ]
    for number in machine.always_refused:
        program += _when(number, [_refuse(errno.EPERM)])
    program += _when(numbers["clone3"], [_refuse(errno.ENOSYS)])
    program += _when(numbers["clone"], [_argument(0), (_JUMP_ANY_BIT, 0, 1, _NAMESPACE_FLAGS), _refuse(errno.EPERM)])
    program += _when(numbers["ioctl"], [_argument(1), *_if_equal(_TERMINAL_INJECTION, _refuse(errno.EPERM))])
    program += _when(numbers["socket"], [_argument(0), *_if_equal(families, _leave(_ALLOW)), _refuse(errno.EPERM)])
    if socket.AF_UNIX not in families:
        # A datagram socket of a pair can still be sent to any path; stream pairs cannot. SOCK_RAW means the same.
        kind = [_argument(1), (_AND, 0, 0, _SOCKET_TYPE_MASK)]
        program += _when(numbers["socketpair"], [*kind, *_if_equal(_DATAGRAMS, _refuse(errno.EPERM))])
    return [*program, _leave(_ALLOW)]


def _when(number: int, block: list[Instruction]) -> list[Instruction]:
    """Return code that runs `block` for this call; what the block does not decide is allowed.

    The accumulator holds the call's number before and, where another call was made, after it.
    """
    decided = [*block, _leave(_ALLOW)]
    return [(_JUMP_EQUAL, 0, len(decided), number), *decided]


def _if_equal(values: Iterable[int], leave: Instruction) -> list[Instruction]:
    return [instruction for value in values for instruction in ((_JUMP_EQUAL, 0, 1, value), leave)]


def _argument(index: int) -> Instruction:
    """Load the low half of an argument: the kernel itself reads these as 32-bit values."""
    return (_LOAD_WORD, 0, 0, _ARGUMENTS_OFFSET + 8 * index)


def _refuse(code: int) -> Instruction:
    return _leave(_ERRNO | code)


def _leave(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)
