"""Bubblewrap: each trap of its own, and what it says when it cannot work."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from core.contracts.errors import SandboxUnavailable
from core.sandbox.bubblewrap import BubblewrapSandbox, open_bubblewrap
from core.sandbox.minimal_root import TEMPORARY_BYTES
from tests.core.sandbox.labs import IS_ROOT, NOBODY, Lab, opened_lab

REPOSITORY = Path(__file__).parents[3]
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root can drop to another user")


@pytest.fixture(params=["bubblewrap", "bubblewrap as root"])
def lab(request, real_sandbox):
    with opened_lab(request.param, real_sandbox(request.param)) as opened:
        yield opened


async def test_the_root_holds_programs_and_made_files_only(lab: Lab) -> None:
    shown = await lab.text("ls /; ls /etc /etc/ssl; ls /root /home /srv /var /sys 2>&1 | grep -c 'No such'")

    top = {"bin", "dev", "etc", "lib", "proc", "run", "tmp", "usr", "var"}
    assert top <= set(shown.split())
    assert not {"shadow", "private", "home", "root", "boot"} & set(shown.split())


async def test_no_part_of_the_root_can_be_written(lab: Lab) -> None:
    places = "/ /usr /etc /dev /proc /var /etc/passwd /proc/sys/kernel/core_pattern /proc/sys/vm/overcommit_memory"
    line = f"for p in {places}; do (echo x > $p || echo x > $p/x) 2>/dev/null && echo wrote $p; done; echo over"

    assert await lab.text(line) == "over\n"


async def test_every_file_system_in_memory_has_a_size(lab: Lab) -> None:
    shown = await lab.text("for p in /tmp /dev/shm /run; do stat -f -c '%b %S' $p; done")

    sizes = [int(blocks) * int(size) for blocks, size in (line.split() for line in shown.splitlines())]
    assert len(sizes) == 3
    assert max(sizes) <= TEMPORARY_BYTES


async def test_the_first_process_inside_shows_nothing_of_the_host(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_TOKEN", "of-the-" + "host")

    shown = await lab.text("cat /proc/1/environ /proc/1/cmdline", env={"TOKEN": "of-the-command"})

    assert "PATH=" in shown
    assert "of-the-host" not in shown
    assert "of-the-command" not in shown
    assert str(lab.workspace) not in shown


async def test_the_arguments_others_can_see_on_the_host_hold_no_environment(lab: Lab) -> None:
    line = "touch BEGUN; while [ ! -e SEEN ]; do :; done"
    async with asyncio.TaskGroup() as group:
        running = group.create_task(lab.run(line, env={"TOKEN": "of-the-command"}))
        while not (lab.workspace / "BEGUN").exists():
            await asyncio.sleep(0.01)
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        (lab.workspace / "SEEN").touch()

    assert running.result().exit_code == 0
    assert "touch BEGUN" in listed
    assert "of-the-command" not in listed


async def test_there_are_no_capabilities_and_none_to_gain(lab: Lab) -> None:
    shown = await lab.text("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")

    facts = dict(line.split(":\t") for line in shown.splitlines())
    assert {facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


async def test_a_command_cannot_make_namespaces_of_its_own(lab: Lab) -> None:
    result = await lab.run("unshare -Ur true || unshare -m true || unshare -n true")

    assert result.exit_code != 0


async def test_processes_of_the_host_cannot_be_seen(lab: Lab) -> None:
    shown = await lab.text("ls /proc | grep -c '^[0-9]'")

    assert int(shown) < 10


async def test_loopback_works_and_is_private(lab: Lab) -> None:
    (lab.workspace / "talk.py").write_text(
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n"
        "c.sendall(b'hi'); print(s.accept()[0].recv(2).decode())\n"
        "print([name for _, name in socket.if_nameindex()])\n"
    )

    assert await lab.text("python3 talk.py") == "hi\n['lo']\n"


async def test_sockets_to_the_machine_below_are_refused(lab: Lab) -> None:
    assert "PermissionError" in await lab.text("python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'")


async def test_a_read_only_folder_inside_the_workspace_stays_so(lab: Lab) -> None:
    (lab.workspace / "fixed").mkdir()
    (lab.workspace / "fixed").chmod(0o777)

    assert "Read-only" in await lab.text("touch fixed/x", read_only=(lab.workspace / "fixed",))


async def test_a_workspace_behind_a_link_keeps_its_path(lab: Lab) -> None:
    link = lab.outside / "by-link"
    link.symlink_to(lab.workspace)

    assert await Lab(lab.kind, lab.sandbox, link, lab.outside).text("pwd; echo x > made") == f"{link}\n"
    assert (lab.workspace / "made").read_text() == "x\n"


FORKS = """
import os, signal
pids = []
try:
    while len(pids) < 3000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
except OSError:
    pass
print(len(pids))
"""


async def test_processes_are_bounded(lab: Lab) -> None:
    if lab.kind == "bubblewrap as root" and any("pids cgroup" in limit for limit in lab.sandbox.report.limits):
        pytest.skip("no pids cgroup can be written here")
    (lab.workspace / "forks.py").write_text(FORKS)

    assert 0 < int(await lab.text("python3 forks.py")) <= 512


async def test_the_memory_of_a_process_is_bounded(lab: Lab) -> None:
    assert "MemoryError" in await lab.text("python3 -c 'bytearray(5 * 1024**3)'")


@only_root
async def test_a_workspace_of_root_runs_as_root_without_power(bubblewrap_as_root: Lab) -> None:
    assert await bubblewrap_as_root.text("id -u; cat /etc/shadow 2>&1; chmod 600 /usr 2>&1 | cut -c1-6") == (
        "0\ncat: /etc/shadow: No such file or directory\nchmod:\n"
    )


@only_root
async def test_a_workspace_of_another_user_runs_as_that_user(bubblewrap: Lab) -> None:
    assert await bubblewrap.text("id -u; touch made") == f"{NOBODY}\n"
    assert (bubblewrap.workspace / "made").stat().st_uid == NOBODY


@only_root
async def test_a_workspace_its_owner_cannot_reach_is_refused_with_the_fix(bubblewrap: Lab) -> None:
    bubblewrap.outside.chmod(0o700)

    with pytest.raises(SandboxUnavailable, match=f"may not enter '{bubblewrap.outside}'.*chmod o\\+x"):
        await bubblewrap.run("true")


async def test_a_missing_program_is_named_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxUnavailable, match="not installed; run: apt-get install bubblewrap"):
        await open_bubblewrap(tmp_path)


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        (
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow",
            "unprivileged_userns",
        ),
        ("bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns"),
        ("bwrap: Unknown option --disable-userns", "0.8 or newer"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
    ],
)
async def test_a_program_that_the_kernel_refuses_is_told_with_its_words_and_the_fix(
    tmp_path: Path, message: str, fix: str
) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f'#!/bin/sh\necho "{message}" >&2\nexit 1\n')
    program.chmod(0o755)

    with pytest.raises(SandboxUnavailable) as refused:
        await open_bubblewrap(tmp_path / "scratch", str(program))

    assert message in refused.value.reason
    assert fix in refused.value.reason


async def test_a_missing_read_only_path_starts_nothing(lab: Lab) -> None:
    with pytest.raises(SandboxUnavailable, match="/no/such/path"):
        await lab.run("touch ran", read_only=(Path("/no/such/path"),))

    assert not (lab.workspace / "ran").exists()


AS_NOBODY = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from core.contracts.sandbox import SandboxCommand
from core.sandbox.detection import open_sandbox

async def main(kind, folder):
    workspace = Path(folder) / "ws"
    workspace.mkdir()
    sandbox = await open_sandbox(kind, scratch=Path(folder) / "scratch")
    argv = ("/bin/sh", "-c", "id -u; echo x > ~/f && cat ~/f; cat /etc/shadow ../secret 2>/dev/null; setsid sleep 9 &")
    result = await sandbox.run(SandboxCommand(argv=argv, workspace=workspace, env={}, timeout=timedelta(seconds=20)))
    print(sandbox.report.kind, result.head, result.exit_code)

asyncio.run(main(*sys.argv[1:]))
"""


@only_root
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_a_host_that_is_not_root_needs_no_more(bubblewrap: Lab, kind: str) -> None:
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", python or "", "-B"]
    able = subprocess.run([*command, "-c", "import tomllib, core.sandbox"], cwd=REPOSITORY, check=False)
    if able.returncode != 0:
        pytest.skip("no Python 3.11 that an unprivileged user can run here")
    os.chown(bubblewrap.outside, NOBODY, NOBODY)
    shutil.rmtree(bubblewrap.workspace)

    ran = subprocess.run(
        [*command, "-c", AS_NOBODY, kind, str(bubblewrap.outside)],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert ran.stdout == f"{kind} b'{NOBODY}\\nx\\n' 0\n", ran.stderr


def test_it_is_built_from_a_program_and_what_was_proven(bubblewrap: Lab) -> None:
    assert isinstance(bubblewrap.sandbox, BubblewrapSandbox)
    assert "minimal root" in bubblewrap.sandbox.report.detail
