"""C66: a command ends as a whole, whatever it started and however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.core.sandbox.labs import LONGEST_WAIT_SECONDS, Lab, alive

REPOSITORY = Path(__file__).parents[3]

ENDLESS = (
    "echo so far; sleep {n} | cat",
    "echo so far; sh -c 'trap \"\" TERM; sleep {n}'",
    "echo so far; trap '' TERM; sleep {n}; sleep {n}",
    "echo so far; (sleep {n}; touch LATE) & wait",
    "echo so far; setsid sleep {n}",
    "echo so far; nohup sh -c 'sleep {n}; touch LATE' & wait",
    'echo so far; python3 -c "import os,time; os.fork() or os.setsid(); time.sleep({n})"',
    'echo so far; python3 -c "import os,time; [os.fork() or os.setsid() for _ in range(4)]; time.sleep({n})"',
)

LEAVING = (
    "echo started; sleep {n} &",
    "echo started; setsid sleep {n} &",
    "echo started; nohup sh -c 'sleep {n}; touch LATE' >/dev/null 2>&1 &",
    "echo started; (setsid setsid sh -c 'trap \"\" TERM HUP; sleep {n}; touch LATE' &) >/dev/null 2>&1 </dev/null",
)


@pytest.fixture
def number() -> str:
    """A length of sleep that is this test's alone, so that its processes can be told apart."""
    return f"3600.{uuid.uuid4().int % 10**12:012d}"


def processes_of(number: str) -> list[str]:
    return alive(number)


@pytest.mark.parametrize("line", ENDLESS)
async def test_c66_a_timeout_ends_everything_the_command_started(any_lab: Lab, number: str, line: str) -> None:
    result = await any_lab.run(line.replace("{n}", number), seconds=0.6)

    assert result.timed_out
    assert result.head.startswith(b"so far\n")
    assert processes_of(number) == []
    assert not (any_lab.workspace / "LATE").exists()


@pytest.mark.parametrize("line", LEAVING)
async def test_c66_a_shell_that_exits_ends_its_command_at_once(any_lab: Lab, number: str, line: str) -> None:
    result = await any_lab.run(line.replace("{n}", number), seconds=600)

    assert (result.head, result.exit_code, result.timed_out) == (b"started\n", 0, False)
    assert processes_of(number) == []
    assert not (any_lab.workspace / "LATE").exists()


async def test_c66_cancelling_ends_everything_and_is_raised(any_lab: Lab, number: str) -> None:
    line = f"setsid sleep {number} & touch BEGUN; trap '' TERM; sleep {number}"
    async with asyncio.timeout(LONGEST_WAIT_SECONDS):
        running = asyncio.create_task(any_lab.run(line, seconds=600))
        while not (any_lab.workspace / "BEGUN").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert processes_of(number) == []


async def test_a_second_cancellation_shortens_the_grace_and_still_ends_everything(any_lab: Lab, number: str) -> None:
    line = f"setsid sleep {number} & touch BEGUN; trap '' TERM; sleep {number}; sleep {number}"
    async with asyncio.timeout(LONGEST_WAIT_SECONDS):
        running = asyncio.create_task(any_lab.run(line, seconds=600))
        while not (any_lab.workspace / "BEGUN").exists():
            await asyncio.sleep(0.01)
        for _ in range(3):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running

    assert processes_of(number) == []


async def test_cancelling_while_a_command_starts_leaves_nothing(any_lab: Lab, number: str) -> None:
    for turns in range(12):
        running = asyncio.create_task(any_lab.run(f"sleep {number}", seconds=600))
        for _ in range(turns):
            await asyncio.sleep(0.001)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert processes_of(number) == []


HOST = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from core.contracts.sandbox import SandboxCommand
from core.sandbox.detection import open_sandbox

async def main(kind, workspace, line):
    sandbox = await open_sandbox(kind, scratch=Path(workspace).parent / "scratch")
    argv = ("/bin/sh", "-c", line)
    await sandbox.run(SandboxCommand(argv=argv, workspace=Path(workspace), env={}, timeout=timedelta(hours=1)))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_c66_no_command_outlives_its_host(any_lab: Lab, number: str, ending: signal.Signals) -> None:
    line = f"setsid sleep {number} & touch BEGUN; sleep {number}"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, any_lab.kind.split()[0], str(any_lab.workspace), line],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until((any_lab.workspace / "BEGUN").exists)
        host.send_signal(ending)
        host.wait(LONGEST_WAIT_SECONDS)
        wait_until(lambda: not processes_of(number))
    finally:
        host.kill()
        host.wait()


def wait_until(holds) -> None:
    give_up_at = time.monotonic() + LONGEST_WAIT_SECONDS
    while not holds():
        assert time.monotonic() < give_up_at, "it did not come to hold"
        time.sleep(0.01)


async def test_a_program_that_cannot_be_started_closes_what_was_opened(any_lab: Lab) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await any_lab.run("true")
        await any_lab.run("exit 1")

    assert len(os.listdir("/proc/self/fd")) == before
