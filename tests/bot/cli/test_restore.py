"""`lodger restore`: under the directory's lock, with one line for whatever goes wrong."""

from __future__ import annotations

import argparse

import pytest

from bot.cli import restore
from core.stores.directory_lock import DirectoryLock
from tests.acceptance.processes import make_place
from tests.bot.backup_kit import rows, small_backup


@pytest.fixture
async def backup(tmp_path):
    return await small_backup(tmp_path)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "place").mkdir()
    return make_place(tmp_path / "place")


def run(place, file, *, force=False):
    return restore.run(argparse.Namespace(config=str(place.config), file=str(file), force=force))


async def test_a_backup_is_put_where_the_configuration_says(place, backup, capsys):
    assert run(place, backup) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "Restored the backup of 2026-01-01 12:00 UTC: 1 memory.",
        "Start the host with `lodger up`.",
    ]
    assert len(rows(place.data / "host.db", "SELECT id FROM conversations")) == 1


async def test_a_state_is_only_replaced_when_forced_and_its_new_place_is_told(place, backup, capsys):
    assert run(place, backup) == 0
    assert run(place, backup) == 1
    assert "--force" in capsys.readouterr().err
    assert run(place, backup, force=True) == 0
    told = capsys.readouterr().out.splitlines()[1]
    (replaced,) = place.data.glob("replaced-*")
    assert told == f"What was there before is in {replaced}"


async def test_nothing_is_restored_under_a_running_host(place, backup, capsys):
    place.data.mkdir()
    with DirectoryLock(place.data):
        assert run(place, backup, force=True) == 1
    printed = capsys.readouterr()
    assert "End it first." in printed.err
    assert [path.name for path in place.data.iterdir()] == ["host.lock"]


async def test_what_is_no_backup_is_one_line_and_changes_nothing(place, tmp_path, capsys):
    (tmp_path / "other.txt").write_text("hello")
    assert run(place, tmp_path / "other.txt") == 1
    assert run(place, tmp_path / "missing.tar") == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith("lodger: ") for line in lines] == [True, True]
    assert [path.name for path in place.data.iterdir()] == ["host.lock"]


async def test_a_wrong_configuration_is_a_usage_error(place, backup, capsys):
    place.config.write_text("[nowhere]\n")
    assert run(place, backup) == 2
    assert capsys.readouterr().err.count("\n") == 1
