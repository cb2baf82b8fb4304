"""Invariant 1: the backend performs one model step per run and never executes a host's tool."""

import asyncio

import pytest

from core.contracts.errors import InvalidInput
from core.contracts.events import ApprovalRequested, RunFinished
from core.contracts.messages import ReturnOutcome, TextPart, text_return
from core.contracts.runs import ApprovalInput, RunStatus, StopReason, UserInput
from core.models.scripted import ScriptedModel, asks, says, tool_call
from tests.core.turns.workbench import RecordingTool, workbench

HELLO = UserInput(parts=(TextPart(text="hello"),))


async def finished(bench, run):
    async with asyncio.timeout(60):
        return [event.body async for event in bench.backend.events(run.id)]


async def test_a_step_that_asks_for_tools_ends_its_run_and_nothing_is_executed():
    tool = RecordingTool()
    model = ScriptedModel([asks(tool_call("a", "shell"), tool_call("b", "shell")), says("never asked for")])
    async with workbench(model, tool) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        run = await bench.backend.start_run(claim, HELLO, tools=bench.tools.schemas, request_id="1")
        bodies = await finished(bench, run)

        assert bodies[-1] == RunFinished(stop_reason=StopReason.REQUIRES_APPROVAL)
        assert [call.id for body in bodies if isinstance(body, ApprovalRequested) for call in body.calls] == ["a", "b"]
        assert (await bench.backend.get_run(run.id)).status is RunStatus.FINISHED
        assert [call.id for call in await bench.backend.pending_calls(bench.conversation.id)] == ["a", "b"]
    assert len(model.requests) == 1
    assert tool.calls == []


async def test_the_hosts_results_are_the_next_input_and_begin_the_next_run():
    model = ScriptedModel([asks(tool_call("a", "shell")), says("done")])
    async with workbench(model, RecordingTool()) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        first = await bench.backend.start_run(claim, HELLO, tools=bench.tools.schemas, request_id="1")
        await finished(bench, first)
        answer = ApprovalInput(returns=(text_return("a", "as told by the host", ReturnOutcome.OK),))
        second = await bench.backend.start_run(claim, answer, tools=bench.tools.schemas, request_id="2")
        bodies = await finished(bench, second)

        assert bodies[-1] == RunFinished(stop_reason=StopReason.END_TURN)
        assert second.id != first.id
    assert model.requests[1].messages[-1].parts == answer.returns


@pytest.mark.parametrize("answered", [(), ("a",), ("b", "a"), ("a", "b", "b"), ("a", "c")])
async def test_an_answer_that_does_not_settle_every_call_once_starts_no_step(answered):
    model = ScriptedModel([asks(tool_call("a", "shell"), tool_call("b", "shell"))])
    async with workbench(model, RecordingTool()) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        await finished(bench, await bench.backend.start_run(claim, HELLO, tools=bench.tools.schemas, request_id="1"))
        returns = tuple(text_return(call_id, "x", ReturnOutcome.OK) for call_id in answered)
        with pytest.raises(InvalidInput):
            await bench.backend.start_run(
                claim, ApprovalInput(returns=returns), tools=bench.tools.schemas, request_id="2"
            )
    assert len(model.requests) == 1


async def test_a_whole_turn_takes_one_model_step_a_run():
    model = ScriptedModel([asks(tool_call("a", "stay_here")), asks(tool_call("b", "stay_here")), says("done")])
    async with workbench(model) as bench:
        work = await bench.begin()
        await bench.run(work)
        runs = {
            message.run_id for message in await bench.backend.list_messages(bench.conversation.id) if message.run_id
        }

        assert len(runs) == len(model.requests) == 3
