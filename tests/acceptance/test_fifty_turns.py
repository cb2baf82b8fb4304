"""C81: fifty conversations at once on one database file, beside a backup and a process that holds the write lock."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections import Counter

from bot.backup import Backups
from core.contracts.agents import PermissionMode
from core.memory.snapshot import GitCopies
from core.sandbox.fake import FakeOutcome
from core.stores.snapshot import SqliteFreezer
from tests.acceptance.wired_telegram import Wired, wired
from tests.platforms.model_script import Answer, Call

CHATS, TURNS = range(1001, 1051), ("one", "two", "three")
LINE = "make report"

HOLD_THE_WRITE_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(2)
connection.execute("COMMIT")
"""


def step(body) -> Answer:
    """Call a tool for a message that has no result yet; otherwise answer it."""
    if body["messages"][-1]["role"] != "tool":
        return Answer(calls=[Call(f"call-{len(body['messages'])}", "shell", json.dumps({"command": LINE}))])
    users = [message["content"] for message in body["messages"] if message["role"] == "user"]
    texts = [users[-1]] if isinstance(users[-1], str) else [block["text"] for block in users[-1]]
    return Answer(text=f"Done with {next(text for text in reversed(texts) if not text.startswith('<system-'))}.")


async def converse(run: Wired, chat: int) -> None:
    """Say three things, each after the answer to the one before."""
    for number, word in enumerate(TURNS, start=1):
        run.telegram.user_says(chat, f"{chat} {word}")
        await run.telegram.wait_for(lambda count=number: len(run.texts(chat)) >= count, timeout=100.0)


async def hold_the_write_lock(file) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD_THE_WRITE_LOCK, str(file), stdout=subprocess.PIPE
    )
    assert await process.communicate() == (b"held\n", None)
    assert process.returncode == 0


def stored_texts(file) -> Counter[str]:
    """Return how many messages of each role the database holds."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        roles = Counter(role for (role,) in connection.execute("SELECT role FROM messages"))
    connection.close()
    return roles


async def test_fifty_conversations_at_once_lose_nothing_and_answer_everybody_once(tmp_path):
    people = [f"telegram:{chat}" for chat in CHATS]
    outcomes = {LINE: FakeOutcome(output=b"made")}
    file = tmp_path / "host.db"
    async with wired(
        tmp_path, step, outcomes=outcomes, file=True, people=people, mode=PermissionMode.UNRESTRICTED
    ) as run:
        (tmp_path / "memory").mkdir()
        backups = Backups(
            data_dir=tmp_path,
            database=SqliteFreezer(run.stores.database, file),
            memory=GitCopies(tmp_path / "memory", run.clock),
            clock=run.clock,
        )
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            talks = [group.create_task(converse(run, chat)) for chat in CHATS]
            group.create_task(hold_the_write_lock(file))
            backup = group.create_task(backups.take(str(tmp_path / "copy.tar")))
            await run.until(lambda: all(talk.done() for talk in talks), seconds=110.0)
        await run.until_settled()
        assert backup.result().file.exists()
        for chat in CHATS:
            assert run.texts(chat) == [f"Done with {chat} {word}." for word in TURNS]
        turns = await run.turns_of_messages()
        assert len(turns) == len(set(turns)) == len(CHATS) * len(TURNS)
        assert len(run.model.bodies) == 2 * len(turns)
        assert stored_texts(file)["assistant"] == 2 * len(turns)
