"""What the sandbox tests share: real sandboxes, a workspace they can reach, and a look at what is alive."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand
from core.sandbox.detection import open_sandbox

NOBODY = 65_534
IS_ROOT = os.geteuid() == 0
REAL_KINDS = ("bubblewrap", "bubblewrap as root", "landlock", "unsafe_host_shell")
ISOLATING_KINDS = REAL_KINDS[:3]
LONGEST_WAIT_SECONDS = 30


@dataclass(frozen=True)
class Lab:
    kind: str
    sandbox: Sandbox
    workspace: Path
    outside: Path
    """A folder beside the workspace, readable by everybody on the host."""

    async def run(
        self, line: str, *, seconds: float = 20.0, env: Mapping[str, str] | None = None, **options: object
    ) -> CommandResult:
        command = SandboxCommand(
            argv=("/bin/sh", "-c", line),
            workspace=self.workspace,
            env=env or {},
            timeout=timedelta(seconds=seconds),
            **options,
        )
        async with asyncio.timeout(seconds + LONGEST_WAIT_SECONDS):
            return await self.sandbox.run(command)

    async def text(self, line: str, **options: object) -> str:
        return text_of(await self.run(line, **options))


def text_of(result: CommandResult) -> str:
    return (result.head + result.tail).decode(errors="replace")


def open_real(kind: str, scratch: Path) -> Sandbox:
    """Open a sandbox; where this machine has none, skip with the reason, or fail in CI."""
    if kind == "bubblewrap as root" and not IS_ROOT:
        pytest.skip("only root maps root")
    sandbox = asyncio.run(open_sandbox(kind.split(maxsplit=1)[0], scratch=scratch))
    if not sandbox.report.works:
        missing = f"no {kind} on this machine: {sandbox.report.detail}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return sandbox


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Yield a new folder that every user may enter; pytest's own are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="lodger-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened_lab(kind: str, sandbox: Sandbox) -> Iterator[Lab]:
    with reachable_folder() as folder:
        workspace = folder / "ws"
        workspace.mkdir()
        if IS_ROOT and kind != "bubblewrap as root":
            os.chown(workspace, NOBODY, NOBODY)
        yield Lab(kind, sandbox, workspace, folder)


def alive(marker: str) -> list[str]:
    """Return the command lines of living processes that hold the marker."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if marker.encode() in words and int(folder.name) != os.getpid():
            found.append(words.decode(errors="replace"))
    return found
