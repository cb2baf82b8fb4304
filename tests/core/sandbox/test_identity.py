"""As whom a command runs, and which folders can be its workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.contracts.errors import SandboxUnavailable
from core.sandbox.identity import Identity, checked_workspace, require_existing, workspace_identity
from tests.core.sandbox.labs import IS_ROOT, NOBODY, reachable_folder

only_root = pytest.mark.skipif(not IS_ROOT, reason="only root may choose")


@pytest.fixture
def workspace() -> Iterator[Path]:
    with reachable_folder() as folder:
        (folder / "ws").mkdir()
        yield folder / "ws"


@only_root
def test_root_becomes_the_owner_of_the_workspace(workspace: Path) -> None:
    os.chown(workspace, NOBODY, NOBODY)

    assert workspace_identity(workspace) == Identity(uid=NOBODY, gid=NOBODY, dropped=True)


@only_root
def test_root_takes_the_uid_as_group_where_the_user_has_no_name(workspace: Path) -> None:
    os.chown(workspace, 54_321, 0)

    assert workspace_identity(workspace) == Identity(uid=54_321, gid=54_321, dropped=True)


@only_root
def test_root_stays_root_in_a_workspace_of_its_own(workspace: Path) -> None:
    assert workspace_identity(workspace) == Identity(uid=0, gid=0, dropped=False)


@only_root
def test_a_closed_folder_above_is_named_with_both_ways_out(workspace: Path) -> None:
    os.chown(workspace, NOBODY, NOBODY)
    workspace.parent.chmod(0o700)

    with pytest.raises(SandboxUnavailable) as refused:
        workspace_identity(workspace)

    assert f"chmod o+x {workspace.parent}" in refused.value.reason
    assert "set a workspace that it can reach" in refused.value.reason


@pytest.mark.skipif(IS_ROOT, reason="root is somebody else's case")
def test_who_is_not_root_stays_who_it_is(workspace: Path) -> None:
    assert workspace_identity(workspace) == Identity(uid=os.geteuid(), gid=os.getegid(), dropped=False)


def test_a_workspace_that_is_gone_a_file_or_a_circle_is_refused(workspace: Path) -> None:
    (workspace / "file").write_text("")
    (workspace / "circle").symlink_to("circle")

    for name in ("gone", "file", "circle"):
        with pytest.raises(SandboxUnavailable, match=str(workspace / name)):
            checked_workspace(workspace / name)


def test_links_to_a_workspace_are_resolved(workspace: Path) -> None:
    (workspace.parent / "link").symlink_to("ws")

    assert checked_workspace(workspace.parent / "link") == workspace.resolve()


def test_a_link_to_the_system_is_no_workspace(workspace: Path) -> None:
    (workspace / "link").symlink_to("/usr")

    with pytest.raises(SandboxUnavailable, match="folder of the system"):
        checked_workspace(workspace / "link")


def test_a_missing_read_only_path_is_named(workspace: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="gone"):
        require_existing(workspace / "gone")
