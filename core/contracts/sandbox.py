"""Where commands run: isolated, limited, and killed as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCommand:
    """One command. `env` is the whole environment inside, beside what the sandbox sets.

    `workspace` is mounted read-write and is the working directory; `read_only` paths are
    mounted as they are. `network` false: only loopback, and that private.
    `keep_bytes` are kept of each end of the output; all of it, up to `spill_limit_bytes`, goes
    to `spill` when it does not fit.
    """

    argv: tuple[str, ...]
    workspace: Path
    env: Mapping[str, str]
    timeout: timedelta
    network: bool = False
    read_only: tuple[Path, ...] = ()
    keep_bytes: int = 60_000
    spill: Path | None = None
    spill_limit_bytes: int = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended. Output is stdout and stderr as they were interleaved.

    `head + tail` is the whole output when `dropped_bytes` is 0. `exit_code` is None after a
    timeout. `spilled` says that `spill` holds the output.
    """

    exit_code: int | None
    head: bytes
    tail: bytes
    dropped_bytes: int
    timed_out: bool
    spilled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """What a sandbox isolates, as it was proven by running it; shown at start and by doctor."""

    kind: str
    works: bool
    detail: str
    limits: tuple[str, ...] = ()


class Sandbox(Protocol):
    """Runs commands; may be called concurrently."""

    @property
    def report(self) -> SandboxReport:
        """Return what was proven when the sandbox was opened."""
        ...

    async def run(self, command: SandboxCommand) -> CommandResult:
        """Run until exit, timeout or cancellation; afterwards nothing of the command is alive.

        A shell that exits while its children hold the output ends the command: they are killed.
        Standard input is empty; there is no controlling terminal. SIGTERM to the group first,
        SIGKILL after 2 seconds.

        Raises:
            SandboxUnavailable: Nothing was started; the reason is for people.
            asyncio.CancelledError: The whole group has been killed.
        """
        ...
