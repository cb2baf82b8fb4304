"""Copies of files on their way into a chat."""

from __future__ import annotations

import stat

import pytest

from bot.toolsets.outgoing_files import OutgoingFiles
from core.contracts.addresses import FileContent

KEY = "turn-1-call_1"


def content(path) -> FileContent:
    return FileContent(path=str(path), name="a.txt", media_type="text/plain")


async def test_a_copy_holds_what_was_given_and_is_closed_to_others(tmp_path):
    copy = await OutgoingFiles(tmp_path / "outgoing").keep(KEY, "a.txt", b"data")
    assert (copy.name, copy.read_bytes()) == ("turn-1-call_1-a.txt", b"data")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (copy, copy.parent)] == [0o600, 0o700]


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "..", "", "-" * 400, "отчёт.pdf", "a\0b\n.txt"])
async def test_no_name_leads_out_of_the_folder(tmp_path, name):
    root = tmp_path / "outgoing"
    copy = await OutgoingFiles(root).keep(KEY, name, b"data")
    assert copy.parent == root
    assert [path.name for path in root.iterdir()] == [copy.name]


async def test_an_odd_key_is_no_path(tmp_path):
    root = tmp_path / "outgoing"
    copy = await OutgoingFiles(root).keep("../../up", "a.txt", b"data")
    assert copy.parent == root


async def test_a_copy_is_removed_once_and_a_file_elsewhere_never(tmp_path):
    files, other = OutgoingFiles(tmp_path / "outgoing"), tmp_path / "mine.txt"
    other.write_bytes(b"mine")
    copy = await files.keep(KEY, "a.txt", b"data")
    for path in (copy, copy, other, tmp_path / "outgoing" / ".." / "mine.txt"):
        await files.discard(content(path))
    assert not copy.exists()
    assert other.exists()
