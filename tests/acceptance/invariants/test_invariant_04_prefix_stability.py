"""Invariant 4: each request is the one before plus a tail; volatile facts never touch the prefix."""

import json
from datetime import timedelta
from itertools import pairwise

import pytest

from core.contracts.agents import Audience, PermissionMode
from core.contracts.events import PromptRecompiled
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.messages import ReminderPart
from core.models.direct_anthropic import AnthropicForm
from core.models.direct_openai import OpenAIForm
from core.models.profiles import model_facts
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.prompts.reminders import ReminderKind
from tests.acceptance.invariants.chat_host import OWNER, chat, chat_host
from tests.acceptance.invariants.transcripts import continues
from tests.core.turns.workbench import RecordingTool

SOMEBODY = CommitOrigin(author="Carol", audience=Audience(), person="person-carol")


def note(text):
    return MemoryChange(kind=ChangeKind.CREATE, path="tea.md", text=text, description="What people drink")


def memory_write(call_id, text):
    change = {"kind": "create", "path": "own.md", "text": text, "description": "My own note"}
    return tool_call(call_id, "memory_write", json.dumps({"message": "learned", "changes": [change]}))


def reminders(request):
    return [part for message in request.messages for part in message.parts if isinstance(part, ReminderPart)]


def wire_text(form, request):
    """Return a request as its provider form writes it, tools and system first, one line for each block."""
    body = form.request(request, facts=model_facts(request.settings), images={}, key=None).body
    blocks = [
        (message["role"], {**message, "content": None}, block)
        for message in body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [message["content"]])
    ]
    if "system" in body:
        blocks = [(role, block) for role, _, block in blocks]
    return "\n".join(json.dumps(line) for line in (body["tools"], body.get("system"), *blocks))


async def test_a_memory_commit_by_anybody_leaves_the_prefix_of_an_open_conversation_alone(tmp_path):
    model = ScriptedModel([says("One."), says("Two."), says("Three.")])
    async with chat_host(tmp_path, model) as host:
        await host.says("first")
        await host.memory.commit(host.agent.memory_id, [note("Green tea.")], message="tea", origin=SOMEBODY)
        await host.says("second")
        await host.says("third")

    assert [continues(a, b) for a, b in pairwise(model.requests)] == [True, True]
    assert "Green tea." in reminders(model.requests[1])[-1].text


async def test_what_the_agent_itself_commits_leaves_its_own_prefix_alone(tmp_path):
    model = ScriptedModel([asks(memory_write("a", "I like order.")), says("Noted."), says("Yes.")])
    async with chat_host(tmp_path, model) as host:
        await host.says("remember that you like order")
        await host.says("do you?")
        (answer, *_) = await host.returns()
        assert "Committed" in answer.parts[0].text

    assert [continues(a, b) for a, b in pairwise(model.requests)] == [True, True]


async def test_time_mode_tools_and_restarts_leave_the_prefix_alone(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel([says("One."), asks(tool_call("a", "shell")), says("Two."), says("Three."), says("Four.")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("first")
        await host.passes(timedelta(hours=7))
        await host.says("/mode unrestricted")
        await host.says("second")
        clock = host.clock
    async with chat_host(tmp_path, model, tool, clock=clock) as host:
        await host.passes(timedelta(days=2))
        await host.says("third, after a restart")
        await host.says("/mode ask")
        await host.says("fourth")

    assert len(model.requests) == 5
    assert [continues(a, b) for a, b in pairwise(model.requests)] == [True] * 4
    times = [part.text for part in reminders(model.requests[-1]) if part.kind == ReminderKind.TIME]
    modes = [part.text for part in reminders(model.requests[-1]) if part.kind == ReminderKind.PERMISSION_MODE]
    assert len(set(times)) == len(times) == 3
    assert [PermissionMode.UNRESTRICTED in mode for mode in modes] == [False, True, False]


@pytest.mark.parametrize("form", [AnthropicForm(), OpenAIForm()], ids=["anthropic", "openai"])
async def test_on_the_wire_each_request_begins_with_the_bytes_of_the_one_before(tmp_path, form):
    tool = RecordingTool()
    calls = asks(tool_call("a", "shell"), tool_call("b", "shell"), text="Two things.")
    model = ScriptedModel([says("One."), calls, says("Two."), says("Three.")])
    async with chat_host(tmp_path, model, tool, mode=PermissionMode.UNRESTRICTED) as host:
        await host.says("first")
        await host.memory.commit(host.agent.memory_id, [note("Green tea.")], message="tea", origin=SOMEBODY)
        await host.says("second")
        await host.says("third")

    sent = [wire_text(form, request) for request in model.requests]
    assert len(sent) == 4
    assert [after.startswith(before) for before, after in pairwise(sent)] == [True] * 3
    assert len(sent[0]) < len(sent[1]) < len(sent[2]) < len(sent[3])


async def test_nothing_of_the_moment_or_the_place_is_in_the_system_prompt(tmp_path):
    """Two conversations of one audience share it byte for byte, and no reminder's text is part of it."""
    model = ScriptedModel([says("One."), says("Two.")])
    async with chat_host(tmp_path, model) as host:
        await host.says("hello", where=chat("one"))
        await host.passes(timedelta(days=1))
        await host.says("hello", where=chat("two"))
        ids = {await host.conversation_of(chat("one")), await host.conversation_of(chat("two")), host.agent.id}

    first, second = model.requests
    assert first.system == second.system
    said = [part.text for request in model.requests for part in reminders(request)]
    assert len(said) == 8
    volatile = {*said, *ids, OWNER.name, "2026", str(tmp_path)}
    assert [words for words in volatile if words in first.system] == []


@pytest.mark.parametrize("reason", ["the owner asked", "the template changed"])
async def test_a_break_is_a_recorded_event_with_its_reason(tmp_path, reason):
    model = ScriptedModel([says("One."), says("Two.")])
    async with chat_host(tmp_path, model) as host:
        await host.says("first")
        await host.memory.commit(host.agent.memory_id, [note("Green tea.")], message="tea", origin=SOMEBODY)
        await host.backend.recompile(await host.conversation_of(), reason=reason)
        await host.says("second")
        run_id = (await host.transcript())[-1].run_id
        events = [event.body async for event in host.backend.events(run_id)]

    assert [body.reason for body in events if isinstance(body, PromptRecompiled)] == [reason]
    assert "Green tea." in model.requests[1].system
    assert model.requests[1].messages[: len(model.requests[0].messages)] == model.requests[0].messages
