"""A data directory that is worked on, and backups of it."""

from __future__ import annotations

import sqlite3
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import pygit2

from bot.backup import Backups
from core.contracts.models import ModelClient
from core.memory.snapshot import GitCopies
from core.models.scripted import ScriptedModel, says
from core.stores.snapshot import SqliteFreezer
from tests.contracts.backend_harnesses import BackendWorld, local_on_files, say

BOUND_SECONDS = 60


@dataclass
class Working:
    """A backend at work on a data directory, and what backs it up."""

    world: BackendWorld
    data_dir: Path
    backups: Backups


def talkative(count: int = 10_000) -> ScriptedModel:
    """Return a model that always has something to say."""
    return ScriptedModel(says(f"answer {number}") for number in range(count))


@asynccontextmanager
async def working(root: Path, model: ModelClient | None = None) -> AsyncIterator[Working]:
    """Open a backend on `root/data` and what takes backups of it."""
    data_dir = root / "data"
    data_dir.mkdir(exist_ok=True)
    async with local_on_files(data_dir, model or talkative()) as world:
        backups = Backups(
            data_dir=data_dir,
            database=SqliteFreezer(world.stores.database, data_dir / "host.db"),
            memory=GitCopies(data_dir / "memory", world.clock),
            clock=world.clock,
        )
        yield Working(world=world, data_dir=data_dir, backups=backups)


async def small_backup(root: Path) -> Path:
    """Return a backup of a conversation with one message, one memory and one file."""
    (root / "data" / "attachments" / "conv-1").mkdir(parents=True)
    (root / "data" / "attachments" / "conv-1" / "a.png").write_bytes(b"picture")
    async with working(root) as work:
        await work.world.step(say("hi"))
        return (await work.backups.take(str(root / "b.tar"))).file


def unpacked(backup: Path, folder: Path) -> Path:
    """Unpack as a person would who has nothing but tar."""
    folder.mkdir()
    with tarfile.open(backup) as archive:
        archive.extractall(folder, filter="data")
    return folder


def rows(database: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def history(memory: Path, memory_id: str) -> list[str]:
    """Return the revisions that lead to the head, newest first."""
    repository = pygit2.Repository(str(memory / f"{memory_id}.git"))
    return [str(commit.id) for commit in repository.walk(repository.references["refs/heads/main"].target)]


def all_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
