import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.contracts.sandbox import SandboxReport
from core.sandbox.host import UnsafeHostShell
from core.sandbox.proof import UNPRIVILEGED
from core.sandbox.refused import RefusingSandbox
from core.sandbox.workspaces import make_workspace, workspace_problem

LANDLOCK = SandboxReport(kind="landlock", works=True, detail="")
BUBBLEWRAP = SandboxReport(kind="bubblewrap", works=True, detail="")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="lodger-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@as_root
@pytest.mark.parametrize(("report", "owner"), [(LANDLOCK, UNPRIVILEGED), (BUBBLEWRAP, 0)])
def test_a_new_workspace_of_root_goes_to_whom_commands_can_run_as(open_folder: Path, report: SandboxReport, owner: int):
    make_workspace(open_folder / "work" / "space", report)
    assert (open_folder / "work" / "space").stat().st_uid == owner
    assert (open_folder / "work").stat().st_uid == 0


@as_root
def test_a_workspace_that_was_there_is_not_given_away(open_folder: Path):
    (open_folder / "mine").mkdir()
    make_workspace(open_folder / "mine", LANDLOCK)
    assert (open_folder / "mine").stat().st_uid == 0


@as_root
def test_a_workspace_that_nobody_can_reach_stays_with_root(open_folder: Path):
    open_folder.chmod(0o700)
    make_workspace(open_folder / "space", LANDLOCK)
    assert (open_folder / "space").stat().st_uid == 0


async def test_a_workspace_that_works_has_no_problem(tmp_path: Path):
    assert await workspace_problem(UnsafeHostShell(), tmp_path) == ""


async def test_the_problem_is_what_kept_the_command_from_running(tmp_path: Path):
    assert "cannot be reached" in await workspace_problem(UnsafeHostShell(), tmp_path / "gone")
    assert "no kernel for it" in await workspace_problem(RefusingSandbox("no kernel for it"), tmp_path)
