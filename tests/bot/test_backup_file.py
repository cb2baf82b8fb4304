"""The form of a backup: whatever is missing, changed or added is noticed."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.backup_file import BackupError, BackupWriter, open_backup
from tests.bot.backup_kit import all_files

AT = datetime(2026, 8, 1, 10, 11, tzinfo=UTC)
CONTENT = {
    "host.db": b"database" * 300,
    "memory/m.git/HEAD": b"ref: refs/heads/main\n",
    "attachments/conv-1/Grüße, 🙂.txt": b"hello",
    "attachments/conv-1/not-utf-8-\udcff.txt": b"hello",
    "overflow/conv-1/" + "long" * 40 + ".txt": b"",
}


def write(folder, content=CONTENT):
    """Write a backup of these files under `folder` and return it."""
    folder.mkdir(exist_ok=True)
    backup = folder / "b.tar"
    with backup.open("wb") as stream:
        writer = BackupWriter(stream, on_chunk=lambda: None)
        for number, (name, data) in enumerate(content.items()):
            source = folder / f"source{number}"
            source.write_bytes(data)
            with source.open("rb") as file:
                writer.add(name, file)
            source.unlink()
        writer.finish(created_at=AT, schema="0001", memories={"m": {"refs/heads/main": "a" * 40}})
    return backup


def extract(backup, folder):
    folder.mkdir()
    with open_backup(backup) as opened:
        opened.extract_to(folder)
        return opened.manifest


@pytest.fixture
def backup(tmp_path):
    return write(tmp_path)


def test_what_was_written_comes_back(backup, tmp_path):
    manifest = extract(backup, tmp_path / "out")
    assert all_files(tmp_path / "out") == CONTENT
    assert (manifest.created_at, manifest.schema) == (AT, "0001")
    assert manifest.memories == {"m": {"refs/heads/main": "a" * 40}}
    assert manifest.files.keys() == CONTENT.keys()
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "out").rglob("*")} == {0}


def test_a_backup_that_was_not_finished_is_none(tmp_path):
    with (tmp_path / "b.tar").open("wb") as stream, (tmp_path / "source").open("w+b") as source:
        BackupWriter(stream, on_chunk=lambda: None).add("host.db", source)
    with pytest.raises(BackupError, match="no whole backup"), open_backup(tmp_path / "b.tar"):
        pass


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_backup_that_was_cut_off_anywhere_is_refused(backup, data):
    whole = backup.read_bytes()
    length = data.draw(st.integers(0, len(whole) - 1) | st.sampled_from(range(0, len(whole), tarfile.BLOCKSIZE)))
    cut = backup.with_name("cut.tar")
    cut.write_bytes(whole[:length])
    with pytest.raises(BackupError, match="no whole backup"), open_backup(cut):
        pass


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_is_refused_or_changes_nothing(backup, data):
    """Only the padding between members is covered by nothing, and nothing is read from it."""
    changed = bytearray(backup.read_bytes())
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    damaged, out = backup.with_name("damaged.tar"), backup.with_name("out")
    damaged.write_bytes(changed)
    shutil.rmtree(out, ignore_errors=True)
    try:
        extract(damaged, out)
    except BackupError:
        return
    assert all_files(out) == CONTENT


def test_every_byte_of_a_members_content_counts(backup, tmp_path):
    changed = bytearray(backup.read_bytes())
    changed[changed.index(b"database")] ^= 1
    backup.write_bytes(changed)
    with pytest.raises(BackupError, match=r"'host\.db' is not what its manifest says"):
        extract(backup, tmp_path / "out")


def entry(name, data=b"x", kind=tarfile.REGTYPE, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, len(data)
    return member, data


def forged(folder, *entries, **changes):
    """Write an archive with these members that says of itself that it is whole."""
    files = {
        member.name: {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)} for member, data in entries
    }
    told = {"format": 1, "release": "9.9", "created_at": AT.isoformat(), "schema": "0001", "memories": {}}
    manifest = json.dumps({**told, "files": files, **changes}).encode()
    last = hashlib.sha256(manifest).hexdigest().encode() + b"\n"
    backup = folder / "forged.tar"
    with tarfile.open(backup, "w") as archive:
        for member, data in (*entries, entry("manifest.json", manifest), entry("manifest.sha256", last)):
            archive.addfile(member, io.BytesIO(data))
    return backup


DATABASE = entry("host.db")


def test_a_forged_archive_is_read_like_a_real_one(tmp_path):
    extract(forged(tmp_path, DATABASE, entry("overflow/a")), tmp_path / "out")
    assert all_files(tmp_path / "out") == {"host.db": b"x", "overflow/a": b"x"}


@pytest.mark.parametrize(
    "member",
    [
        entry("../host.db"),
        entry("/host.db"),
        entry("memory/../../evil"),
        entry("memory/./evil"),
        entry("memory//evil"),
        entry("memory"),
        entry("memory/"),
        entry("config.toml"),
        entry("host.db/evil"),
        entry("host.db-wal"),
        entry("memory/link", b"", tarfile.SYMTYPE, "/etc"),
        entry("memory/link", b"", tarfile.LNKTYPE, "host.db"),
        entry("memory/pipe", b"", tarfile.FIFOTYPE),
        entry("memory/device", b"", tarfile.CHRTYPE),
        entry("memory/folder", b"", tarfile.DIRTYPE),
        entry("memory/sparse", b"", tarfile.GNUTYPE_SPARSE),
        entry("host.db"),
    ],
    ids=lambda member: f"{member[0].name} {member[0].type.decode()}",
)
def test_a_member_that_leads_elsewhere_is_refused(tmp_path, member):
    with pytest.raises(BackupError), open_backup(forged(tmp_path, DATABASE, member)):
        pass


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {}},
        {"files": []},
        {"files": {"host.db": {"sha256": "", "size_bytes": 1, "more": 1}}},
        {"created_at": "yesterday"},
        {"created_at": 1},
        {"format": None},
    ],
    ids=str,
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path, changes):
    with pytest.raises(BackupError), open_backup(forged(tmp_path, DATABASE, **changes)):
        pass


def test_a_backup_without_a_database_is_none(tmp_path):
    with pytest.raises(BackupError, match="no database"), open_backup(forged(tmp_path, entry("overflow/a"))):
        pass


def test_a_newer_form_names_the_release_to_install(tmp_path):
    newer = forged(tmp_path, DATABASE, format=2)
    with pytest.raises(BackupError, match=r"form 2 and was written by Lodger 9\.9"), open_backup(newer):
        pass


def test_a_file_and_a_folder_of_one_name_are_refused(tmp_path):
    backup = forged(tmp_path, DATABASE, entry("memory/a"), entry("memory/a/b"))
    with pytest.raises(OSError, match="memory/a"):
        extract(backup, tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" * 4000, b"\0" * 20_480, b"\x1f\x8b" * 6000])
def test_another_file_is_no_backup(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(BackupError, match="no whole backup"), open_backup(tmp_path / "other"):
        pass


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BackupError, match=r"b\.tar' cannot be read: No such file"), open_backup(tmp_path / "b.tar"):
        pass
