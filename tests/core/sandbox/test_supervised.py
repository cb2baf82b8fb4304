"""Commands behind a guard: what it reports, and that it ends with the last of them."""

from __future__ import annotations

import asyncio
import os
import uuid
from datetime import timedelta
from pathlib import Path

import pytest

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, SandboxCommand
from core.sandbox.supervised import Confinement, run_supervised
from tests.core.sandbox.labs import alive

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


async def run(
    *argv: str,
    cwd: Path,
    seconds: float = 20,
    confinement: Confinement | None = None,
    env: dict[str, str] | None = None,
) -> CommandResult:
    command = SandboxCommand(argv=argv, workspace=cwd, env={}, timeout=timedelta(seconds=seconds))
    environment = {**ENVIRONMENT, **(env or {})}
    return await run_supervised(command, argv=argv, env=environment, cwd=cwd, identity=None, confinement=confinement)


async def test_a_program_that_is_missing_was_not_started(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="No such file"):
        await run("/no/such/program", cwd=tmp_path)


async def test_a_folder_that_is_missing_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="No such file"):
        await run("/bin/sh", "-c", "touch ran", cwd=tmp_path / "gone")


async def test_a_confinement_the_kernel_does_not_take_starts_nothing(tmp_path: Path) -> None:
    wrong = Confinement(handled=1 << 63, scoped=0, rules=(), filter_base64="")

    with pytest.raises(SandboxUnavailable, match="could not be confined"):
        await run("/bin/sh", "-c", "touch ran", cwd=tmp_path, confinement=wrong)

    assert not (tmp_path / "ran").exists()


async def test_a_signal_that_ended_the_command_is_told_as_a_shell_would(tmp_path: Path) -> None:
    assert (await run("/bin/sh", "-c", "kill -15 $$", cwd=tmp_path)).exit_code == 143


async def test_a_command_that_is_asked_to_end_may_clean_up(tmp_path: Path) -> None:
    script = "trap 'echo cleaned; exit 0' TERM; echo begun; sleep 100 & wait"

    result = await run("/bin/sh", "-c", script, cwd=tmp_path, seconds=0.5)

    assert (result.head, result.timed_out) == (b"begun\ncleaned\n", True)


async def test_the_environment_is_in_no_argument_and_not_the_guards_own(tmp_path: Path) -> None:
    secret = uuid.uuid4().hex
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        script = "touch BEGUN; while [ ! -e SEEN ]; do :; done; echo $TOKEN"
        running = group.create_task(run("/bin/sh", "-c", script, cwd=tmp_path, env={"TOKEN": secret}))
        while not (tmp_path / "BEGUN").exists():
            await asyncio.sleep(0.01)
        shown = alive(secret)
        guards = [Path(f"/proc/{pid}/environ").read_bytes() for pid in children_of(os.getpid())]
        (tmp_path / "SEEN").touch()

    assert running.result().head.decode() == f"{secret}\n"
    assert shown == []
    assert guards
    assert all(secret.encode() not in environ for environ in guards)


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
