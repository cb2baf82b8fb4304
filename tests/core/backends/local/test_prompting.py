"""What stands in front of a transcript, and why it ever changes."""

from __future__ import annotations

import json

from core.backends.local.prompting import prepare_prompt
from core.contracts.agents import Audience
from core.contracts.clock import FakeClock
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.store import ConversationState
from core.contracts.tools import ToolSchema
from core.memory.fake import FakeMemoryStore
from core.models.profiles import model_facts
from core.tools.schema import schemas_json
from tests.core.stores.samples import agent, conversation

SHELL = ToolSchema(
    name="shell", description="Führe aus.", parameters={"type": "object", "properties": {"z": 1, "a": 2}}
)
READ = ToolSchema(name="read", description="Read.", parameters={"type": "object"})
AGENT = agent()
FACTS = model_facts(AGENT.model)


def state(prompt=None, *, stale: str = "") -> ConversationState:
    return ConversationState(
        agent=AGENT, conversation=conversation(), prompt=prompt, prompt_stale=stale, view=(), active_run=None
    )


async def memory_store() -> FakeMemoryStore:
    memory = FakeMemoryStore(FakeClock())
    await memory.create(AGENT.memory_id, ())
    return memory


async def prepare(memory, prompt=None, *, tools=(SHELL,), stale=""):
    return await prepare_prompt(state(prompt, stale=stale), tools=tools, facts=FACTS, memory=memory)


async def commit(memory, path: str, *, author: str = "Bob", conversation_id: str = ""):
    change = MemoryChange(kind=ChangeKind.CREATE, path=path, text=f"All about {path}.", description="about it")
    origin = CommitOrigin(author=author, audience=Audience(), conversation_id=conversation_id)
    return await memory.commit(AGENT.memory_id, [change], message=f"add {path}", origin=origin)


def test_tools_are_canonical_json_in_their_given_order():
    text = schemas_json([SHELL, READ])
    assert [tool["name"] for tool in json.loads(text)] == ["shell", "read"]
    assert text == schemas_json([SHELL, READ])
    assert text != schemas_json([READ, SHELL])
    assert "Führe" in text
    assert '"z":1,"a":2' in text


async def test_the_first_prompt_is_compiled_from_the_newest_revision():
    memory = await memory_store()
    prepared = await prepare(memory)
    head = await memory.head(AGENT.memory_id)
    assert (prepared.changed, prepared.recompiled, prepared.update) == (True, "new conversation", None)
    assert (prepared.prompt.revision, prepared.prompt.seen_revision) == (head, head)


async def test_nothing_new_is_the_very_same_prompt():
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    again = await prepare(memory, first)
    assert again.prompt == first
    assert (again.changed, again.recompiled, again.update) == (False, "", None)


async def test_a_stale_mark_wins_over_everything_and_is_the_reason():
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    again = await prepare(memory, first, tools=(SHELL, READ), stale="asked by Alice")
    assert again.recompiled == "asked by Alice"


async def test_news_advance_what_was_seen_and_leave_the_text_alone():
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    committed = await commit(memory, "deploy.md")
    again = await prepare(memory, first)
    assert again.prompt.text == first.text
    assert again.prompt.revision == first.revision
    assert again.prompt.seen_revision == committed.revision
    assert (again.changed, again.recompiled) == (True, "")
    assert "All about deploy.md." in again.update.text


async def test_own_commits_advance_what_was_seen_without_a_word():
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    committed = await commit(memory, "mine.md", author="agent", conversation_id=conversation().id)
    again = await prepare(memory, first)
    assert again.update is None
    assert (again.changed, again.prompt.seen_revision) == (True, committed.revision)


async def test_an_agent_that_speaks_elsewhere_is_somebody_else():
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    await commit(memory, "theirs.md", author="agent", conversation_id="conv-elsewhere")
    assert "theirs.md" in (await prepare(memory, first)).update.text


async def test_a_person_who_commits_from_this_conversation_is_told_of():
    """`/remember` in the chat: the model did not see it happen."""
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    await commit(memory, "notes.md", author="Alice", conversation_id=conversation().id)
    assert "notes.md" in (await prepare(memory, first)).update.text


async def test_a_history_that_no_longer_holds_what_was_seen_is_compiled_afresh():
    """After a purge, or more commits than are looked through, an update could not tell everything."""
    memory = await memory_store()
    first = (await prepare(memory)).prompt
    for number in range(201):
        await commit(memory, f"topics/file{number}.md" if number else "topics/MEMORY.md")
    again = await prepare(memory, first)
    assert again.recompiled == "memory moved further than its history tells"
    assert again.prompt.seen_revision == await memory.head(AGENT.memory_id)
