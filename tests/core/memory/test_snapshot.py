"""Copies of repositories: exactly the moment's references and all they lead to."""

from __future__ import annotations

import shutil
import subprocess

import pygit2
import pytest

from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.errors import StoreUnavailable
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.snapshot import GitCopies
from core.memory.store import GitMemoryStore

EVERYONE = Audience()
ORIGIN = CommitOrigin(author="agent", audience=EVERYONE, conversation_id="conv-1", approved=True)
MAIN = "refs/heads/main"


@pytest.fixture
async def store(tmp_path):
    store = GitMemoryStore(tmp_path / "memory", SystemClock())
    await store.create("m", ())
    return store


@pytest.fixture
def copies(tmp_path):
    return GitCopies(tmp_path / "memory", SystemClock())


async def add(store, path: str, text: str = "x", memory: str = "m") -> str:
    change = MemoryChange(kind=ChangeKind.CREATE, path=path, text=text, description="about it")
    return (await store.commit(memory, [change], message=f"add {path}", origin=ORIGIN)).revision


def git(folder, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True).stdout


async def test_a_copy_has_the_references_of_the_moment_and_the_whole_history(store, copies, tmp_path):
    for number in range(5):
        await add(store, f"notes{number}.md", f"note {number}")
    heads = copies.heads()
    later = await add(store, "later.md")

    copies.copy_to(tmp_path / "copy", "m", heads["m"])

    copy = GitMemoryStore(tmp_path / "copy", SystemClock())
    assert heads == {"m": {MAIN: await copy.head("m")}}
    assert await copy.log("m") == (await store.log("m"))[1:]
    before = await store.snapshot("m", EVERYONE, at=await copy.head("m"))
    assert await copy.snapshot("m", EVERYONE) == before
    assert later not in git(tmp_path / "copy" / "m.git", "cat-file", "--batch-check", "--batch-all-objects")
    assert git(tmp_path / "copy" / "m.git", "fsck", "--full", "--strict") == ""


async def test_a_copy_is_written_to_and_copied_like_any_memory(store, copies, tmp_path):
    await add(store, "notes.md")
    copies.copy_to(tmp_path / "copy", "m", copies.heads()["m"])
    copy = GitMemoryStore(tmp_path / "copy", SystemClock())
    newest = await add(copy, "more.md")
    again = GitCopies(tmp_path / "copy", SystemClock())
    again.copy_to(tmp_path / "again", "m", again.heads()["m"])
    assert await GitMemoryStore(tmp_path / "again", SystemClock()).head("m") == newest
    assert "main" in git(tmp_path / "copy" / "m.git", "reflog", "show", "main")


async def test_every_memory_and_every_branch_is_copied(store, copies, tmp_path):
    await store.create("other", ())
    repository = pygit2.Repository(str(tmp_path / "memory" / "m.git"))
    first = await store.head("m")
    await add(store, "notes.md")
    repository.branches.local.create("reflection", repository[first])
    heads = copies.heads()
    assert sorted(heads) == ["m", "other"]
    assert sorted(heads["m"]) == [MAIN, "refs/heads/reflection"]
    copies.copy_to(tmp_path / "copy", "m", heads["m"])
    assert GitCopies(tmp_path / "copy", SystemClock()).heads() == {"m": heads["m"]}


def test_a_repository_without_a_commit_is_being_created_and_not_copied(copies, tmp_path):
    pygit2.init_repository(str(tmp_path / "memory" / "new.git"), bare=True)
    assert copies.heads() == {}


def test_without_a_folder_there_are_no_memories(copies):
    assert copies.heads() == {}


async def test_a_repository_that_misses_an_object_is_told_and_not_copied(store, copies, tmp_path):
    heads = copies.heads()
    blob = git(tmp_path / "memory" / "m.git", "rev-parse", "main:human.md").strip()
    (tmp_path / "memory" / "m.git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(StoreUnavailable, match="'m' cannot be copied"):
        copies.copy_to(tmp_path / "copy", "m", heads["m"])


async def test_a_folder_that_is_no_repository_is_a_store_error(store, copies, tmp_path):
    shutil.rmtree(tmp_path / "memory" / "m.git" / "objects")
    with pytest.raises(StoreUnavailable, match=r"'m\.git' cannot be read"):
        copies.heads()
