"""The cgroup that bounds root's processes: made for one command, removed after it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from core.sandbox.cgroup import ProcessCap
from tests.core.sandbox.labs import IS_ROOT, Lab


@pytest.fixture
async def cap() -> ProcessCap:
    found = await ProcessCap.find() if IS_ROOT else None
    if found is None:
        pytest.skip("no pids cgroup can be written here")
    return found


def ours(cap: ProcessCap) -> list[Path]:
    """Return the groups of this process; other hosts of the machine have theirs."""
    return list(cap.parent.glob(f"lodger-{os.getpid()}-*"))


async def test_a_program_runs_inside_and_the_group_is_removed_after_it(cap: ProcessCap) -> None:
    async with cap.around(("cat", "/proc/self/cgroup"), 7) as argv:
        (group,) = ours(cap)
        limit = (group / "pids.max").read_text()
        shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    assert (limit, group.name in shown) == ("7\n", True)
    assert ours(cap) == []


async def test_what_a_killed_host_left_behind_is_swept(cap: ProcessCap) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, used = cap.parent / f"lodger-{ended.pid}-left", cap.parent / f"lodger-{os.getpid()}-used"
    left.mkdir()
    used.mkdir()

    assert await ProcessCap.find() == cap
    assert (left.exists(), used.exists()) == (False, True)
    used.rmdir()


async def test_a_folder_that_is_no_controller_offers_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        async with ProcessCap(tmp_path / "missing").around(("true",), 7):
            pytest.fail("it has no cgroup")


async def test_no_group_is_left_by_a_command_of_root(bubblewrap_as_root: Lab, cap: ProcessCap) -> None:
    assert await bubblewrap_as_root.text("echo x; sleep 100 &") == "x\n"
    assert ours(cap) == []
