"""Reading what is committed: odd bytes placed by hand, huge files, nothing twice."""

import subprocess
import tracemalloc
from pathlib import Path

import pygit2
import pytest

from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.ids import Revision
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.git import HEAD
from core.memory.store import GitMemoryStore

EVERYONE = Audience()
AGENT = CommitOrigin(author="agent", audience=EVERYONE)


@pytest.fixture
async def store(tmp_path: Path) -> GitMemoryStore:
    store = GitMemoryStore(tmp_path, SystemClock())
    await store.create("m", ())
    return store


def place_by_hand(directory: Path, files: dict[str, bytes]) -> str:
    """Commit root files with libgit2 alone, past every admission."""
    repository = pygit2.Repository(str(directory / "m.git"))
    head = repository[repository.references[HEAD].target].peel(pygit2.Commit)
    builder = repository.TreeBuilder(head.tree)
    for name, data in files.items():
        builder.insert(name, repository.create_blob(data), 0o100644)
    someone = pygit2.Signature("someone", "someone@example.org")
    return str(repository.create_commit(HEAD, someone, someone, "by hand", builder.write(), [head.id]))


async def test_an_unchanged_revision_is_not_read_again(store):
    first = await store.snapshot("m", EVERYONE)
    assert await store.snapshot("m", EVERYONE) is first


ODD = {
    "latin.md": b"Lives near Malm\xf6\n- second line\n",
    "wide.md": "---\ndescription: x\n---\nwide".encode("utf-16"),
    "nul.md": b"a line of text that is long enough\0\n",
    "pic.md": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "empty.md": b"",
}


async def test_odd_files_placed_by_hand_leave_everything_else_readable(store, tmp_path, caplog):
    """C44, C45: the readable part is there, one warning names the file, nothing is rewritten."""
    revision = place_by_hand(tmp_path, ODD)
    files = {file.path: file for file in (await store.snapshot("m", EVERYONE)).files}
    assert "second line" in files["latin.md"].body
    assert "wide" in files["wide.md"].body
    assert files["empty.md"].body == ""
    assert files["human.md"].body == "I do not know anybody here yet.\n"
    await store.snapshot("m", Audience(words=frozenset({"everyone", "person:alice"})))
    warned = [(record.path, record.fault) for record in caplog.records if record.message == "memory_file_malformed"]
    assert sorted(path for path, _ in warned) == ["latin.md", "nul.md", "pic.md", "wide.md"]
    assert ("latin.md", "line 1: not UTF-8") in warned
    assert await store.head("m") == revision


async def test_a_line_added_to_a_file_with_a_bad_byte_leaves_the_byte_as_it_was(store, tmp_path):
    """C45."""
    place_by_hand(tmp_path, ODD)
    third = MemoryChange(kind=ChangeKind.EDIT, path="latin.md", old="second line\n", text="second line\n- third\n")
    await store.commit("m", [third], message="m", origin=AGENT)
    raw = subprocess.run(
        ["git", "-C", str(tmp_path / "m.git"), "show", "main:latin.md"], check=True, capture_output=True
    ).stdout
    assert raw == ODD["latin.md"] + b"- third\n"


async def test_a_huge_blob_is_not_loaded(store, tmp_path):
    """C48: the peak of Python's memory stays far below the file's size."""
    place_by_hand(tmp_path, {"huge.md": b"\0" * 64_000_000})
    fresh = GitMemoryStore(tmp_path, SystemClock())
    tracemalloc.start()
    files = {file.path: file for file in (await fresh.snapshot("m", EVERYONE)).files}
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "64,000,000 bytes" in files["huge.md"].body
    assert peak_bytes < 8_000_000


async def test_a_directory_with_a_files_name_is_just_a_directory(store, tmp_path):
    """C45."""
    repository = pygit2.Repository(str(tmp_path / "m.git"))
    inner = repository.TreeBuilder()
    inner.insert("y.md", repository.create_blob(b"inside"), 0o100644)
    head = repository[repository.references[HEAD].target].peel(pygit2.Commit)
    outer = repository.TreeBuilder(head.tree)
    outer.insert("x.md", inner.write(), 0o040000)
    someone = pygit2.Signature("someone", "someone@example.org")
    repository.create_commit(HEAD, someone, someone, "by hand", outer.write(), [head.id])
    files = {file.path: file for file in (await store.snapshot("m", EVERYONE)).files}
    assert files["x.md/y.md"].body == "inside"
    assert not files["x.md/y.md"].core


async def test_a_diff_names_binary_files_without_their_bytes(store, tmp_path):
    revision = place_by_hand(tmp_path, {"nul.md": ODD["nul.md"]})
    assert await store.diff("m", Revision(revision), EVERYONE) == "Binary file nul.md changed\n"


async def test_after_a_commit_only_what_it_touched_is_made_again(store):
    before = {file.path: file for file in (await store.snapshot("m", EVERYONE)).files}
    change = MemoryChange(kind=ChangeKind.REPLACE, path="human.md", text="---\ndescription: Bob\n---\nLikes tea.\n")
    await store.commit("m", [change], message="learn", origin=AGENT)
    after = {file.path: file for file in (await store.snapshot("m", EVERYONE)).files}
    assert {path for path in after if after[path] is not before[path]} == {"human.md"}
    assert (after["human.md"].description, after["human.md"].body) == ("Bob", "Likes tea.\n")


async def test_an_untouched_file_follows_a_changed_policy(store, tmp_path):
    before = {file.path: file for file in (await store.snapshot("m", EVERYONE)).files}
    place_by_hand(tmp_path, {".memory.json": b'{"file_chars": 777}'})
    after = {file.path: file for file in (await store.snapshot("m", EVERYONE)).files}
    assert before["persona.md"].limit_chars != 777
    assert (after["persona.md"].limit_chars, after["persona.md"].body) == (777, before["persona.md"].body)


async def test_what_another_audience_saw_is_not_shown_to_everyone(store, tmp_path):
    place_by_hand(tmp_path, {"diary.md": b"---\ndescription: d\naudience: person:anna\n---\nA secret.\n"})
    anna = Audience(words=frozenset({"everyone", "person:anna"}))
    seen = [{file.path for file in (await store.snapshot("m", who)).files} for who in (anna, EVERYONE, anna)]
    assert ["diary.md" in paths for paths in seen] == [True, False, True]
