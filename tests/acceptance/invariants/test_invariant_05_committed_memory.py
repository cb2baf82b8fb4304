"""Invariant 5: only committed memory is read, by every reader; news reach open conversations and stay."""

import json
import time
from datetime import timedelta

import pygit2
import pytest

from core.contracts.agents import Audience
from core.contracts.errors import MemoryRefused, NotFound
from core.contracts.ids import Revision
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.messages import ReminderPart
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.prompts.reminders import ReminderKind
from tests.acceptance.invariants.chat_host import chat, chat_host

UNCOMMITTED = "half a thought"
TOLD = Audience()
CAROL = CommitOrigin(author="Carol", audience=TOLD, person="person-carol")


def note(text, path="tea.md", description="What people drink"):
    return MemoryChange(kind=ChangeKind.CREATE, path=path, text=text, description=description)


def repository_of(host, tmp_path):
    return tmp_path / "data" / "memory" / f"{host.agent.memory_id}.git"


def die_before_publishing(path, text: str) -> Revision:
    """Leave all objects of a newer commit in the repository, as a writer does that dies before its last step."""
    repository = pygit2.Repository(str(path))
    head = repository.references["refs/heads/main"].peel(pygit2.Commit)
    builder = repository.TreeBuilder(head.tree)
    file = f"---\ndescription: A thought\n---\n{text}\n"
    builder.insert("thought.md", repository.create_blob(file.encode()), pygit2.enums.FileMode.BLOB)
    someone = pygit2.Signature("agent", "agent@lodger.invalid", int(time.time()) + 1_000_000, 0)
    revision = repository.create_commit(None, someone, someone, "unpublished", builder.write(), [head.id])
    return Revision(str(revision))


def memory_read(call_id, path):
    return tool_call(call_id, "memory_read", json.dumps({"path": path}))


def updates(messages):
    parts = [part for message in messages for part in message.parts if isinstance(part, ReminderPart)]
    return [part.text for part in parts if part.kind == ReminderKind.MEMORY_UPDATE]


async def test_what_was_written_but_never_published_is_not_compiled_and_not_read(tmp_path):
    model = ScriptedModel([asks(memory_read("a", "thought.md"), memory_read("b", "")), says("Nothing there.")])
    async with chat_host(tmp_path, model) as host:
        lost = die_before_publishing(repository_of(host, tmp_path), UNCOMMITTED)
        (repository_of(host, tmp_path) / "beside.md").write_text(UNCOMMITTED)
        await host.says("what do you think?")

        shown = [part.text for answer in await host.returns() for part in answer.parts]
        assert [text for text in (model.requests[0].system, *shown) if UNCOMMITTED in text] == []
        assert "thought.md" not in shown[1]
        assert "beside.md" not in shown[1]
        assert await host.memory.head(host.agent.memory_id) != lost


async def test_an_unpublished_revision_cannot_be_asked_for_by_its_name(tmp_path):
    async with chat_host(tmp_path, ScriptedModel([])) as host:
        lost = die_before_publishing(repository_of(host, tmp_path), UNCOMMITTED)
        with pytest.raises(NotFound):
            await host.memory.snapshot(host.agent.memory_id, TOLD, at=lost)
        with pytest.raises(NotFound):
            await host.memory.read(host.agent.memory_id, "thought.md", TOLD, at=lost)
        with pytest.raises(NotFound):
            await host.memory.diff(host.agent.memory_id, lost, TOLD)


async def test_a_refused_change_is_seen_by_nobody(tmp_path):
    model = ScriptedModel([says("Hello.")])
    async with chat_host(tmp_path, model) as host:
        changes = [note("Green tea."), note(UNCOMMITTED, path="no-description.md", description="")]
        with pytest.raises(MemoryRefused):
            await host.memory.commit(host.agent.memory_id, changes, message="both", origin=CAROL)
        await host.says("hello")

    assert "Green tea." not in model.requests[0].system
    assert UNCOMMITTED not in model.requests[0].system


async def test_news_reach_an_open_conversation_once_and_stay_in_its_transcript(tmp_path):
    model = ScriptedModel([says("One."), says("Two."), says("Three."), says("Four.")])
    async with chat_host(tmp_path, model) as host:
        await host.says("first")
        await host.memory.commit(host.agent.memory_id, [note("Green tea.")], message="tea", origin=CAROL)
        await host.says("second")
        await host.says("third")
        clock = host.clock
    async with chat_host(tmp_path, model, clock=clock) as host:
        await host.passes(timedelta(minutes=1))
        await host.says("fourth, after a restart")
        stored = updates(await host.transcript())

    assert [len(updates(request.messages)) for request in model.requests] == [0, 1, 1, 1]
    assert len(stored) == 1
    assert "Green tea." in stored[0]
    assert "Carol" in stored[0]


async def test_a_new_conversation_is_compiled_from_the_newest_revision(tmp_path):
    model = ScriptedModel([says("One."), says("Two.")])
    async with chat_host(tmp_path, model) as host:
        await host.says("hello", where=chat("one"))
        await host.memory.commit(host.agent.memory_id, [note("Green tea.")], message="tea", origin=CAROL)
        await host.says("hello", where=chat("two"))

    assert "Green tea." not in model.requests[0].system
    assert "Green tea." in model.requests[1].system
    assert updates(model.requests[1].messages) == []
