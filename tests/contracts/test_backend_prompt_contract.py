"""What every `Backend` promises of prompt and memory: nothing in front of a transcript moves without a record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.contracts.agents import Audience, ModelSettings
from core.contracts.events import PromptRecompiled
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.messages import ReminderPart, Role
from core.contracts.runs import ApprovalInput
from core.contracts.tools import ToolSchema
from core.models.scripted import ScriptedModel, asks, says, tool_call
from tests.contracts.backend_harnesses import HARNESSES, SHELL, SPEC, BackendWorld, say
from tests.contracts.test_backend_contract import bodies, ok

OTHER = ToolSchema(name="other", description="Another.", parameters={"type": "object", "properties": {}})
MANY = [says(f"answer {number}") for number in range(6)]


@pytest.fixture(params=HARNESSES, ids=list(HARNESSES))
def opened(request, tmp_path):
    def open_world(*steps):
        return HARNESSES[request.param](tmp_path, ScriptedModel(steps or MANY))

    return open_world


def updates(world: BackendWorld, request_number: int) -> list[str]:
    """Return the memory updates that a request holds."""
    parts = [part for message in world.model.requests[request_number].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ReminderPart) and part.kind == "memory_update"]


def assert_each_continues_the_one_before(world: BackendWorld) -> None:
    """Invariant 4."""
    for before, after in zip(world.model.requests, world.model.requests[1:], strict=False):
        assert after.system == before.system
        assert after.tools == before.tools
        assert after.messages[: len(before.messages)] == before.messages


async def test_the_first_run_compiles_and_says_why(opened):
    async with opened() as world:
        events = await world.step(say("hi"))
        assert bodies(events, PromptRecompiled) == [PromptRecompiled(reason="new conversation")]
        assert "lodger" in world.model.requests[0].system


async def test_later_runs_send_the_same_bytes_and_record_no_break(opened):
    async with opened() as world:
        await world.step(say("one"))
        for text in ("two", "three"):
            assert bodies(await world.step(say(text)), PromptRecompiled) == []
        assert_each_continues_the_one_before(world)


async def test_the_prompt_is_the_same_after_a_restart(opened):
    async with opened() as world:
        await world.step(say("one"))
        async with world.restart() as again:
            assert bodies(await again.step(say("two")), PromptRecompiled) == []
            async with again.restart() as once_more:
                await once_more.step(say("three"))
                assert_each_continues_the_one_before(once_more)
                assert len(once_more.model.requests) == 3


async def test_a_wished_recompile_happens_at_the_next_run_and_once(opened):
    async with opened() as world:
        await world.step(say("one"))
        await world.backend.recompile(world.conversation_id, reason="asked by Alice")
        events = await world.step(say("two"))
        assert bodies(events, PromptRecompiled) == [PromptRecompiled(reason="asked by Alice")]
        assert bodies(await world.step(say("three")), PromptRecompiled) == []


async def test_a_changed_toolset_is_a_recorded_recompile(opened):
    async with opened() as world:
        await world.step(say("one"))
        events = await world.step(say("two"), tools=(SHELL, OTHER))
        assert bodies(events, PromptRecompiled) == [PromptRecompiled(reason="tools changed")]
        assert world.model.requests[1].tools == (SHELL, OTHER)


async def test_a_changed_model_is_a_recorded_recompile(opened):
    async with opened() as world:
        await world.step(say("one"))
        other = replace(SPEC, model=ModelSettings(name="main", model="scripted/other"))
        await world.backend.update_agent(world.agent.id, other)
        (recorded,) = bodies(await world.step(say("two")), PromptRecompiled)
        assert "model" in recorded.reason


@pytest.mark.parametrize("sees_images", [True, False])
async def test_a_host_that_says_whether_its_model_sees_images_breaks_the_prefix_once_and_records_it(
    opened, sees_images
):
    async with opened() as world:
        await world.step(say("one"))
        await world.backend.update_agent(
            world.agent.id, replace(SPEC, model=replace(SPEC.model, sees_images=sees_images))
        )
        (recorded,) = bodies(await world.step(say("two")), PromptRecompiled)
        assert "model" in recorded.reason
        assert bodies(await world.step(say("three")), PromptRecompiled) == []


async def test_a_commit_of_others_reaches_the_open_conversation_and_stays_in_it(opened):
    """Invariant 5: it is stored in the transcript, so that it does not evaporate."""
    async with opened() as world:
        await world.step(say("one"))
        await world.commit("deploy.md", "Deploys happen on Fridays.")
        await world.step(say("two"))
        (told,) = updates(world, 1)
        assert "Deploys happen on Fridays." in told
        assert "Bob" in told
        await world.step(say("three"))
        assert updates(world, 2) == [told]
        assert_each_continues_the_one_before(world)
        rows = await world.backend.list_messages(world.conversation_id)
        assert [row.role for row in rows if ReminderPart(kind="memory_update", text=told) in row.parts] == [Role.USER]


async def test_an_update_comes_behind_the_results_of_a_step(opened):
    async with opened(asks(tool_call("a", "shell")), says("ok")) as world:
        await world.step(say("one"))
        await world.commit("deploy.md", "Deploys happen on Fridays.")
        await world.step(ApprovalInput(returns=(ok("a"),)))
        assert [m.role for m in world.model.requests[1].messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
        assert len(updates(world, 1)) == 1


async def test_an_update_survives_a_restart_and_is_told_once(opened):
    async with opened() as world:
        await world.step(say("one"))
        await world.commit("deploy.md", "Deploys happen on Fridays.")
        await world.step(say("two"))
        async with world.restart() as again:
            await again.step(say("three"))
            assert len(updates(again, 2)) == 1
            assert_each_continues_the_one_before(again)


async def test_a_commit_of_the_conversation_itself_gives_no_echo(opened):
    async with opened() as world:
        await world.step(say("one"))
        await world.commit("mine.md", "I wrote this.", author="agent", conversation_id=world.conversation_id)
        await world.step(say("two"))
        assert updates(world, 1) == []


async def test_beside_a_commit_of_others_the_own_one_is_not_echoed(opened):
    async with opened() as world:
        await world.step(say("one"))
        await world.commit("mine.md", "I wrote this.", author="agent", conversation_id=world.conversation_id)
        await world.commit("deploy.md", "Deploys happen on Fridays.")
        await world.step(say("two"))
        (told,) = updates(world, 1)
        assert "Fridays" in told
        assert "I wrote this." not in told


async def test_what_the_audience_may_not_see_is_no_news_and_hides_none(opened):
    """Invariant 16: a private commit is not told, and does not make the next own commit look foreign."""
    async with opened() as world:
        await world.step(say("one"))
        private = Audience(words=frozenset({"everyone", "person:p9"}))
        change = MemoryChange(
            kind=ChangeKind.CREATE,
            path="secret.md",
            text="---\ndescription: about p9\naudience: person:p9\n---\nThe surprise party is on Sunday.\n",
        )
        origin = CommitOrigin(author="agent", audience=private, conversation_id="conv-elsewhere")
        await world.memory.commit(world.agent.memory_id, [change], message="note the party", origin=origin)
        await world.step(say("two"))
        await world.commit("mine.md", "I wrote this.", author="agent", conversation_id=world.conversation_id)
        await world.step(say("three"))
        assert updates(world, 2) == []
        assert "party" not in repr(world.model.requests[2])


async def test_updates_that_outgrow_the_memory_are_a_recorded_recompile(opened):
    async with opened() as world:
        await world.step(say("one"))
        for number in range(24):
            await world.commit(f"file{number}.md", "x" * 1_900)
        (recorded,) = bodies(await world.step(say("two")), PromptRecompiled)
        assert recorded.reason == "memory outgrew its updates"
        assert "file23.md" in world.model.requests[1].system
        assert updates(world, 1) == []


async def test_a_new_conversation_knows_what_was_committed_in_another(opened):
    async with opened() as world:
        await world.step(say("one"))
        await world.commit("deploy.md", "Deploys happen on Fridays.", author="agent", conversation_id="conv-elsewhere")
        other = await world.backend.create_conversation(world.agent.id, Audience())
        run = await world.backend.start_run(
            await world.backend.claim(other.id), say("hi"), tools=(SHELL,), request_id="r1"
        )
        await world.events(run.id)
        assert "Deploys happen on Fridays." in world.model.requests[-1].system
