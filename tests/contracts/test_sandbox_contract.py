"""What every sandbox promises, run on each real one and on the fake."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import SandboxCommand
from core.sandbox.fake import FakeOutcome, FakeSandbox
from core.sandbox.refused import RefusingSandbox
from tests.core.sandbox.labs import REAL_KINDS, Lab, open_real, opened_lab

COUNT = "seq 1 20000"
COUNTED = "".join(f"{n}\n" for n in range(1, 20_001)).encode()
BOTH_STREAMS = "echo out; echo err >&2; echo out again"
SLEEP = "echo begun; sleep 3600"

OUTCOMES = {
    "exit 3": FakeOutcome(exit_code=3),
    BOTH_STREAMS: FakeOutcome(output=b"out\nerr\nout again\n"),
    COUNT: FakeOutcome(output=COUNTED),
    SLEEP: FakeOutcome(output=b"begun\n", takes=timedelta(hours=1)),
    "cat": FakeOutcome(),
    "no-such-program-here": FakeOutcome(output=b"sh: no-such-program-here: not found\n", exit_code=127),
}


@pytest.fixture(params=(*REAL_KINDS, "fake"))
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    kind = request.param
    sandbox = FakeSandbox(OUTCOMES) if kind == "fake" else open_real(kind, tmp_path)
    with opened_lab(kind, sandbox) as opened:
        yield opened


def test_the_report_says_what_kind_it_is_and_that_it_works(lab: Lab) -> None:
    assert lab.sandbox.report.works
    assert lab.sandbox.report.kind == lab.kind.split()[0]
    assert lab.sandbox.report.detail


async def test_the_exit_code_is_the_commands_own(lab: Lab) -> None:
    result = await lab.run("exit 3")

    assert (result.exit_code, result.timed_out, result.dropped_bytes) == (3, False, 0)


async def test_an_unknown_program_is_a_result_not_a_failure_of_the_sandbox(lab: Lab) -> None:
    result = await lab.run("no-such-program-here")

    assert result.exit_code == 127
    assert b"not found" in result.head


async def test_both_streams_come_as_they_were_interleaved(lab: Lab) -> None:
    assert await lab.text(BOTH_STREAMS) == "out\nerr\nout again\n"


async def test_output_that_fits_is_whole_and_nothing_is_spilled(lab: Lab, tmp_path: Path) -> None:
    result = await lab.run(COUNT, keep_bytes=len(COUNTED) // 2 + 1, spill=tmp_path / "spill")

    assert result.head + result.tail == COUNTED
    assert (result.dropped_bytes, result.spilled) == (0, False)
    assert not (tmp_path / "spill").exists()


async def test_output_that_does_not_fit_keeps_both_ends_and_goes_whole_to_the_spill_file(
    lab: Lab, tmp_path: Path
) -> None:
    result = await lab.run(COUNT, keep_bytes=100, spill=tmp_path / "spill")

    assert result.head == COUNTED[:100]
    assert result.tail == COUNTED[-100:]
    assert result.dropped_bytes == len(COUNTED) - 200
    assert result.spilled
    assert (tmp_path / "spill").read_bytes() == COUNTED


async def test_the_spill_file_ends_at_its_limit_and_the_command_goes_on(lab: Lab, tmp_path: Path) -> None:
    result = await lab.run(COUNT, keep_bytes=100, spill=tmp_path / "spill", spill_limit_bytes=1000)

    assert (tmp_path / "spill").read_bytes() == COUNTED[:1000]
    assert result.exit_code == 0
    assert result.tail == COUNTED[-100:]


async def test_standard_input_is_empty(lab: Lab) -> None:
    result = await lab.run("cat")

    assert (result.exit_code, result.head) == (0, b"")


async def test_a_timeout_gives_the_output_so_far_and_no_exit_code(lab: Lab) -> None:
    result = await lab.run(SLEEP, seconds=0.5)

    assert result.timed_out
    assert result.exit_code is None
    assert result.head == b"begun\n"


async def test_a_cancelled_command_is_cancelled(lab: Lab) -> None:
    command = SandboxCommand(argv=("/bin/sh", "-c", SLEEP), workspace=lab.workspace, env={}, timeout=timedelta(hours=1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await lab.sandbox.run(command)


async def test_commands_run_side_by_side(lab: Lab) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        runs = [group.create_task(lab.run("exit 3")) for _ in range(8)]

    assert [run.result().exit_code for run in runs] == [3] * 8


async def test_a_workspace_that_was_deleted_starts_nothing_and_is_named(lab: Lab) -> None:
    lab.workspace.rmdir()

    with pytest.raises(SandboxUnavailable, match=str(lab.workspace)):
        await lab.run("exit 3")


async def test_a_refusing_sandbox_says_why_and_runs_nothing(tmp_path: Path) -> None:
    sandbox = RefusingSandbox("no bubblewrap here")

    assert not sandbox.report.works
    with pytest.raises(SandboxUnavailable, match="no bubblewrap here"):
        await Lab("none", sandbox, tmp_path, tmp_path).run("exit 3")
