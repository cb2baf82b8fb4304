"""The file tree a command sees under bubblewrap: programs of the host, and nothing else of it.

Never `/` itself, not even read-only: sockets that are files (docker.sock, ssh-agent, a database)
can be connected to through a read-only mount.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.sandbox.environment import TEMPORARY
from core.sandbox.identity import Identity, require_existing
from core.sandbox.inherited import InheritedFiles

TEMPORARY_BYTES = 512 * 1024**2
"""Room in /tmp; without a size a tmpfs may take half of the machine's memory."""

_DEVICES = "/dev"
_SMALL_BYTES = 64 * 1024**2

_LINKED_TO_USR = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")

_READABLE_ETC = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/pki",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""No folder that may hold private keys: /etc/ssl/private is left out."""

_FOR_NAMES = ("/etc/gai.conf", "/etc/host.conf", "/etc/protocols", "/etc/resolv.conf", "/etc/services")

_NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\n"
_HOSTS = "127.0.0.1 localhost sandbox\n::1 localhost\n"


def root_arguments(
    *,
    workspace: Path,
    read_only: tuple[Path, ...],
    network: bool,
    identity: Identity,
    files: InheritedFiles,
    home: Path,
) -> list[str]:
    """Return bubblewrap's options in the order they have to be applied.

    Raises:
        SandboxUnavailable: A path of `read_only` does not exist.
    """
    return [
        *_programs(),
        *_made_files(identity, home, files),
        *(_bound_if_there(*_FOR_NAMES) if network else ()),
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", _DEVICES, *_sized(f"{_DEVICES}/shm"), "--remount-ro", _DEVICES),
        *_sized("/run"),
        *("--size", str(TEMPORARY_BYTES), "--perms", "1777", "--tmpfs", str(TEMPORARY)),
        *("--dir", "/var", "--symlink", f"..{TEMPORARY}", f"/var{TEMPORARY}"),
        *("--bind", str(workspace), str(workspace)),
        *_bound(read_only),
        *("--chdir", str(workspace)),
        *("--remount-ro", "/"),
    ]


def _programs() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for folder in map(Path, _LINKED_TO_USR):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    yield from ("--dir", "/etc", "--dir", "/etc/ssl")
    yield from _bound_if_there(*_READABLE_ETC)


def _made_files(identity: Identity, home: Path, files: InheritedFiles) -> Iterator[str]:
    others = "" if identity.uid == 0 else "root:x:0:0::/nonexistent:/usr/sbin/nologin\n"
    for path, text in (
        ("/etc/passwd", f"agent:x:{identity.uid}:{identity.gid}::{home}:/bin/sh\n{others}"),
        ("/etc/group", f"agent:x:{identity.gid}:\n"),
        ("/etc/nsswitch.conf", _NSSWITCH),
        ("/etc/hosts", _HOSTS),
    ):
        yield from ("--perms", "0444", "--file", str(files.memory(text.encode())), path)


def _sized(folder: str) -> tuple[str, ...]:
    return ("--size", str(_SMALL_BYTES), "--tmpfs", folder)


def _bound_if_there(*paths: str) -> Iterator[str]:
    for path in paths:
        yield from ("--ro-bind-try", path, path)


def _bound(read_only: tuple[Path, ...]) -> Iterator[str]:
    for path in read_only:
        require_existing(path)
        yield from ("--ro-bind", str(path), str(path))
