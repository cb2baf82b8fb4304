"""`lodger run`: one turn that nobody watches, told as JSON objects."""

from __future__ import annotations

import asyncio
import json

import pytest

from bot.host_api import HeadlessRequest
from core.backends.local.run_log import FLUSH_AFTER
from core.contracts.addresses import MessageBody
from core.contracts.agents import PermissionMode
from core.contracts.errors import InvalidInput, ModelRejected, NotFound
from core.contracts.messages import ReturnOutcome
from core.contracts.models import FinishReason
from core.models.scripted import ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.hosting import BOUND_SECONDS, SECRET, Hosted, hosting

MADE = {"make x": FakeOutcome(output=b"made")}
ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'), text="Let me.")


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *steps, outcomes=MADE, **more)

    return open_host


async def run(host: Hosted, text: str = "hi", **more) -> list[dict]:
    """Run one turn while the host works, and return everything it told."""

    async def work() -> None:
        while True:
            await host.settle()
            await asyncio.sleep(0.001)

    async with asyncio.timeout(BOUND_SECONDS), asyncio.TaskGroup() as group:
        channel = host.app.channels["headless"]
        serving = [group.create_task(channel.run(host.app.sink)), group.create_task(work())]
        await asyncio.sleep(0)
        request = HeadlessRequest(text=text, **more)
        told = [json.loads(json.dumps(line)) async for line in host.app.api.run_headless(request)]
        for task in serving:
            task.cancel()
    return told


async def test_the_first_object_says_where_and_the_last_how_it_ended(opened):
    async with opened(says("Hel", "lo")) as host:
        told = await run(host)
        assert told[0]["type"] == "started"
        result = told[-1]
        assert result["type"] == "result"
        assert (result["outcome"], result["text"], result["exit_code"]) == ("completed", "Hello", 0)
        assert result["conversation_id"] == told[0]["conversation_id"]
        assert result["usage"]["output_tokens"] > 0
        assert "".join(line["text"] for line in told if line["type"] == "text_delta") == "Hello"


async def test_events_of_a_run_are_told_with_their_numbers(opened):
    async with opened(says("Hello")) as host:
        told = [line for line in await run(host) if "seq" in line]
        assert [line["seq"] for line in told] == list(range(1, len(told) + 1))
        assert told[-1]["type"] == "run_finished"
        assert {"message", "prompt_recompiled", "usage"} <= {line["type"] for line in told}


async def test_what_would_be_asked_is_denied_and_the_exit_code_says_so(opened):
    async with opened(ASKING, says("I could not.")) as host:
        told = await run(host)
        assert (told[-1]["outcome"], told[-1]["exit_code"]) == ("completed", 3)
        assert told[-1]["text"] == "Let me.\n\nI could not."
        assert host.commands == []
        assert await host.open_approvals() == ()


async def test_what_is_allowed_runs_and_is_told(opened):
    async with opened(ASKING, says("Made."), mode=PermissionMode.UNRESTRICTED) as host:
        told = await run(host)
        assert told[-1]["exit_code"] == 0
        kinds = [line["type"] for line in told]
        assert kinds.index("call_requested") < kinds.index("call_started") < kinds.index("call_finished")
        finished = next(line for line in told if line["type"] == "call_finished")
        assert finished["outcome"] == ReturnOutcome.OK


@pytest.mark.parametrize(
    ("step", "outcome", "code"),
    [
        (ModelRejected("no such model"), "error", 1),
        (says(""), "empty", 1),
        (ScriptedStep(pieces=("The answer is",), finish=FinishReason.LENGTH), "cut", 4),
        (ScriptedStep(pieces=("No.",), finish=FinishReason.REFUSAL), "refused", 1),
        (asks(tool_call("a", "stay_silent", '{"reason":"nothing to say"}')), "silent", 0),
    ],
)
async def test_every_outcome_has_its_exit_code(opened, step, outcome, code):
    async with opened(step) as host:
        result = (await run(host))[-1]
        assert (result["outcome"], result["exit_code"]) == (outcome, code)


async def test_a_conversation_is_continued(opened):
    async with opened(says("Teal, noted."), says("Teal.")) as host:
        first = await run(host, "the colour is teal")
        second = await run(host, "which?", conversation=first[-1]["conversation_id"])
        assert second[-1]["text"] == "Teal."
        assert "the colour is teal" in repr(host.model.requests[1].messages)


async def test_each_run_without_a_conversation_is_a_new_one(opened):
    async with opened(says("one"), says("two")) as host:
        first, second = await run(host, "secret plan"), await run(host, "hi")
        assert first[0]["conversation_id"] != second[0]["conversation_id"]
        assert "secret plan" not in repr(host.model.requests[1].messages)


@pytest.mark.parametrize("wrong", [{"agent": "nobody"}, {"conversation": "conv-x"}])
async def test_a_wrong_name_is_told_at_once(opened, wrong):
    async with opened() as host:
        with pytest.raises(NotFound):
            await anext(host.app.api.run_headless(HeadlessRequest(text="hi", **wrong)))


async def test_another_agents_conversation_is_not_continued(opened):
    async with opened(says("one")) as host:
        first = await run(host)
        request = HeadlessRequest(text="hi", agent="nobody", conversation=first[0]["conversation_id"])
        with pytest.raises(InvalidInput, match="is one of agent 'lodger'"):
            await anext(host.app.api.run_headless(request))


async def test_a_command_of_chats_is_refused_because_it_begins_no_turn(opened):
    async with opened() as host:
        with pytest.raises(InvalidInput, match="starts no turn"):
            await anext(host.app.api.run_headless(HeadlessRequest(text="/help")))
        assert host.model.requests == []


async def test_the_turn_of_somebody_else_in_the_same_conversation_is_not_ours(opened):
    """It was queued before; the result is of the turn that took our message."""
    async with opened(says("for the chat"), says("for the command")) as host:
        await host.says("/help")
        conversation = await host.conversation_id()
        await host.arrives(MessageBody(text="first"))
        told = await run(host, "second", conversation=conversation)
        assert told[-1]["text"] == "for the command"
        assert "for the chat" not in repr([line for line in told if line["type"] == "text_delta"])
        await host.settle()
        assert host.texts()[-1] == "for the chat"


async def set_after(host: Hosted, gate: asyncio.Event) -> None:
    """Let a second pass once the model was asked, so that what it said first is told alone."""
    await host.until(lambda: host.model.requests)
    began = host.clock.monotonic()
    while host.clock.monotonic() < began + 1:
        await asyncio.sleep(0.001)
        await host.clock.advance(FLUSH_AFTER)
    gate.set()


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ((f"it is {SECRET[:7]}", f"{SECRET[7:]}, keep it"), "it is [secret password], keep it"),
        ((f"it is {SECRET}", f" and {SECRET}"), "it is [secret password] and [secret password]"),
        ((f"it is {SECRET[:7]}", " and no more"), f"it is {SECRET[:7]} and no more"),
        (("it is ", SECRET[:7]), f"it is {SECRET[:7]}"),
    ],
    ids=["cut in two", "whole in each", "only its beginning", "its beginning at the end"],
)
async def test_no_secret_is_told_in_the_pieces_of_an_answer_and_nothing_else_is_lost(opened, pieces, whole):
    """Invariant 10: each piece alone looks harmless."""
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=pieces, gate=gate)) as host, asyncio.TaskGroup() as group:
        group.create_task(set_after(host, gate))
        told = await run(host)
    deltas = [line["text"] for line in told if line["type"] == "text_delta"]
    assert len(deltas) == 2
    assert "".join(deltas) == whole
    assert SECRET not in json.dumps(told)
    numbers = [line["seq"] for line in told if "seq" in line]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_no_secret_is_told_in_calls_results_or_the_result(opened):
    leaking = asks(tool_call("a", "shell", json.dumps({"command": f"make {SECRET}"})), text=f"With {SECRET}.")
    async with opened(leaking, says(f"Made with {SECRET}."), mode=PermissionMode.UNRESTRICTED) as host:
        told = await run(host)
    assert SECRET not in json.dumps(told)
    assert {"call_requested", "call_finished", "message", "result"} <= {line["type"] for line in told}
    requested = next(line for line in told if line["type"] == "call_requested")
    assert json.loads(requested["call"]["arguments"]) == {"command": "make [secret password]"}
    assert told[-1]["text"] == "With [secret password].\n\nMade with [secret password]."
    assert host.commands == [f"make {SECRET}"]


async def test_the_numbers_of_every_run_have_no_gap_where_text_is_held_back(opened):
    async with opened(ASKING, says("Made."), mode=PermissionMode.UNRESTRICTED) as host:
        told = await run(host)
    runs: dict[str, list[int]] = {}
    for line in told:
        if "seq" in line:
            runs.setdefault(line["run_id"], []).append(line["seq"])
    assert len(runs) == 2
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in runs.values())
