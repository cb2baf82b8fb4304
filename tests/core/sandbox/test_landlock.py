"""Landlock: what it leaves open is closed otherwise, or said in the report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.contracts.errors import SandboxUnavailable
from core.sandbox.landlock import landlock_abi
from tests.core.sandbox.labs import IS_ROOT, Lab, opened_lab


def python(code: str) -> str:
    return f'python3 -c "{code}"'


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX"])
async def test_without_network_no_socket_can_be_opened_not_even_for_udp(landlock: Lab, family: str, kind: str) -> None:
    shown = await landlock.text(python(f"import socket; socket.socket(socket.{family}, socket.{kind})"))

    assert "PermissionError" in shown


async def test_with_network_socket_files_stay_closed(landlock: Lab) -> None:
    opened = await landlock.text(python("import socket; socket.socket(); print('tcp')"), network=True)
    closed = await landlock.text(python("import socket; socket.socket(socket.AF_UNIX)"), network=True)

    assert opened == "tcp\n"
    assert "PermissionError" in closed


async def test_the_processes_of_the_same_user_show_nothing(landlock: Lab) -> None:
    assert await landlock.text("cat /proc/self/environ /proc/1/environ; ls /proc") == (
        "cat: /proc/self/environ: Permission denied\n"
        "cat: /proc/1/environ: Permission denied\n"
        "ls: cannot open directory '/proc': Permission denied\n"
    )


async def test_the_host_cannot_be_signalled(landlock: Lab) -> None:
    assert "not permitted" in await landlock.text(f"bash -c 'kill -0 {os.getpid()}'")


async def test_files_move_between_the_folders_of_the_workspace(landlock: Lab) -> None:
    assert await landlock.text("mkdir a b && echo x > a/f && mv a/f b/g && ln b/g b/h && cat b/h") == "x\n"


async def test_a_file_outside_that_everybody_may_write_cannot_be_changed(landlock: Lab) -> None:
    open_file = landlock.outside / "open"
    open_file.write_text("kept")
    open_file.chmod(0o666)

    await landlock.run(f"echo x > {open_file}; truncate -s 0 {open_file}; rm -f {open_file}")

    assert open_file.read_text() == "kept"


@pytest.mark.skipif(not IS_ROOT, reason="only root has a workspace of root")
async def test_a_workspace_of_root_is_refused_with_the_fix(landlock: Lab) -> None:
    confined = pytest.raises(SandboxUnavailable, match=r"cannot confine root.*install -d -o \d+ ")
    with opened_lab("bubblewrap as root", landlock.sandbox) as of_root, confined:
        await of_root.run("true")


async def test_a_read_only_path_inside_the_workspace_is_refused(landlock: Lab) -> None:
    inside = landlock.workspace / "fixed"
    inside.mkdir()

    with pytest.raises(SandboxUnavailable, match="inside the workspace"):
        await landlock.run("true", read_only=(inside,))


async def test_what_it_cannot_do_is_reported(landlock: Lab) -> None:
    limits = " ".join(landlock.sandbox.report.limits)

    assert landlock_abi() >= 3
    assert "UDP" in limits
    assert "names, sizes and times" in limits


async def test_the_private_keys_of_the_machine_are_closed(landlock: Lab, tmp_path: Path) -> None:
    assert "Permission denied" in await landlock.text("ls /etc/ssl/private")
