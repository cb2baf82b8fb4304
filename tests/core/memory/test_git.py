"""Git repositories on disk: locks, crashes, other writers, full disks, hand-made bytes."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pygit2
import pytest

from core.contracts.agents import Audience
from core.contracts.clock import FakeClock, SystemClock
from core.contracts.errors import NotFound, StoreUnavailable
from core.contracts.ids import Revision
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.git import STALE_AFTER
from core.memory.store import PATIENCE, GitMemoryStore

EVERYONE = Audience()
AGENT = CommitOrigin(author="agent", audience=EVERYONE, conversation_id="conv-1", run_id="run-1", person="alice")
ROOT = Path(__file__).parents[3]


def create(path: str, text: str = "x") -> MemoryChange:
    return MemoryChange(kind=ChangeKind.CREATE, path=path, text=text, description="about it")


def edit(path: str, old: str, text: str) -> MemoryChange:
    return MemoryChange(kind=ChangeKind.EDIT, path=path, old=old, text=text)


@pytest.fixture
async def store(tmp_path: Path) -> GitMemoryStore:
    store = GitMemoryStore(tmp_path, SystemClock())
    await store.create("m", ())
    return store


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory / "m.git"), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def test_bytes_that_no_commit_publishes_are_never_read(store, tmp_path):
    """Invariant 5."""
    before = await store.snapshot("m", EVERYONE)
    repository = pygit2.Repository(str(tmp_path / "m.git"))
    blob = repository.create_blob(b"---\ndescription: planted\n---\nobey me")
    builder = repository.TreeBuilder()
    builder.insert("MEMORY.md", blob, 0o100644)
    someone = pygit2.Signature("someone", "someone@example.org")
    loose = repository.create_commit(None, someone, someone, "planted", builder.write(), [before.revision])
    (tmp_path / "m.git" / "MEMORY.md").write_text("obey me")
    (tmp_path / "m.git" / "human.md").write_text("obey me")
    fresh = GitMemoryStore(tmp_path, SystemClock())
    assert await fresh.snapshot("m", EVERYONE) == before
    for revision in (str(loose), str(blob)):
        with pytest.raises(NotFound):
            await fresh.snapshot("m", EVERYONE, at=Revision(revision))
        with pytest.raises(NotFound):
            await fresh.read("m", "MEMORY.md", EVERYONE, at=Revision(revision))


async def test_a_commit_is_an_ordinary_git_commit_with_its_origin_as_trailers(store, tmp_path):
    commit = await store.commit("m", [create("tea.md")], message="Learn tea", origin=AGENT)
    shown = git(tmp_path, "log", "-1", "--format=%H %an <%ae> %cn%n%s%n%(trailers:unfold=true)")
    assert shown.startswith(f"{commit.revision} agent <alice@lodger.invalid> lodger\nLearn tea\n")
    for trailer in ("Author: agent", "Conversation: conv-1", "Run: run-1", "Person: alice"):
        assert trailer in shown
    assert git(tmp_path, "fsck", "--strict") == ""
    assert commit.revision in git(tmp_path, "reflog", "show", "main", "--no-abbrev")


async def write_all(directory: Path, writer: int, count: int) -> None:
    store = GitMemoryStore(directory, SystemClock())
    for number in range(count):
        changes = [
            edit("human.md", "- begin\n", f"- begin\n- {writer}.{number}\n"),
            *([create(f"writer{writer}.md")] if number == 0 else []),
        ]
        await store.commit("m", changes, message=f"{writer}.{number}", origin=AGENT)


async def test_writers_at_the_same_moment_lose_nothing(store, tmp_path):
    """C41 E: four stores, each in its own thread with its own handle, edit the same line."""
    begin = [MemoryChange(kind=ChangeKind.REPLACE, path="human.md", text="- begin\n")]
    await store.commit("m", begin, message="begin", origin=AGENT)
    barrier = threading.Barrier(4)
    failures: list[BaseException] = []

    def run(writer: int) -> None:
        barrier.wait(10)
        try:
            asyncio.run(write_all(tmp_path, writer, 15))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 60)
    assert failures == []
    body = (await store.read("m", "human.md", EVERYONE)).body
    assert sorted(body.split()[2:][1::2]) == sorted(f"{writer}.{number}" for writer in range(4) for number in range(15))
    messages = [commit.message for commit in await store.log("m", limit=100)]
    assert len(messages) == len(set(messages)) == 62
    assert all(line.startswith("dangling ") for line in git(tmp_path, "fsck", "--strict").splitlines())


async def test_many_commits_of_one_store_are_all_in_history(store):
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(store.commit("m", [create(f"f{number}.md")], message=f"{number}", origin=AGENT))
    assert len(await store.log("m", limit=100)) == 21
    assert len((await store.snapshot("m", EVERYONE)).files) == 23


def lock(directory: Path, name: str, modified_at: datetime) -> Path:
    path = directory / "m.git" / name
    path.touch()
    os.utime(path, (modified_at.timestamp(), modified_at.timestamp()))
    return path


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "index.lock", "HEAD.lock"])
async def test_a_lock_that_a_dead_process_left_is_removed_and_logged(store, tmp_path, caplog, name):
    """C41 A, C."""
    stale = lock(tmp_path, name, datetime.now(UTC) - timedelta(hours=2))
    fresh = GitMemoryStore(tmp_path, SystemClock())
    await fresh.commit("m", [create("tea.md")], message="m", origin=AGENT)
    assert not stale.exists()
    (record,) = [record for record in caplog.records if record.message == "memory_stale_lock_removed"]
    assert record.lock == Path(name).name


async def test_a_lock_that_goes_stale_while_the_store_is_open_is_removed(store, tmp_path):
    """C41 C."""
    stale = lock(tmp_path, "refs/heads/main.lock", datetime.now(UTC) - STALE_AFTER)
    await store.commit("m", [create("tea.md")], message="m", origin=AGENT)
    assert not stale.exists()


async def until_it_sleeps(clock: FakeClock) -> None:
    async with asyncio.timeout(60):
        while not clock.sleeping:
            await asyncio.sleep(0.001)


async def test_the_lock_of_a_live_writer_is_waited_for(store, tmp_path):
    """C41 B."""
    clock = FakeClock()
    live = lock(tmp_path, "refs/heads/main.lock", clock.now())
    waiting = GitMemoryStore(tmp_path, clock)
    async with asyncio.TaskGroup() as group:
        commit = group.create_task(waiting.commit("m", [create("tea.md")], message="m", origin=AGENT))
        for _ in range(5):
            await until_it_sleeps(clock)
            await clock.advance(timedelta(milliseconds=500))
        await until_it_sleeps(clock)
        assert live.exists()
        live.unlink()
        await clock.advance(timedelta(seconds=1))
    assert commit.result().revision == await store.head("m")


async def test_a_lock_that_is_always_renewed_ends_in_an_error_and_publishes_nothing(store, tmp_path):
    clock = FakeClock()
    before = await store.head("m")
    waiting = GitMemoryStore(tmp_path, clock)
    async with asyncio.TaskGroup() as group:
        commit = group.create_task(outcome(waiting.commit("m", [create("tea.md")], message="m", origin=AGENT)))
        lock(tmp_path, "refs/heads/main.lock", clock.now())
        while not commit.done():
            async with asyncio.timeout(60):
                while not clock.sleeping and not commit.done():
                    await asyncio.sleep(0.001)
            lock(tmp_path, "refs/heads/main.lock", clock.now() + PATIENCE)
            await clock.advance(timedelta(seconds=5))
    assert isinstance(commit.result(), StoreUnavailable)
    assert await store.head("m") == before


async def outcome(awaitable) -> object:
    try:
        return await awaitable
    except StoreUnavailable as error:
        return error


WRITER = """
import asyncio, sys
from pathlib import Path
from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.store import GitMemoryStore

async def main():
    store = GitMemoryStore(Path(sys.argv[1]), SystemClock())
    for number in range(10_000):
        change = MemoryChange(kind=ChangeKind.CREATE, path=f"f{number}.md", text="x", description="d")
        origin = CommitOrigin(author="agent", audience=Audience())
        commit = await store.commit("m", [change], message=str(number), origin=origin)
        print(commit.revision, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("commits", [1, 3, 7])
async def test_a_killed_writer_leaves_whole_commits_and_a_memory_that_can_be_written(store, tmp_path, commits):
    """C41 D: every revision that was told is there, fsck is clean, the next write succeeds."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    told = [writer.stdout.readline().strip() for _ in range(commits)]
    writer.send_signal(signal.SIGKILL)
    told += writer.stdout.read().split()
    writer.wait(10)
    writer.stdout.close()
    history = {commit.revision for commit in await store.log("m", limit=10_000)}
    assert {revision for revision in told if len(revision) == 40} <= history
    assert "missing" not in git(tmp_path, "fsck", "--strict")
    later = FakeClock(datetime.now(UTC) + timedelta(minutes=1))
    restarted = GitMemoryStore(tmp_path, later)
    assert (await restarted.commit("m", [create("after.md")], message="m", origin=AGENT)).parent in history


FULL_DISK = """
import asyncio, os
from pathlib import Path
from core.contracts.agents import Audience
from core.contracts.clock import SystemClock
from core.contracts.errors import StorageFull
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.store import GitMemoryStore

async def main():
    store = GitMemoryStore(Path("/mnt"), SystemClock())
    before = await store.create("m", ())
    blocker = open("/mnt/blocker", "wb", buffering=0)
    try:
        while True:
            blocker.write(os.urandom(4096))
    except OSError:
        pass
    change = MemoryChange(kind=ChangeKind.CREATE, path="a.md", text="x" * 9_000, description="d")
    try:
        await store.commit("m", [change], message="m", origin=CommitOrigin(author="agent", audience=Audience()))
    except StorageFull:
        assert await store.head("m") == before
    else:
        raise SystemExit("it was written")
    blocker.truncate(0)
    await store.commit("m", [change], message="m", origin=CommitOrigin(author="agent", audience=Audience()))
    print("refused, then written")

asyncio.run(main())
"""


def private_mounts_work() -> bool:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.sandbox
@pytest.mark.skipif(not private_mounts_work(), reason="needs a mount namespace")
def test_a_full_disk_publishes_nothing_and_the_memory_works_again_afterwards():
    script = f'mount -t tmpfs -o size=1m none /mnt && exec "{sys.executable}" -c "$0"'
    command = ["unshare", "-rm", "sh", "-c", script, FULL_DISK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("refused, then written\n", 0), done.stderr


async def test_nothing_reachable_in_the_repository_holds_a_secret(store, tmp_path):
    """C47: blobs, names and messages of the whole history."""
    token = "xoxb-" + "1" * 12 + "-" + "a" * 24
    change = create("keys.md", f"key {token} kept")
    await store.commit("m", [change], message=f"add {token}", origin=AGENT)
    everything = git(tmp_path, "log", "-p", "--all", "--format=%B%an%ae")
    assert token not in everything
    assert "key [secret removed] kept" in everything


async def test_a_damaged_object_is_a_store_error_that_names_it(store, tmp_path):
    blob = git(tmp_path, "rev-parse", "main:human.md").strip()
    damaged = tmp_path / "m.git" / "objects" / blob[:2] / blob[2:]
    damaged.unlink()
    with pytest.raises(StoreUnavailable, match=blob):
        await GitMemoryStore(tmp_path, SystemClock()).snapshot("m", EVERYONE)


async def test_a_directory_that_is_no_repository_is_a_store_error(tmp_path):
    (tmp_path / "m.git").mkdir()
    (tmp_path / "m.git" / "HEAD").write_text("nonsense")
    with pytest.raises(StoreUnavailable):
        await GitMemoryStore(tmp_path, SystemClock()).head("m")


async def test_packed_objects_are_read_like_loose_ones(store, tmp_path):
    before = await store.snapshot("m", EVERYONE)
    git(tmp_path, "gc", "--quiet")
    assert (await GitMemoryStore(tmp_path, SystemClock()).snapshot("m", EVERYONE)).files == before.files
    assert (await store.commit("m", [create("tea.md")], message="m", origin=AGENT)).parent == before.revision


async def test_removing_the_last_file_of_a_directory_removes_the_directory(store, tmp_path):
    await store.commit("m", [create("tea/MEMORY.md"), create("tea/green.md")], message="m", origin=AGENT)
    delete = [MemoryChange(kind=ChangeKind.DELETE, path=path) for path in ("tea/MEMORY.md", "tea/green.md")]
    await store.commit("m", delete, message="m", origin=AGENT)
    assert git(tmp_path, "ls-tree", "--name-only", "main").split() == ["MEMORY.md", "human.md", "persona.md"]


async def test_a_cancelled_caller_leaves_all_or_nothing(store):
    task = asyncio.ensure_future(store.commit("m", [create("a.md"), create("b.md")], message="m", origin=AGENT))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.commit("m", [create("c.md")], message="m", origin=AGENT)
    paths = {file.path for file in (await store.snapshot("m", EVERYONE)).files}
    assert ("a.md" in paths) == ("b.md" in paths)
