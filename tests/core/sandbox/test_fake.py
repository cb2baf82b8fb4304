"""The fake sandbox: what tests of others can rely on."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from core.contracts.clock import FakeClock
from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import SandboxCommand
from core.sandbox.fake import FakeOutcome, FakeSandbox


def command(line: str, workspace: Path) -> SandboxCommand:
    return SandboxCommand(argv=("sh", "-c", line), workspace=workspace, env={}, timeout=timedelta(seconds=5))


async def test_commands_are_recorded_in_order(tmp_path: Path) -> None:
    sandbox = FakeSandbox({"a": FakeOutcome(output=b"A"), "b": FakeOutcome(exit_code=2)})

    first = await sandbox.run(command("a", tmp_path))
    second = await sandbox.run(command("b", tmp_path))

    assert (first.head, second.exit_code) == (b"A", 2)
    assert [ran.argv[-1] for ran in sandbox.commands] == ["a", "b"]


async def test_a_refusal_starts_nothing(tmp_path: Path) -> None:
    sandbox = FakeSandbox({"a": FakeOutcome(refused="not today")})

    with pytest.raises(SandboxUnavailable, match="not today"):
        await sandbox.run(command("a", tmp_path))

    assert sandbox.commands == []


async def test_time_is_the_clocks(tmp_path: Path) -> None:
    clock = FakeClock()
    sandbox = FakeSandbox({"slow": FakeOutcome(output=b"so far", takes=timedelta(hours=1))}, clock=clock)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        running = group.create_task(sandbox.run(command("slow", tmp_path)))
        await asyncio.sleep(0)
        assert len(sandbox.running) == 1
        await clock.advance(timedelta(seconds=5))

    assert (running.result().timed_out, running.result().head) == (True, b"so far")
    assert sandbox.running == []
