"""The demo model's walk for a newcomer."""

import json

import pytest

from core.contracts.messages import ReminderPart, ReturnOutcome, ToolCall, visible_text
from core.contracts.models import FinishReason
from core.contracts.tools import ToolSchema
from core.models.demo import DemoModel
from tests.core.models.transcripts import answer_of, assistant, call, request, result, settings, user

DEMO = settings("scripted/demo")
TOOLS = tuple(
    ToolSchema(name=name, description="", parameters={"type": "object"}) for name in ("shell", "memory_write")
)
WRITE = '{"message":"m","changes":[{"kind":"create","path":"notes.md","text":"- Noted: I like tea\\n"}]}'


async def step(*contents, system="You are a demo.", tools=TOOLS):
    deltas, finished = await answer_of(DemoModel(), request(DEMO, *contents, system=system, tools=tools))
    return deltas, finished, visible_text(finished.parts)


@pytest.mark.parametrize("greeting", ["hello", "Hi!", "help", "what?", ""])
async def test_it_says_that_it_is_scripted_and_what_to_try(greeting):
    deltas, finished, text = await step(user(greeting))
    assert "scripted demo model" in text
    assert "list files" in text
    assert "remember that" in text
    assert len(deltas) > 5
    assert "".join(delta.text for delta in deltas) == text
    assert finished.finish is FinishReason.STOP


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("list files", "ls -la && echo hello from the sandbox"),
        ("can you use the shell", "ls -la && echo hello from the sandbox"),
        ("run `git status`", "git status"),
        ("please run echo a && echo b", "echo a && echo b"),
    ],
)
async def test_it_asks_to_run_a_command(text, command):
    _, finished, _ = await step(user(text))
    (asked,) = [part for part in finished.parts if isinstance(part, ToolCall)]
    assert asked.name == "shell"
    assert json.loads(asked.arguments) == {"command": command}
    assert finished.finish is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [(ReturnOutcome.OK, "a.md"), (ReturnOutcome.DENIED, "You said no"), (ReturnOutcome.ERROR, "did not work: a.md")],
)
async def test_it_tells_how_the_command_ended(outcome, expected):
    contents = (user("list files"), assistant(call("c1", '{"command":"ls"}', "shell")), result("c1", "a.md", outcome))
    _, _, text = await step(*contents, user(ReminderPart(kind="time", text="noon")))
    assert expected in text


async def test_it_creates_its_notes_and_then_adds_to_them():
    _, first, _ = await step(user("Please remember that I like tea."))
    change = json.loads(first.parts[-1].arguments)["changes"][0]
    assert (change["kind"], change["path"], change["text"]) == ("create", "notes.md", "- Noted: I like tea\n")
    _, second, _ = await step(user("remember that I live in Ulm"), system="<memory>\n- Noted: I like tea\n</memory>")
    change = json.loads(second.parts[-1].arguments)["changes"][0]
    assert (change["kind"], change["text"]) == ("replace", "- Noted: I like tea\n- Noted: I live in Ulm\n")


async def test_another_conversation_finds_the_fact_in_the_prompt():
    for question in ("what do you remember?", "What is my favourite drink?", "do you remember my drink?"):
        _, _, text = await step(user(question), system="<memory>\n- Noted: I like tea &amp; cake\n</memory>")
        assert "I like tea & cake" in text


async def test_its_own_commit_counts_only_if_it_went_through():
    written = assistant(call("c1", WRITE, "memory_write"))
    _, _, done = await step(user("x"), written, result("c1", "ok"), assistant("Done."), user("what do you remember?"))
    refused = result("c1", "no", ReturnOutcome.DENIED)
    _, _, denied = await step(user("x"), written, refused, assistant("Hm."), user("what do you remember?"))
    assert "I like tea" in done
    assert "nothing yet" in denied


@pytest.mark.parametrize(
    ("update", "present", "absent"),
    [
        ("notes.md\n- Noted: I like milk", "milk", "tea"),
        ("notes.md\n@@\n- Noted: I like tea\n+- Noted: I like milk", "milk", "juice"),
        ("notes.md\n@@\n-- Noted: I like tea\n+- Noted: I like milk", "milk", "tea"),
        ("deleted: notes.md", "nothing yet", "tea"),
        ("other.md changed", "tea", "nothing yet"),
    ],
)
async def test_memory_updates_are_believed(update, present, absent):
    contents = (user("what do you remember?", ReminderPart(kind="memory_update", text=update)),)
    _, _, text = await step(*contents, system="- Noted: I like tea")
    assert present in text
    assert absent not in text


async def test_it_says_so_when_the_tool_is_missing():
    _, finished, text = await step(user("list files"), tools=())
    assert "`shell`" in text
    assert finished.finish is FinishReason.STOP


async def test_it_answers_the_same_to_the_same_request():
    assert await step(user("remember that I like tea")) == await step(user("remember that I like tea"))
