"""C65: no command reads what is outside its workspace, and ordinary tools work all the same."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.sandbox.environment import SEARCH_PATH
from tests.core.sandbox.labs import Lab

SECRET = "outside-" + "secret-marker"

PRYING = (
    "cat ~/.host/config.toml",
    "cat ~root/x",
    "cat $HOME/.host/config.toml",
    "cat {outside}/home/.host/config.toml",
    "cat ../secret.txt",
    "cd .. && cat secret.txt",
    "cat {outside}/w?/../secret.txt",
    "cat link",
    "cat folder-link/secret.txt",
    "python3 -c \"print(open('{outside}/secret.txt').read())\"",
    "cat /proc/1/environ; env",
    "cat /proc/self/root{outside}/secret.txt",
    "cat /proc/*/root{outside}/secret.txt",
    "ln {outside}/secret.txt h && cat h",
    "tar cf - {outside} | head -c 9999",
    "curl -s file://{outside}/secret.txt",
    "git -C / status",
    "cp -r {outside} copy; cat copy/secret.txt",
    "mv ../secret.txt here; cat here",
    "bash -c 'exec 3<{outside}/secret.txt; cat <&3'",
)

WORKING = (
    ("echo x > ~/f && cat ~/f", "x\n"),
    ("echo kept; cmd 2>/dev/null", "kept\n"),
    ("f=$(mktemp) && echo made > $f && cat $f", "made\n"),
    ('case "$HOME" in "$PWD"/*) echo inside;; esac', "inside\n"),
)


@pytest.fixture
def secret(isolating_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Put the marker where each of the lines looks for it."""
    outside, workspace = isolating_lab.outside, isolating_lab.workspace
    (outside / "secret.txt").write_text(SECRET)
    (outside / "home" / ".host").mkdir(parents=True)
    (outside / "home" / ".host" / "config.toml").write_text(SECRET)
    (workspace / "link").symlink_to("../secret.txt")
    (workspace / "folder-link").symlink_to(outside)
    monkeypatch.setenv("HOST_TOKEN", SECRET)
    monkeypatch.setenv("HOME", str(outside / "home"))
    return isolating_lab


@pytest.mark.parametrize("line", PRYING)
async def test_c65_no_line_shows_what_is_outside_the_workspace(secret: Lab, line: str) -> None:
    result = await secret.run(line.replace("{outside}", str(secret.outside)))

    assert SECRET.encode() not in result.head + result.tail
    assert (secret.outside / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize(("line", "shown"), WORKING)
async def test_c65_what_tools_need_works(secret: Lab, line: str, shown: str) -> None:
    assert await secret.text(line) == shown


async def test_c65_pip_finds_a_home_it_can_use(secret: Lab) -> None:
    if shutil.which("pip", path=SEARCH_PATH) is None:
        assert (
            await secret.text("python3 -c 'import os, pathlib; (pathlib.Path.home() / \"p\").mkdir(); print(1)'")
            == "1\n"
        )
        return
    assert (await secret.text("pip --version")).startswith("pip ")


async def test_the_home_folder_does_not_show_up_in_the_workspaces_git_status(isolating_lab: Lab) -> None:
    assert await isolating_lab.text("git init -q . && git status --porcelain") == ""


async def test_the_command_sees_its_own_environment_and_its_files_belong_to_the_workspaces_owner(
    isolating_lab: Lab,
) -> None:
    shown = await isolating_lab.text("touch made; echo $TOKEN; pwd", env={"TOKEN": "given"})

    assert shown == f"given\n{isolating_lab.workspace}\n"
    assert (isolating_lab.workspace / "made").stat().st_uid == isolating_lab.workspace.stat().st_uid


async def test_a_read_only_path_can_be_read_and_not_written(isolating_lab: Lab) -> None:
    shared = isolating_lab.outside / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "note").write_text("for you\n")

    shown = await isolating_lab.text(f"cat {shared}/note; touch {shared}/new || echo refused", read_only=(shared,))

    assert shown.startswith("for you\n")
    assert shown.endswith("refused\n")
    assert not (shared / "new").exists()


async def test_no_descriptor_of_the_host_is_inherited(isolating_lab: Lab) -> None:
    kept = isolating_lab.outside / "kept"
    kept.write_text(SECRET)
    fd = os.open(kept, os.O_RDONLY)
    os.set_inheritable(fd, True)
    try:
        shown = await isolating_lab.text(f"python3 -c 'import os; print(os.read({fd}, 99))'")
    finally:
        os.close(fd)

    assert "Bad file descriptor" in shown
    assert SECRET not in shown


@contextmanager
def listening(sock: socket.socket, address: object) -> Iterator[None]:
    """Answer the first connection with the secret."""
    sock.bind(address)
    sock.listen()
    sock.settimeout(0.1)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                peer, _ = sock.accept()
            except TimeoutError:
                continue
            with peer:
                peer.sendall(SECRET.encode())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sock.close()


CONNECT = "import socket; s=socket.socket(socket.{family}); s.settimeout(3); s.connect({address!r}); print(s.recv(99))"


async def test_a_socket_file_of_the_host_cannot_be_reached(isolating_lab: Lab) -> None:
    path = isolating_lab.outside / "host.sock"
    with listening(socket.socket(socket.AF_UNIX), str(path)):
        path.chmod(0o777)
        line = CONNECT.format(family="AF_UNIX", address=str(path))
        shown = await isolating_lab.text(f'python3 -c "{line}"', network=True)

    assert "Error" in shown
    assert SECRET not in shown


@pytest.mark.parametrize(("network", "reached"), [(False, False), (True, True)])
async def test_the_hosts_network_is_reached_only_when_it_is_allowed(
    isolating_lab: Lab, network: bool, reached: bool
) -> None:
    server = socket.socket()
    with listening(server, ("127.0.0.1", 0)):
        line = CONNECT.format(family="AF_INET", address=server.getsockname())
        shown = await isolating_lab.text(f'python3 -c "{line}"', network=network)

    assert (SECRET in shown) is reached


async def test_a_workspace_that_is_a_folder_of_the_system_is_refused(isolating_lab: Lab, tmp_path: Path) -> None:
    for folder in ("/", "/usr", "/etc", "/tmp"):
        lab = Lab(isolating_lab.kind, isolating_lab.sandbox, Path(folder), tmp_path)
        with pytest.raises(Exception, match="folder of the system"):
            await lab.run("true")
