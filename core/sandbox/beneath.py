"""Opens a file below a folder so that no link leads out of it.

A command can plant `notes -> /etc/shadow` in its workspace, and the host must not follow it. Linux
decides this itself (openat2 with RESOLVE_BENEATH), without a race between looking and opening.
Where that call is missing, every component is opened by hand and no link is followed at all.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import sys

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_TRIES = 20


class LeadsOutside(PermissionError):
    """The path, or a link on it, leads out of the folder."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(errno.EXDEV, "leads out of the folder", path)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(folder_fd: int, path: str, flags: int, mode: int = 0) -> int:
    """Return a descriptor of `path`, relative to the folder; close-on-exec.

    Links that stay inside are followed by openat2 and refused by the fallback.

    Raises:
        LeadsOutside: The path or a link on it leads out, or is absolute.
        OSError: As `os.open` raises it.
    """
    if _has_openat2():
        return _openat2(folder_fd, path, flags | os.O_CLOEXEC, mode)
    return walk_beneath(folder_fd, path, flags, mode)


def walk_beneath(folder_fd: int, path: str, flags: int, mode: int = 0) -> int:
    """Do the same component by component; any link on the way is `LeadsOutside`."""
    parts = os.path.normpath(path).split("/")
    if path.startswith("/") or parts[0] == "..":
        raise LeadsOutside(path)
    current = os.dup(folder_fd)
    try:
        for part in parts[:-1]:
            following = _open_no_link(path, part, os.O_RDONLY | os.O_DIRECTORY, 0, current)
            os.close(current)
            current = following
        return _open_no_link(path, parts[-1], flags, mode, current)
    finally:
        os.close(current)


def _open_no_link(path: str, part: str, flags: int, mode: int, folder_fd: int) -> int:
    try:
        return os.open(part, flags | os.O_NOFOLLOW, mode, dir_fd=folder_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK} or (error.errno == errno.ENOTDIR and _is_link(part, folder_fd)):
            raise LeadsOutside(path) from error
        raise


def _is_link(name: str, folder_fd: int) -> bool:
    try:
        os.readlink(name, dir_fd=folder_fd)
    except OSError:
        return False
    return True


def _openat2(folder_fd: int, path: str, flags: int, mode: int) -> int:
    how = _OpenHow(flags, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    for _ in range(_TRIES):
        arguments = (_SYS_OPENAT2, folder_fd, ctypes.c_char_p(encoded), ctypes.byref(how), ctypes.c_size_t(24))
        result = int(_libc().syscall(*arguments))
        if result >= 0:
            return result
        code = ctypes.get_errno()
        if code == errno.EXDEV:
            raise LeadsOutside(path)
        # EAGAIN: something above was renamed meanwhile, and the kernel would not vouch for "..".
        if code not in {errno.EAGAIN, errno.EINTR}:
            raise OSError(code, os.strerror(code), path)
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.cache
def _has_openat2() -> bool:
    """Try it on the root folder: an old kernel or a container's filter may refuse it."""
    if sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"}:
        return False
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(_openat2(root, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0))
    except OSError:
        return False
    finally:
        os.close(root)
    return True
