"""A backup takes the place of what is there: all of it or nothing, and what was there is kept."""

from __future__ import annotations

import os
import shutil
import tarfile
from datetime import timedelta

import pytest

from bot.backup_file import BackupError
from bot.restore import finish_restore, restore
from core.contracts.clock import FakeClock
from core.models.scripted import ScriptedModel, says
from core.stores.schema import HEAD, KNOWN
from tests.bot.backup_kit import all_files, history, rows, small_backup, talkative, working
from tests.contracts.backend_harnesses import local_on_files, say

NOW = FakeClock().now()


@pytest.fixture
async def backup(tmp_path):
    return await small_backup(tmp_path)


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def restored(backup, target, *, schemas=KNOWN, force=False):
    return restore(backup, target, schemas=schemas, force=force, now=NOW)


def occupy(folder):
    """Put the traces of another host into a folder; return what is in it."""
    (folder / "memory" / "old.git").mkdir(parents=True)
    (folder / "memory" / "old.git" / "HEAD").write_text("old")
    for name in ("host.db", "host.db-wal", "host.db-shm", "config.toml", "host.lock"):
        (folder / name).write_text(f"old {name}")
    return all_files(folder)


async def test_a_conversation_goes_on_with_the_very_request_it_would_have_sent(tmp_path, target):
    """DESIGN 6: prompt and view are the same byte for byte, and so is the news of the memory."""
    async with working(tmp_path, talkative()) as work:
        await work.world.step(say("hi"))
        await work.world.commit("notes.md", "She likes green tea.")
        await work.world.step(say("and?"))
        await work.world.commit("more.md", "Without sugar.")
        taken = await work.backups.take(str(tmp_path / "b.tar"))
        await work.world.step(say("what do you know?"))
        expected = work.world.model.requests[-1]
        told = await work.backups.take(str(tmp_path / "later.tar"))
        assert told.size_bytes > 0

    restored(taken.file, target)
    model = ScriptedModel([says("that")])
    async with local_on_files(target, model) as world:
        await world.step(say("what do you know?"))
    (request,) = model.requests
    assert (request.system, request.tools, request.settings) == (expected.system, expected.tools, expected.settings)
    assert [message.parts for message in request.messages] == [message.parts for message in expected.messages]
    assert "Without sugar." in str(request.messages[-1].parts)


async def test_everything_comes_back_and_belongs_to_its_owner_alone(tmp_path, backup, target):
    done = restored(backup, target)
    assert done.replaced is None
    assert all_files(target / "attachments") == {"conv-1/a.png": b"picture"}
    assert (target / "overflow").is_dir()
    ((memory_id,),) = rows(target / "host.db", "SELECT memory_id FROM agents")
    assert done.manifest.memories[memory_id] == {"refs/heads/main": history(target / "memory", memory_id)[0]}
    assert {path.stat().st_mode & 0o077 for path in target.rglob("*")} == {0}
    assert sorted(path.name for path in target.iterdir()) == ["attachments", "host.db", "memory", "overflow"]


async def test_files_keep_their_age(tmp_path, target):
    picture = tmp_path / "data" / "attachments" / "conv-1" / "a.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"picture")
    os.utime(picture, (1_700_000_000, 1_700_000_000))
    async with working(tmp_path) as work:
        taken = await work.backups.take(str(tmp_path / "b.tar"))
    restored(taken.file, target)
    assert (target / "attachments" / "conv-1" / "a.png").stat().st_mtime == 1_700_000_000


async def test_a_directory_in_use_is_not_touched_without_being_forced(backup, target):
    before = occupy(target)
    with pytest.raises(BackupError, match="--force moves them aside"):
        restored(backup, target)
    assert all_files(target) == before


async def test_what_was_there_is_moved_aside_and_nothing_is_deleted(backup, target):
    before = occupy(target)
    done = restored(backup, target, force=True)
    assert done.replaced == target / "replaced-20260101T120000.000000Z"
    moved = {name: data for name, data in before.items() if name.startswith(("host.db", "memory"))}
    assert all_files(done.replaced) == moved
    assert (target / "config.toml").read_text() == "old config.toml"
    assert not (target / "host.db-wal").exists()
    assert len(rows(target / "host.db", "SELECT id FROM agents")) == 1


async def test_a_former_state_can_be_moved_aside_again(backup, target):
    first = restored(backup, target)
    second = restore(backup, target, schemas=KNOWN, force=True, now=NOW + timedelta(seconds=1))
    assert first.replaced is None
    assert (second.replaced / "host.db").exists()


async def test_a_newer_database_is_refused_before_anything_changes(backup, target):
    before = occupy(target)
    with pytest.raises(BackupError, match=f"schema '{HEAD}', which this release does not know"):
        restored(backup, target, schemas={"0000"}, force=True)
    assert all_files(target) == before


async def test_a_damaged_backup_is_refused_before_anything_changes(backup, target):
    before = occupy(target)
    data = bytearray(backup.read_bytes())
    with tarfile.open(backup) as archive:
        last_file = [member for member in archive.getmembers() if member.name.startswith("attachments/")][-1]
    data[last_file.offset_data] ^= 1
    backup.write_bytes(data)
    with pytest.raises(BackupError, match="is not what its manifest says"):
        restored(backup, target, force=True)
    assert all_files(target) == before
    assert list(target.glob(".unpacking*")) == []


def moves(target, restored_folder, replaced):
    """Return the renames of a restore, in their order."""
    replaced.mkdir()
    for part in ("memory", "attachments", "overflow", "host.db"):
        for name in (part, "host.db-wal", "host.db-shm") if part == "host.db" else (part,):
            if (target / name).exists():
                yield target / name, replaced / name
        yield restored_folder / part, target / part


@pytest.mark.parametrize("done", range(10))
async def test_a_restore_that_was_cut_off_is_brought_to_its_end(backup, target, done):
    """Whatever the last rename was that a crash let through."""
    before = occupy(target)
    (target / ".unpacking-x").mkdir()
    cut_off, replaced = target / "restored-1", target / "replaced-1"
    cut_off.mkdir()
    with tarfile.open(backup) as archive:
        archive.extractall(cut_off, filter="data")
    for name in ("manifest.json", "manifest.sha256"):
        (cut_off / name).unlink()
    (cut_off / "overflow").mkdir()
    whole = all_files(cut_off)
    for source, goal in list(moves(target, cut_off, replaced))[:done]:
        source.rename(goal)

    assert finish_restore(target) == replaced

    assert not list(target.glob(".unpacking*")) + list(target.glob("restored-*"))
    assert all_files(replaced) == {name: data for name, data in before.items() if name.startswith(("host.db", "mem"))}
    shutil.rmtree(replaced)
    assert all_files(target) == {**whole, "config.toml": b"old config.toml", "host.lock": b"old host.lock"}
    assert finish_restore(target) is None


async def test_what_came_between_a_crash_and_the_end_of_a_restore_is_kept_too(backup, target):
    """A database moved aside before the crash is not overwritten by one that somebody made since."""
    for folder, text in (("replaced-1", "former"), ("", "made since"), ("restored-1", "restored")):
        (target / folder).mkdir(exist_ok=True)
        (target / folder / "host.db").write_text(text)
    finish_restore(target)
    assert all_files(target) == {
        "host.db": b"restored",
        "replaced-1/host.db": b"former",
        "replaced-1/host.db.2": b"made since",
    }


def test_without_a_restore_there_is_nothing_to_finish(target):
    before = occupy(target)
    assert finish_restore(target) is None
    assert all_files(target) == before
