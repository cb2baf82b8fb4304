"""Opening below a folder, by the kernel and by hand: links planted inside never lead out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.sandbox.beneath import LeadsOutside, open_beneath, walk_beneath

Opener = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """A folder with a secret beside it and every way out planted in it."""
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_text("inside")
    (root / "absolute").symlink_to(tmp_path / "secret")
    (root / "relative").symlink_to("../secret")
    (root / "sub" / "deep").symlink_to("../../secret")
    (root / "folder").symlink_to("..")
    (root / "twice").symlink_to("folder")
    (root / "magic").symlink_to("/proc/self/cwd")
    (root / "inside").symlink_to("sub/file")
    (root / "circle").symlink_to("circle")
    fd = os.open(root, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture(params=[open_beneath, walk_beneath])
def opener(request: pytest.FixtureRequest) -> Opener:
    return request.param


WAYS_OUT = (
    "absolute", "relative", "sub/deep", "folder/secret", "twice/secret", "magic/x", "..", "../secret",
    "sub/../../secret", "/etc/passwd", "/", "./../secret",
)  # fmt: skip


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_way_out_is_taken(opener: Opener, folder: int, path: str) -> None:
    with pytest.raises(LeadsOutside):
        os.close(opener(folder, path, os.O_RDONLY))


@pytest.mark.parametrize("path", ["relative", "sub/deep", "folder/new", "../new"])
def test_nothing_is_made_outside(opener: Opener, folder: int, path: str, tmp_path: Path) -> None:
    with pytest.raises(LeadsOutside):
        os.close(opener(folder, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))

    assert (tmp_path / "secret").read_text() == "secret"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", ["sub/file", "./sub/file", "sub/../sub/file"])
def test_what_is_inside_opens_and_closes_on_exec(opener: Opener, folder: int, path: str) -> None:
    fd = opener(folder, path, os.O_RDONLY)
    try:
        assert os.read(fd, 99) == b"inside"
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


def test_the_kernel_follows_a_link_that_stays_inside(folder: int) -> None:
    fd = open_beneath(folder, "inside", os.O_RDONLY)
    try:
        assert os.read(fd, 99) == b"inside"
    finally:
        os.close(fd)


def test_by_hand_no_link_is_followed_at_all(folder: int) -> None:
    with pytest.raises(LeadsOutside):
        walk_beneath(folder, "inside", os.O_RDONLY)


def test_ordinary_failures_are_ordinary_errors(opener: Opener, folder: int) -> None:
    with pytest.raises(FileNotFoundError):
        opener(folder, "missing", os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        opener(folder, "sub/file/x", os.O_RDONLY)
    with pytest.raises(OSError):
        opener(folder, "circle", os.O_RDONLY)
    assert len(os.listdir("/proc/self/fd")) < 200
