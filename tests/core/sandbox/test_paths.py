"""Workspace files for the tools: whole writes, bounded reads, and no way out."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from core.contracts.errors import ToolError
from core.sandbox.paths import BeneathFiles
from tests.core.sandbox.labs import IS_ROOT, NOBODY


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_text("inside")
    (root / "out").symlink_to("../secret")
    (root / "out-folder").symlink_to("..")
    (root / "in").symlink_to("sub/file")
    (root / "in-folder").symlink_to("sub")
    return root


@pytest.fixture
def files(workspace: Path) -> BeneathFiles:
    return BeneathFiles(workspace)


@pytest.mark.parametrize("path", ["out", "out-folder/secret", "../secret", "/etc/passwd", "sub/../../secret"])
def test_every_method_refuses_what_leads_out(files: BeneathFiles, path: str, tmp_path: Path) -> None:
    uses = [
        lambda: files.read(path, limit_bytes=99),
        lambda: files.stat(path),
        lambda: files.list(path),
        lambda: list(files.walk(path)),
    ]
    for use in uses:
        with pytest.raises(ToolError, match="leads out of the workspace"):
            use()
    for change in (lambda: files.write(path, b"x"), lambda: files.remove(f"{path}/secret")):
        with pytest.raises(ToolError, match=r"leads out of the workspace|not written through"):
            change()
    assert (tmp_path / "secret").read_text() == "secret"
    assert sorted(os.listdir(tmp_path)) == ["secret", "ws"]


def test_a_read_ends_at_its_limit(files: BeneathFiles) -> None:
    assert files.read("sub/file", limit_bytes=99) == b"inside"
    assert files.read("sub/file", limit_bytes=2) == b"in"
    assert files.read("sub/file", limit_bytes=0) == b""


def test_absolute_paths_of_the_workspace_and_links_inside_it_are_read(files: BeneathFiles, workspace: Path) -> None:
    assert files.read(str(workspace / "sub" / "file"), limit_bytes=99) == b"inside"
    assert files.read("in", limit_bytes=99) == b"inside"
    assert files.read("in-folder/file", limit_bytes=99) == b"inside"


def test_a_pipe_a_device_or_a_folder_is_no_file_and_holds_nobody(files: BeneathFiles, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")

    for path, reason in (("pipe", "not a regular file"), ("sub", "is a folder"), (".", "is a folder")):
        with pytest.raises(ToolError, match=reason):
            files.read(path, limit_bytes=99)
    for path in ("pipe", "sub"):
        with pytest.raises(ToolError):
            files.write(path, b"x")


def test_a_write_makes_missing_folders_and_leaves_no_other_file(files: BeneathFiles, workspace: Path) -> None:
    files.write("new/deep/file.txt", b"made")
    files.write("new/deep/file.txt", b"made again")

    assert (workspace / "new" / "deep" / "file.txt").read_bytes() == b"made again"
    assert os.listdir(workspace / "new" / "deep") == ["file.txt"]


def test_a_replaced_file_keeps_its_permissions(files: BeneathFiles, workspace: Path) -> None:
    (workspace / "run.sh").write_text("old")
    (workspace / "run.sh").chmod(0o4750)

    files.write("run.sh", b"new")

    assert (workspace / "run.sh").stat().st_mode & 0o7777 == 0o750


def test_a_reader_sees_the_old_content_or_the_new_and_never_a_part(files: BeneathFiles, workspace: Path) -> None:
    versions = (b"a" * 200_000, b"b" * 200_000)
    files.write("file", versions[0])
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(files.read("file", limit_bytes=300_000))

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(100):
        files.write("file", versions[turn % 2])
    over.set()
    reader.join()

    assert seen <= set(versions)
    assert seen


def test_nothing_is_written_through_a_link_and_the_target_is_named(files: BeneathFiles, workspace: Path) -> None:
    with pytest.raises(ToolError, match="'sub/file'"):
        files.write("in", b"x")

    assert (workspace / "in").is_symlink()


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_what_root_makes_belongs_to_the_owner_of_the_workspace(files: BeneathFiles, workspace: Path) -> None:
    os.chown(workspace, NOBODY, NOBODY)

    files.write("new/file", b"x")

    assert {(workspace / path).stat().st_uid for path in ("new", "new/file")} == {NOBODY}


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(files: BeneathFiles, workspace: Path) -> None:
    name = "n" * 250 + "/" + "m" * 300

    with pytest.raises(ToolError):
        files.write(name, b"x")
    assert not [left for left in os.listdir(workspace) if left.startswith(".lodger")]


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "sub/file/x", "missing"])
def test_names_that_cannot_be_are_told_to_the_model(files: BeneathFiles, path: str) -> None:
    with pytest.raises(ToolError):
        files.read(path, limit_bytes=9)


@pytest.mark.parametrize("path", ["", ".", "sub/", "sub/.."])
def test_a_write_needs_the_name_of_a_file(files: BeneathFiles, path: str) -> None:
    with pytest.raises(ToolError):
        files.write(path, b"x")


def test_facts_are_those_of_the_file(files: BeneathFiles, workspace: Path) -> None:
    facts = files.stat("in")

    assert (facts.size_bytes, facts.is_dir) == (6, False)
    assert facts.modified_ns == (workspace / "sub" / "file").stat().st_mtime_ns
    assert files.stat("sub").is_dir


def test_a_walk_names_everything_once_and_enters_no_link(files: BeneathFiles, workspace: Path) -> None:
    (workspace / "sub" / "b").mkdir()
    (workspace / "sub" / "b" / "c").write_text("1")
    (workspace / "gone").symlink_to("nowhere")

    assert [(entry.path, entry.is_dir, entry.size_bytes) for entry in files.walk(".") if not entry.is_dir] == [
        ("in", False, 6),
        ("sub/b/c", False, 1),
        ("sub/file", False, 6),
    ]
    assert [entry.path for entry in files.walk("sub")] == ["sub/b", "sub/b/c", "sub/file"]
    assert [entry.path for entry in files.walk(str(workspace / "sub"))] == ["sub/b", "sub/b/c", "sub/file"]


def test_a_walk_that_is_left_early_closes_what_it_opened(files: BeneathFiles) -> None:
    before = len(os.listdir("/proc/self/fd"))
    walk = files.walk(".")
    next(walk)
    walk.close()

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_deep_tree_is_walked_to_where_paths_end(files: BeneathFiles, workspace: Path) -> None:
    fd = os.open(workspace, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)

    walked = sum(1 for _ in files.walk("d"))
    subprocess.run(["rm", "-rf", str(workspace / "d")], check=True)  # too deep for the cleaning of tmp_path

    assert walked == 1499


def test_a_listing_is_by_name(files: BeneathFiles) -> None:
    assert [entry.path for entry in files.list(".")] == ["in", "sub"]
    assert [entry.path for entry in files.list("sub")] == ["sub/file"]


def test_removing_takes_a_link_itself_and_no_folder(files: BeneathFiles, workspace: Path, tmp_path: Path) -> None:
    files.remove("out")
    files.remove("sub/file")
    with pytest.raises(ToolError):
        files.remove("sub")

    assert sorted(os.listdir(workspace)) == ["in", "in-folder", "out-folder", "sub"]
    assert (tmp_path / "secret").exists()


def test_a_workspace_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot be opened"):
        BeneathFiles(tmp_path / "gone").read("x", limit_bytes=1)
