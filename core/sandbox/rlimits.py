"""Limits of one command's processes, set by a shell line that runs inside the sandbox before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.contracts.errors import InvalidInput

_FILE_BLOCK_BYTES = 512  # POSIX: the unit of `ulimit -f`
_MAKE_HOME = '{ [ -d "$HOME" ] || { mkdir -p "$HOME" && echo "*" >"$HOME/.gitignore"; }; }'
_MAKE_TEMPORARY = '{ [ -d "$TMPDIR" ] || mkdir -p "$TMPDIR"; }'


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """`processes` None sets no limit of its own: it would count what else the user runs.

    `data_bytes` bounds each process's writable memory (RLIMIT_DATA). The address space stays
    free: Node, Go and Java reserve many gigabytes of it and use little.
    """

    processes: int | None = 512
    data_bytes: int = 4 * 1024**3
    file_bytes: int = 4 * 1024**3
    open_files: int = 4096

    def without_process_count(self) -> ResourceLimits:
        """Return the limits for a command that shares its user with other programs."""
        return replace(self, processes=None)


def limited(argv: Sequence[str], limits: ResourceLimits) -> tuple[str, ...]:
    """Return `argv` behind a shell that sets the limits, makes the home folder and becomes it.

    It runs inside because RLIMIT_NPROC counts per user namespace: outside, every process of the
    same user on the machine would count. A limit that is already lower stays.

    Raises:
        InvalidInput: `argv` cannot be the arguments of a program.
    """
    if not argv or any("\0" in word for word in argv):
        raise InvalidInput("a command needs a program and may not hold NUL")
    settings = [
        "ulimit -c 0",
        f"ulimit -f {limits.file_bytes // _FILE_BLOCK_BYTES}",
        f"ulimit -d {limits.data_bytes // 1024}",
        f"ulimit -n {limits.open_files}",
    ]
    if limits.processes is not None:
        settings.append(f"{{ ulimit -u {limits.processes} || ulimit -p {limits.processes}; }}")  # bash or dash
    steps = "; ".join(f"{step} 2>/dev/null" for step in (*settings, _MAKE_HOME, _MAKE_TEMPORARY))
    return ("/bin/sh", "-c", f'{steps}; exec "$@"', "sh", *argv)
