"""Invariant 6: every change of memory passes admission; loosening its policy needs a person, who is recorded."""

import json

import pygit2
import pytest

from core.contracts.agents import AgentSpec, Audience, ModelSettings, PermissionMode
from core.contracts.errors import MemoryRefused
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.messages import ReturnOutcome
from core.memory.layout import POLICY
from core.models.scripted import ScriptedModel, asks, says, tool_call
from tests.acceptance.invariants.chat_host import OWNER, chat_host

BROKEN = "A file without frontmatter, so nobody knows what it is for.\n"
EVERYBODY = Audience()
AGENT = CommitOrigin(author="agent", audience=EVERYBODY)
CAROL = CommitOrigin(author="Carol", audience=EVERYBODY, person="person-carol", approved=True)


def memory_write(call_id, **change):
    return tool_call(call_id, "memory_write", json.dumps({"message": "because", "changes": [change]}))


def create(path, text, description=""):
    return MemoryChange(kind=ChangeKind.CREATE, path=path, text=text, description=description)


async def heads(host):
    return await host.memory.head(host.agent.memory_id)


async def test_an_agent_is_not_born_with_files_that_break_the_rules(tmp_path):
    async with chat_host(tmp_path, ScriptedModel([])) as host:
        spec = AgentSpec(
            name="second",
            model=ModelSettings(name="main", model="scripted/test"),
            memory_files=(("about.md", BROKEN),),
        )
        with pytest.raises(MemoryRefused):
            await host.backend.create_agent(spec)
        assert await host.backend.find_agent("second") is None


@pytest.mark.parametrize("origin", [AGENT, CAROL], ids=["agent", "person"])
async def test_no_author_commits_what_breaks_the_rules(tmp_path, origin):
    async with chat_host(tmp_path, ScriptedModel([])) as host:
        before = await heads(host)
        with pytest.raises(MemoryRefused):
            await host.memory.commit(host.agent.memory_id, [create("about.md", BROKEN)], message="x", origin=origin)
        assert await heads(host) == before


async def test_the_tool_is_refused_in_the_freest_mode_and_the_agent_is_told_how_to_do_better(tmp_path):
    model = ScriptedModel([asks(memory_write("a", kind="create", path="about.md", text=BROKEN)), says("I see.")])
    async with chat_host(tmp_path, model, mode=PermissionMode.UNRESTRICTED) as host:
        before = await heads(host)
        await host.says("remember this")

        (answer,) = await host.returns()
        assert answer.outcome is ReturnOutcome.ERROR
        assert "description" in answer.parts[0].text
        assert await heads(host) == before


async def test_an_undo_is_admitted_like_any_other_change(tmp_path):
    """What is undone was allowed when it was made; bringing it back may no longer be."""
    async with chat_host(tmp_path, ScriptedModel([])) as host:
        memory, memory_id = host.memory, host.agent.memory_id
        await memory.commit(memory_id, [create("long.md", "word " * 300, "A long note")], message="long", origin=AGENT)
        shorter = MemoryChange(kind=ChangeKind.REPLACE, path="long.md", text="short", description="A long note")
        cut = await memory.commit(memory_id, [shorter], message="shorter", origin=CAROL)
        tight = create(POLICY, json.dumps({"file_chars": 1000}))
        await memory.commit(memory_id, [tight], message="tighten", origin=CAROL)
        before = await heads(host)

        with pytest.raises(MemoryRefused):
            await memory.undo(memory_id, cut.revision, origin=CAROL)
        assert await heads(host) == before


async def test_loosening_the_policy_waits_for_a_person_in_the_freest_mode_and_records_who_it_was(tmp_path):
    loosen = memory_write("a", kind="replace", path=POLICY, text=json.dumps({"file_chars": 20_000}))
    model = ScriptedModel([asks(loosen), says("Done.")])
    async with chat_host(tmp_path, model, mode=PermissionMode.UNRESTRICTED) as host:
        tight = create(POLICY, json.dumps({"file_chars": 1000}))
        await host.memory.commit(host.agent.memory_id, [tight], message="tighten", origin=CAROL)
        before = await heads(host)
        await host.says("make room")
        assert await heads(host) == before
        assert "loosened" in host.texts_in()[-1]

        await host.presses("Approve")
        assert await heads(host) != before
        repository = pygit2.Repository(str(tmp_path / "data" / "memory" / f"{host.agent.memory_id}.git"))
        trailers = repository[await heads(host)].message
        alice = await host.stores.people.person_of(OWNER.identity)
        assert f"Person: {alice.id}" in trailers
        assert "Approved: yes" in trailers


async def test_loosening_the_policy_is_refused_when_a_person_denies_it(tmp_path):
    loosen = memory_write("a", kind="replace", path=POLICY, text=json.dumps({"file_chars": 20_000}))
    model = ScriptedModel([asks(loosen), says("Then not.")])
    async with chat_host(tmp_path, model, mode=PermissionMode.UNRESTRICTED) as host:
        tight = create(POLICY, json.dumps({"file_chars": 1000}))
        await host.memory.commit(host.agent.memory_id, [tight], message="tighten", origin=CAROL)
        before = await heads(host)
        await host.says("make room")
        await host.presses("Deny")

        assert await heads(host) == before


async def test_loosening_without_an_approval_is_refused_by_the_store_itself(tmp_path):
    async with chat_host(tmp_path, ScriptedModel([])) as host:
        tight = create(POLICY, json.dumps({"file_chars": 1000}))
        await host.memory.commit(host.agent.memory_id, [tight], message="tighten", origin=CAROL)
        before = await heads(host)
        loose = MemoryChange(kind=ChangeKind.REPLACE, path=POLICY, text=json.dumps({"file_chars": 20_000}))
        with pytest.raises(MemoryRefused):
            await host.memory.commit(host.agent.memory_id, [loose], message="loosen", origin=AGENT)
        assert await heads(host) == before
