"""What a person does wrong, or a machine lacks: one clear line, no traceback, nothing lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys

import pytest

from tests.acceptance.processes import Finished, Place, lodger, make_place, running_host

IS_ROOT = os.geteuid() == 0
USAGE, ERROR = 2, 1


def assert_one_line(ended: Finished, *words: str, code: int = ERROR) -> None:
    """Check that a command ended with one line for a person, beside the log."""
    told = [line for line in ended.err.splitlines() if line.startswith("lodger: ")]
    assert len(told) == 1, ended.err
    assert "Traceback" not in ended.err + ended.out
    for word in words:
        assert word in told[0]
    assert ended.code == code


def place_with(tmp_path, config: str) -> Place:
    place = make_place(tmp_path)
    place.config.write_text(config, encoding="utf-8")
    return place


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[host\n", ("config.toml", "line 1", "not valid TOML")),
        ("[hosts]\nx = 1\n", ("line 1", "hosts: unknown key", 'did you mean "host"')),
        ("[console]\nlisten = 8787\n", ("line 2", "console.listen", "127.0.0.1:8787")),
        ('[host]\ntime_zone = "Nowhere"\n', ("line 2", "host.time_zone", "Europe/Berlin")),
    ],
)
async def test_a_wrong_configuration_is_told_with_its_place(tmp_path, config, words):
    ended = await lodger(place_with(tmp_path, config), "up")
    assert_one_line(ended, *words, code=USAGE)


async def test_a_missing_configuration_file_is_told(tmp_path):
    place = make_place(tmp_path)
    place.config.unlink()
    assert_one_line(await lodger(place, "up"), str(place.config), code=USAGE)


async def test_a_taken_port_is_told_with_both_ways_out(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        place = place_with(tmp_path, f'[host]\ndata_dir = "{tmp_path / "data"}"\n[console]\nlisten = "{address}"\n')
        ended = await lodger(place, "up")
    assert_one_line(ended, address, "another program uses it", "[console] listen")


@pytest.mark.parametrize("setting", ["data_dir", "workspace"])
async def test_a_folder_that_cannot_be_made_is_told_with_its_setting(tmp_path, setting):
    blocked = tmp_path / "a-file"
    blocked.touch()
    folders = {"data_dir": tmp_path / "data", "workspace": tmp_path / "ws"} | {setting: blocked / "below"}
    place = place_with(
        tmp_path,
        f'[host]\ndata_dir = "{folders["data_dir"]}"\n[console]\nlisten = ""\n'
        f'[agents.lodger]\nworkspace = "{folders["workspace"]}"\n',
    )
    assert_one_line(await lodger(place, "up"), str(blocked), "Not a directory", setting)


async def test_a_second_host_is_told_who_has_the_directory(tmp_path):
    place = make_place(tmp_path)
    async with running_host(place) as host:
        ended = await lodger(place, "up")
        assert_one_line(ended, str(place.data), f"process {host.process.pid}")
        assert (await lodger(place, "agents")).code == 0


async def test_an_unusable_workspace_is_told_at_the_start_and_the_host_goes_on(tmp_path):
    place = place_with(
        tmp_path,
        f'[host]\ndata_dir = "{tmp_path / "data"}"\n[console]\nlisten = "127.0.0.1:0"\n'
        '[agents.lodger]\nworkspace = "/etc"\n',
    )
    async with running_host(place) as host:
        told = await host.wait_line("The shell tool of lodger is off")
        assert "'/etc' is a folder of the system" in told
        assert (await lodger(place, "run", "-p", "hello")).code == 0


async def test_without_the_named_sandbox_the_start_says_what_to_install(tmp_path):
    place = make_place(tmp_path, more='[sandbox]\nkind = "bubblewrap"')
    async with running_host(PlaceWithout(root=place.root, programs=only_git(tmp_path))) as host:
        told = await host.wait_line("The shell tool is off")
        assert "apt-get install bubblewrap" in told


class PlaceWithout(Place):
    """A place whose host finds only some programs."""

    def __init__(self, *, root, programs) -> None:
        super().__init__(root=root)
        self.programs = programs

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "PATH": str(self.programs)}


def only_git(folder):
    programs = folder / "programs"
    programs.mkdir()
    found = shutil.which("git")
    assert found is not None
    (programs / "git").symlink_to(found)
    return programs


async def test_a_workspace_deleted_under_a_running_host_is_told_to_the_person_who_asked(tmp_path):
    place = make_place(tmp_path, more='[[permissions.rules]]\ntool = "shell"\nmatch = "true"\naction = "allow"')
    async with running_host(place):
        shutil.rmtree(place.workspace)
        ended = await lodger(place, "run", "-p", "run `true`")
        assert "cannot be reached" in ended.out
        assert "create it again" in ended.out
        assert "Traceback" not in ended.out + ended.err


async def test_a_reader_that_leaves_early_is_no_crash(tmp_path):
    place = make_place(tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = await asyncio.create_subprocess_exec(
        *place.command("agents"), env=place.environment, stdout=write_end, stderr=asyncio.subprocess.PIPE
    )
    os.close(write_end)
    _, err = await process.communicate()
    assert (process.returncode, err.decode()) == (ERROR, "")


@pytest.mark.skipif(not IS_ROOT, reason="only root can start a host as a user that has no name")
async def test_a_user_without_a_name_can_run_a_host(tmp_path):
    place = make_place(tmp_path)
    process = await asyncio.create_subprocess_exec(
        *("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"),
        *(sys.executable, "-c", "from bot.app import _user_name; print(_user_name())"),
        env={**place.environment, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (out.decode().strip(), err.decode()) == ("owner", "")
