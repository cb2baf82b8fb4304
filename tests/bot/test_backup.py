"""Backups that are taken while the host works: database and memories agree, and none is half."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from bot.backup import Backups
from bot.backup_file import BackupError, open_backup
from core.contracts.clock import FakeClock
from core.contracts.errors import StoreUnavailable
from core.contracts.people import AuditEntry
from tests.acceptance.processes import ROOT
from tests.bot.backup_kit import BOUND_SECONDS, all_files, history, rows, small_backup, unpacked, working
from tests.contracts.backend_harnesses import say

MOMENTS = 20


async def test_database_and_memory_agree_whatever_is_going_on(tmp_path):
    """Turns read the memory, others commit to it, and a witness writes down each commit before the next.

    So in any moment the history holds all that is written down, and at most one commit more.
    """
    async with working(tmp_path) as work, asyncio.timeout(BOUND_SECONDS):
        stopping = asyncio.Event()

        async def commit_on() -> None:
            number = 0
            while not stopping.is_set():
                number += 1
                revision = await work.world.commit(f"notes{number}.md", f"note {number}")
                witnessed = AuditEntry(at=work.world.clock.now(), who="witness", what=revision, detail={})
                await work.world.stores.people.record(witnessed)

        async def talk_on() -> None:
            while not stopping.is_set():
                await work.world.step(say("and now?"))

        busy = [asyncio.create_task(each()) for each in (commit_on, talk_on)]
        taken = [await work.backups.take(str(tmp_path / f"{number}.tar")) for number in range(MOMENTS)]
        stopping.set()
        await asyncio.gather(*busy)

    lengths = []
    for number, backup in enumerate(taken):
        folder = unpacked(backup.file, tmp_path / str(number))
        ((memory_id,),) = rows(folder / "host.db", "SELECT memory_id FROM agents")
        known = history(folder / "memory", memory_id)
        written = [what for (what,) in rows(folder / "host.db", "SELECT what FROM audit")]
        named = {
            each for row in rows(folder / "host.db", "SELECT revision, seen_revision FROM prompts") for each in row
        }
        assert named <= set(known)
        assert set(written) <= set(known)
        assert len(known) - 1 - len(written) in {0, 1}, "the first commit is nobody's"
        lengths.append(len(known))
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > MOMENTS // 2, "nothing was committed between the backups"


async def test_a_backup_holds_all_and_says_what_it_does_not_hold(tmp_path):
    backup = await small_backup(tmp_path)
    files = all_files(unpacked(backup, tmp_path / "out"))
    manifest = json.loads(files.pop("manifest.json"))
    del files["manifest.sha256"]

    assert {name.split("/")[0] for name in files} == {"host.db", "memory", "attachments"}
    assert files["attachments/conv-1/a.png"] == b"picture"
    assert {name: (each["sha256"], each["size_bytes"]) for name, each in manifest["files"].items()} == {
        name: (hashlib.sha256(data).hexdigest(), len(data)) for name, data in files.items()
    }
    ((memory_id,),) = rows(tmp_path / "out" / "host.db", "SELECT memory_id FROM agents")
    head = history(tmp_path / "out" / "memory", memory_id)[0]
    assert manifest["memories"] == {memory_id: {"refs/heads/main": head}}
    ((schema,),) = rows(tmp_path / "out" / "host.db", "SELECT version_num FROM alembic_version")
    assert (manifest["format"], manifest["schema"]) == (1, schema)
    assert manifest["created_at"] == FakeClock().now().isoformat()
    assert "the configuration and its secrets" in manifest["left_out"]


async def test_only_its_owner_may_read_a_backup_and_nothing_else_is_left(tmp_path):
    backup = await small_backup(tmp_path)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar", "data"]


async def test_without_a_name_it_goes_into_the_data_directory(tmp_path):
    async with working(tmp_path) as work:
        named = await work.backups.take("")
        await work.world.clock.advance(timedelta(hours=1))
        again = await work.backups.take("")
        beside = await work.backups.take(str(tmp_path))
    assert named.file == work.data_dir / "backups" / "lodger-20260101T120000Z.tar"
    assert again.file.name == beside.file.name == "lodger-20260101T130000Z.tar"
    assert beside.file.parent == tmp_path
    assert stat.S_IMODE(named.file.parent.stat().st_mode) == 0o700


async def test_names_that_cannot_be_used_are_told_before_anything_begins(tmp_path):
    (tmp_path / "there.tar").write_text("precious")
    async with working(tmp_path) as work:
        for file, told in {
            "b.tar": "no absolute path",
            f"{tmp_path}/there.tar": "exists already",
            f"{tmp_path}/nowhere/b.tar": "No such file",
            f"{work.data_dir}/memory/b.tar": "is a part of what is backed up",
            f"{work.data_dir}/overflow/../memory": "No such file",
        }.items():
            with pytest.raises(BackupError, match=told):
                await anext(work.backups.events(file))
    assert (tmp_path / "there.tar").read_text() == "precious"
    assert list(tmp_path.rglob("*.partial")) == []


async def test_links_inside_are_not_followed_and_a_folder_on_another_disk_is(tmp_path):
    folder = tmp_path / "data" / "overflow" / "conv-1"
    folder.mkdir(parents=True)
    (folder / "kept.txt").write_text("kept")
    (folder / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / "folder").symlink_to("/etc")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.png").write_text("on a larger disk")
    (tmp_path / "data" / "attachments").symlink_to(tmp_path / "elsewhere")
    async with working(tmp_path) as work:
        backup = await work.backups.take(str(tmp_path / "b.tar"))
    with open_backup(backup.file) as opened:
        names = {name for name in opened.manifest.files if not name.startswith(("memory/", "host.db"))}
    assert names == {"overflow/conv-1/kept.txt", "attachments/a.png"}


async def test_a_folder_that_cannot_be_read_is_not_left_out_in_silence(tmp_path):
    async with working(tmp_path) as work:
        (work.data_dir / "attachments").write_text("no folder")
        with pytest.raises(BackupError, match="Not a directory"):
            await work.backups.take(str(tmp_path / "b.tar"))
    assert not (tmp_path / "b.tar").exists()


async def test_a_backup_that_is_cancelled_stops_and_leaves_nothing(tmp_path):
    """The caller leaves when the thread has ended, not before."""
    async with working(tmp_path) as work, asyncio.timeout(BOUND_SECONDS):
        begun, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        class Slow:
            """Copies memories when it is told to."""

            def heads(self):
                return work.backups._memory.heads()

            def copy_to(self, folder, memory_id, refs):
                loop.call_soon_threadsafe(begun.set)
                assert go_on.wait(BOUND_SECONDS)
                work.backups._memory.copy_to(folder, memory_id, refs)

        slow = Backups(data_dir=work.data_dir, database=work.backups._database, memory=Slow(), clock=work.world.clock)
        taking = asyncio.create_task(slow.take(str(tmp_path / "b.tar")))
        await begun.wait()
        assert list(tmp_path.glob(".lodger-backup-*.partial"))
        taking.cancel()
        await asyncio.sleep(0)
        assert not taking.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert [path.name for path in tmp_path.iterdir()] == ["data"]
        await work.world.step(say("still there?"))


async def test_events_tell_the_end_or_the_error(tmp_path):
    async with working(tmp_path) as work:
        file = str(tmp_path / "b.tar")
        told = [event async for event in work.backups.events(file)]
        assert told == [
            {"type": "begun", "file": file},
            {"type": "result", "file": file, "size_bytes": os.stat(file).st_size, "memories": 1},
        ]
        await work.world.stores.database.close()
        (_, failed) = [event async for event in work.backups.events(str(tmp_path / "c.tar"))]
    assert failed == {"type": "error", "error": "the database is closed"}


async def test_a_memory_that_cannot_be_read_is_told_and_there_is_no_backup(tmp_path):
    async with working(tmp_path) as work:
        (repository,) = (work.data_dir / "memory").glob("*.git")
        shutil.rmtree(repository / "objects")
        with pytest.raises(StoreUnavailable, match="cannot be read"):
            await work.backups.take(str(tmp_path / "b.tar"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def private_mounts_work() -> bool:
    done = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True)
    return done.returncode == 0


FULL_DISK = """
import asyncio, os, sys
from pathlib import Path
from bot.backup_file import BackupError
from tests.bot.backup_kit import working
from tests.contracts.backend_harnesses import say

async def main():
    root, disk = Path(sys.argv[1]), Path("/mnt")
    async with working(root) as work:
        await work.world.step(say("hi"))
        for number in range(50):
            await work.world.commit(f"notes{number}.md", os.urandom(500).hex())
        (root / "data" / "attachments").mkdir()
        (root / "data" / "attachments" / "a.bin").write_bytes(os.urandom(300_000))
        size = (await work.backups.take(str(root / "whole.tar"))).size_bytes
        told = set()
        for left in range(50_000, size + 500_000, 100_000):
            (disk / "filler").write_bytes(bytes(os.statvfs(disk).f_bavail * 4096 - left))
            try:
                await work.backups.take(str(disk / "b.tar"))
            except BackupError as error:
                told.add(str(error).partition(",")[0])
                assert [path.name for path in disk.iterdir()] == ["filler"], list(disk.iterdir())
            else:
                told.add("written")
                (disk / "b.tar").unlink()
            (disk / "filler").unlink()
        print(sorted(told))

asyncio.run(main())
"""


@pytest.mark.sandbox
@pytest.mark.skipif(not private_mounts_work(), reason="needs a mount namespace")
def test_a_full_disk_is_told_and_nothing_is_left_there(tmp_path):
    """However far it came: the disk is full at every hundred kilobytes of it."""
    script = f'mount -t tmpfs -o size=8m none /mnt && exec "{sys.executable}" -c "$0" "{tmp_path}"'
    command = ["unshare", "-rm", "sh", "-c", script, FULL_DISK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.returncode) == ("[\"no space left in '/mnt'\", 'written']\n", 0), done.stderr
