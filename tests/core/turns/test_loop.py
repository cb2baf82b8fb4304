"""The one loop: plain answers, tools, limits, cancel, crashes, headless."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.errors import ModelRejected, ModelUnreachable
from core.contracts.ids import CallId
from core.contracts.messages import ReturnOutcome, Role, ToolCall
from core.contracts.models import FinishReason
from core.contracts.runs import StopReason, TurnOutcome
from core.contracts.tools import Access
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.turns.outcomes import OUTCOMES, outcome_of
from core.turns.services import TurnLimits, TurnResult
from tests.core.turns.workbench import RecordingTool, workbench

FREE = PermissionMode.UNRESTRICTED


def shell(call_id: str, command: str) -> ToolCall:
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


async def test_a_plain_answer_ends_the_turn_with_its_text():
    async with workbench(ScriptedModel([says("Hel", "lo")])) as bench:
        result = await bench.run(await bench.begin())
        assert result == TurnResult(outcome=TurnOutcome.COMPLETED, text="Hello")


async def test_a_tool_call_runs_between_two_steps_and_its_return_is_the_next_input():
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "ls"), text="Looking."), says("Done.")])
    async with workbench(model, tool, mode=FREE) as bench:
        result = await bench.run(await bench.begin())
        assert result == TurnResult(outcome=TurnOutcome.COMPLETED, text="Looking.\n\nDone.")
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.OK]
    last = model.requests[1].messages
    assert [m.role for m in last] == [Role.USER, Role.ASSISTANT, Role.TOOL]


async def test_each_request_is_the_one_before_plus_a_tail():
    """Invariant 4."""
    model = ScriptedModel([asks(shell("a", "ls")), asks(shell("b", "pwd")), says("Done.")])
    async with workbench(model, RecordingTool(), mode=FREE) as bench:
        await bench.run(await bench.begin())
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.system == before.system
        assert after.tools == before.tools
        assert after.messages[: len(before.messages)] == before.messages


async def test_two_shell_calls_of_a_step_never_overlap_and_keep_their_order():
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "one"), shell("b", "two")), says("ok")])
    async with workbench(model, tool, mode=FREE) as bench:
        await bench.run(await bench.begin())
        assert tool.most_running == 1
        assert tool.calls == ["a", "b"]


async def test_calls_that_do_not_conflict_run_beside_each_other():
    gate = asyncio.Event()
    tool = RecordingTool(name="peek", reach=lambda arguments: Access(free=True), gate=gate)
    model = ScriptedModel([asks(tool_call("a", "peek"), tool_call("b", "peek")), says("ok")])
    async with workbench(model, tool) as bench:
        running = asyncio.create_task(bench.run(await bench.begin()))
        async with asyncio.timeout(60):
            while tool.running < 2:
                await asyncio.sleep(0)
        gate.set()
        await running
        assert [r.call_id for r in await bench.returns()] == ["a", "b"]


async def test_headless_denies_what_would_be_asked_and_the_model_goes_on():
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "rm -rf x")), says("I could not.")])
    async with workbench(model, tool) as bench:
        result = await bench.run(await bench.begin(interactive=False))
        assert result == TurnResult(outcome=TurnOutcome.COMPLETED, text="I could not.")
        (denied,) = await bench.returns()
        assert denied.outcome is ReturnOutcome.DENIED
        assert "nobody can approve" in denied.parts[0].text
    assert tool.calls == []


async def test_staying_silent_ends_the_turn_without_another_step():
    model = ScriptedModel([asks(tool_call("a", "stay_silent", '{"reason":"not for me"}'))])
    async with workbench(model) as bench:
        result = await bench.run(await bench.begin())
        assert isinstance(result, TurnResult)
        assert result.outcome is TurnOutcome.SILENT
        assert await bench.backend.pending_calls(bench.conversation.id) == ()


async def test_an_empty_answer_is_an_error_notice_not_silence():
    async with workbench(ScriptedModel([says("  \n")])) as bench:
        result = await bench.run(await bench.begin())
        assert result.outcome is TurnOutcome.EMPTY
        assert OUTCOMES[result.outcome].notice


async def test_a_cut_answer_is_kept_and_marked():
    """C33 F."""
    model = ScriptedModel([ScriptedStep(pieces=("The answer is",), finish=FinishReason.LENGTH)])
    async with workbench(model) as bench:
        result = await bench.run(await bench.begin())
        assert result == TurnResult(outcome=TurnOutcome.CUT, text="The answer is")
        last = (await bench.backend.list_messages(bench.conversation.id))[-1]
        assert last.cut


async def test_calls_that_stay_unusable_end_the_turn_after_three_steps():
    """C33 E: ten cut calls in a row are not played ten times."""
    cut = ToolCall(id=CallId("x"), name="shell", arguments="{}", fault="output limit reached, send a smaller piece")
    steps = [asks(ToolCall(id=CallId(f"x{n}"), name=cut.name, arguments="{}", fault=cut.fault)) for n in range(10)]
    tool = RecordingTool()
    model = ScriptedModel(steps)
    async with workbench(model, tool, mode=FREE) as bench:
        result = await bench.run(await bench.begin())
        assert result.outcome is TurnOutcome.ERROR
        assert len(model.requests) == 3
    assert tool.calls == []


async def test_a_sibling_with_good_arguments_runs_beside_a_faulty_call():
    """C30."""
    bad = ToolCall(id=CallId("bad"), name="shell", arguments="{}", fault="not JSON")
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(bad, shell("good", "ls")), says("ok")]), tool, mode=FREE) as bench:
        result = await bench.run(await bench.begin())
        assert result.text == "ok"
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.ERROR, ReturnOutcome.OK]
    assert tool.calls == ["good"]


async def test_an_unknown_tool_is_answered_with_the_names_there_are():
    async with workbench(ScriptedModel([asks(tool_call("a", "shel")), says("ok")]), RecordingTool()) as bench:
        await bench.run(await bench.begin())
        (answer,) = await bench.returns()
        assert answer.outcome is ReturnOutcome.ERROR
        assert "shell" in answer.parts[0].text


async def test_the_step_limit_ends_a_turn_that_would_go_on_for_ever():
    steps = [asks(shell(f"c{n}", "ls")) for n in range(10)]
    async with workbench(ScriptedModel(steps), RecordingTool(), mode=FREE, limits=TurnLimits(steps=4)) as bench:
        result = await bench.run(await bench.begin())
        assert result.outcome is TurnOutcome.LIMIT
        assert await bench.backend.pending_calls(bench.conversation.id) == ()


async def test_cancel_during_a_model_step_keeps_what_was_said():
    gate = asyncio.Event()
    model = ScriptedModel([ScriptedStep(pieces=("Once upon", " a time"), gate=gate)])
    async with workbench(model) as bench:
        running = asyncio.create_task(bench.run(await bench.begin()))
        async with asyncio.timeout(60):
            while not model.requests:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
        bench.cancel.set()
        result = await running
        assert result == TurnResult(outcome=TurnOutcome.CANCELLED, text="Once upon")


async def test_cancel_during_a_tool_ends_it_and_stores_that_it_was_cancelled():
    tool = RecordingTool(gate=asyncio.Event())
    async with workbench(ScriptedModel([asks(shell("a", "sleep"))]), tool, mode=FREE) as bench:
        running = asyncio.create_task(bench.run(await bench.begin()))
        async with asyncio.timeout(60):
            await tool.started.wait()
        bench.cancel.set()
        result = await running
        assert result.outcome is TurnOutcome.CANCELLED
        assert tool.running == 0
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.CANCELLED]


async def test_a_call_that_was_running_when_the_worker_died_is_settled_and_never_repeated():
    """Invariant 3 and the crash half of C23."""
    tool = RecordingTool(gate=asyncio.Event())
    model = ScriptedModel([asks(shell("a", "pay")), says("I do not know whether it was paid.")])
    async with workbench(model, tool, mode=FREE) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.loop.run(work))
        async with asyncio.timeout(60):
            await tool.started.wait()
        # The next worker claims while the first still hangs: as after a kill, nobody stored a result.
        again = await bench.take_up(work.turn.id)
        result = await bench.run(again)
        assert result.text.startswith("I do not know")
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.UNKNOWN]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert tool.calls == ["a"]


async def test_a_failing_model_is_tried_again_and_the_answer_comes_once():
    model = ScriptedModel([ModelUnreachable("reset"), ModelUnreachable("reset"), says("Here.")])
    async with workbench(model) as bench:
        running = asyncio.create_task(bench.run(await bench.begin()))
        while not running.done():
            await asyncio.to_thread(lambda: None)
            if bench.clock.sleeping:
                await bench.clock.advance(timedelta(seconds=5))
        assert (await running).text == "Here."
    assert len(model.requests) == 3


async def test_a_refused_key_is_not_retried_and_ends_in_a_visible_error():
    model = ScriptedModel([ModelRejected("invalid api key", status=401)])
    async with workbench(model) as bench:
        result = await bench.run(await bench.begin())
        assert result.outcome is TurnOutcome.ERROR
        assert len(model.requests) == 1


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_stop_reason_has_a_rule(reason):
    outcome = outcome_of(reason)
    assert outcome is None or outcome in OUTCOMES


@pytest.mark.parametrize("outcome", [o for o in TurnOutcome if o not in {TurnOutcome.COMPLETED, TurnOutcome.SILENT}])
def test_every_other_outcome_says_something_to_the_person(outcome):
    assert OUTCOMES[outcome].notice
