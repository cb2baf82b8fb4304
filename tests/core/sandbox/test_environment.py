"""C68: a command that asks for input finds nobody there, and ends."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from core.contracts.errors import InvalidInput
from core.sandbox.environment import inside_environment
from tests.core.sandbox.labs import LONGEST_WAIT_SECONDS, Lab

REPOSITORY = Path(__file__).parents[3]
GIT = "git init -q . && git config user.email a@example.org && git config user.name a && touch f && git add f"

ASKING = (
    ('read x; echo "got:$x"', "got:"),
    ("cat", ""),
    ('python3 -c "input()"', "EOFError"),
    ("sudo -k true", ""),
    ("ssh -o StrictHostKeyChecking=ask nobody@127.0.0.1", ""),
    (f"{GIT}; git commit", "empty commit message"),
    (f"{GIT}; git commit -qm first; git log", "first"),
    (f"{GIT}; git commit -qm first; git rebase -i --root", ""),
    ("git clone https://user@127.0.0.1:9/x.git", "fatal"),
    ("exec 3</dev/tty; read y <&3", "/dev/tty"),
    ("apt-get install x", ""),
    ("top", ""),
    ("man sh", ""),
    ("bash -i", ""),
)


@pytest.mark.parametrize(("line", "shown"), ASKING)
async def test_c68_a_command_that_asks_ends_without_an_answer(any_lab: Lab, line: str, shown: str) -> None:
    result = await any_lab.run(line, seconds=10)

    assert not result.timed_out
    assert shown in (result.head + result.tail).decode(errors="replace")


HOST = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from core.contracts.sandbox import SandboxCommand
from core.sandbox.detection import open_sandbox

async def main(kind, workspace, line):
    sandbox = await open_sandbox(kind, scratch=Path(workspace).parent / "scratch")
    argv = ("/bin/sh", "-c", line)
    result = await sandbox.run(
        SandboxCommand(argv=argv, workspace=Path(workspace), env={}, timeout=timedelta(seconds=20))
    )
    print("timed out:", result.timed_out)

asyncio.run(main(*sys.argv[1:]))
"""


def test_c68_nothing_is_written_to_or_read_from_the_terminal_of_the_host(any_lab: Lab) -> None:
    ours, theirs = pty.openpty()
    line = "echo leaked >/dev/tty; cat </dev/tty; cat"
    kind = any_lab.kind.split()[0]
    host = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-c", HOST, kind, str(any_lab.workspace), line],
        cwd=REPOSITORY,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, b"typed by a person\n")
    try:
        shown = read_all(ours)
        host.wait(LONGEST_WAIT_SECONDS)
    finally:
        os.close(ours)
        host.kill()
        host.wait()

    assert "timed out: False" in shown
    assert "leaked" not in shown


def read_all(fd: int) -> str:
    shown = b""
    while select.select([fd], [], [], LONGEST_WAIT_SECONDS)[0]:
        try:
            chunk = os.read(fd, 4096)
        except OSError:  # Linux ends a terminal that nobody holds with EIO
            break
        if not chunk:
            break
        shown += chunk
    return shown.decode(errors="replace")


def test_what_a_caller_sets_wins() -> None:
    environment = inside_environment(Path("/ws"), {"PATH": "/opt/bin", "TOKEN": "t"}, temporary=Path("/tmp"))

    assert (environment["PATH"], environment["TOKEN"]) == ("/opt/bin", "t")
    assert environment["HOME"] == "/ws/.home"


@pytest.mark.parametrize(("name", "value"), [("A=B", "x"), ("", "x"), ("A", "x\0--bind\0/\0/"), ("A\0", "x")])
def test_an_entry_that_would_add_options_to_bubblewrap_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        inside_environment(Path("/ws"), {name: value}, temporary=Path("/tmp"))
