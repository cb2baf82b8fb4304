"""A turn that another worker takes up: what was reached stays reached, nothing is done or said twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.errors import StoreUnavailable
from core.contracts.messages import ReturnOutcome, Role, ToolCall, visible_text
from core.contracts.runs import StopReason, TurnOutcome
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.turns.loop import TurnLoop
from core.turns.services import Parked, TurnLimits, TurnResult, TurnWork
from tests.core.turns.workbench import PlainHost, RecordingTool, Workbench, workbench

FREE = PermissionMode.UNRESTRICTED
SILENCE = tool_call("s", "stay_silent", '{"reason":"not for me"}')


def shell(call_id: str, command: str = "run") -> ToolCall:
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


def endless() -> ScriptedStep:
    """Return a step that says something and then hangs."""
    return ScriptedStep(pieces=("par", "tial"), gate=asyncio.Event())


async def dies_in_a_step(bench: Workbench, work: TurnWork) -> None:
    """Run a turn until its model has said something, then end worker and step; nobody stores an end."""
    model = bench.backend._model
    asked = len(model.requests)
    running = asyncio.create_task(bench.loop.run(work))
    async with asyncio.timeout(60):
        while len(model.requests) == asked:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await bench.backend.__aexit__(None, None, None)


async def dies_before_the_step_counts(bench: Workbench, work: TurnWork) -> None:
    """Run a turn until a step has ended; its worker dies before it can say so to the ledger."""
    services = bench.loop._services
    loop = TurnLoop(replace(services, ledger=Uncounting(services.ledger)))
    async with asyncio.timeout(60):
        with pytest.raises(StoreUnavailable):
            await loop.run(work)


class Uncounting:
    """A ledger that dies where a step is counted."""

    def __init__(self, inner) -> None:
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def add_progress(self, *args, **more):
        raise StoreUnavailable("killed")


async def answers(bench: Workbench) -> list[str]:
    """Return what the transcript says that the agent said."""
    messages = await bench.backend.list_messages(bench.conversation.id)
    return [visible_text(message.parts) for message in messages if message.role is Role.ASSISTANT]


@pytest.mark.parametrize("crashes", [1, 2, 3])
async def test_an_answer_that_was_reached_after_crashes_is_not_given_again(crashes):
    """Each try of a step has a number, so that whoever comes next finds what an earlier one finished."""
    model = ScriptedModel([*[endless() for _ in range(crashes)], says("answer A"), says("answer B")])
    async with workbench(model, mode=FREE) as bench:
        work = await bench.begin()
        await dies_in_a_step(bench, work)
        for _ in range(crashes - 1):
            await dies_in_a_step(bench, await bench.take_up(work.turn.id))
        for _ in range(2):  # the first of them dies before it can store the end of the turn
            result = await bench.run(await bench.take_up(work.turn.id))
            assert result == TurnResult(outcome=TurnOutcome.COMPLETED, text="answer A")
        assert await answers(bench) == ["answer A"]
    assert len(model.requests) == crashes + 1


@pytest.mark.parametrize("crashes", [0, 1, 2])
async def test_a_call_that_never_started_runs_once_and_is_not_settled_as_unknown(crashes):
    """The step that asked for it was stored, but not counted."""
    model, tool = (
        ScriptedModel([*[endless() for _ in range(crashes)], asks(shell("c1")), says("Done.")]),
        RecordingTool(),
    )
    async with workbench(model, tool, mode=FREE) as bench:
        work = await bench.begin()
        turn_id = work.turn.id
        for _ in range(crashes):
            await dies_in_a_step(bench, work)
            work = await bench.take_up(turn_id)
        await dies_before_the_step_counts(bench, work)
        assert tool.calls == []
        result = await bench.run(await bench.take_up(turn_id))
        assert result == TurnResult(outcome=TurnOutcome.COMPLETED, text="Done.")
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.OK]
    assert tool.calls == ["c1"]


async def test_silence_that_was_reached_stays_silence():
    model = ScriptedModel([asks(SILENCE), says("I speak")])
    async with workbench(model) as bench:
        work = await bench.begin()
        assert (await bench.run(work)).outcome is TurnOutcome.SILENT
        again = await bench.run(await bench.take_up(work.turn.id))
        assert again == TurnResult(outcome=TurnOutcome.SILENT, text="")
    assert len(model.requests) == 1


async def test_silence_of_an_earlier_step_does_not_end_a_turn_that_went_on():
    """A refused wish for silence is none: its turn goes on after a crash as without one."""
    model = ScriptedModel([asks(tool_call("s", "stay_silent", "[]")), endless(), says("I speak")])
    async with workbench(model) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.loop.run(work))
        async with asyncio.timeout(60):
            while len(model.requests) < 2:
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await bench.backend.__aexit__(None, None, None)
        assert (await bench.run(await bench.take_up(work.turn.id))).text == "I speak"


async def test_the_limit_that_was_reached_stays_the_end():
    model, tool = ScriptedModel([asks(shell("a")), asks(shell("b")), says("beyond")]), RecordingTool()
    async with workbench(model, tool, mode=FREE, limits=TurnLimits(steps=2)) as bench:
        work = await bench.begin()
        assert (await bench.run(work)).outcome is TurnOutcome.LIMIT
        assert (await bench.run(await bench.take_up(work.turn.id))).outcome is TurnOutcome.LIMIT
    assert tool.calls == ["a", "b"]
    assert len(model.requests) == 2


async def test_a_cancel_that_was_reached_between_steps_stays_the_end():
    model, tool = ScriptedModel([asks(shell("a")), says("beyond")]), RecordingTool(gate=asyncio.Event())
    async with workbench(model, tool, mode=FREE) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.run(work))
        async with asyncio.timeout(60):
            await tool.started.wait()
        bench.cancel.set()
        assert (await running).outcome is TurnOutcome.CANCELLED
        assert (await bench.run(await bench.take_up(work.turn.id))).outcome is TurnOutcome.CANCELLED
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.CANCELLED]
    assert len(model.requests) == 1


async def test_a_cancel_that_was_reached_inside_a_step_stays_the_end_and_keeps_its_text():
    model = ScriptedModel([endless(), says("beyond")])
    async with workbench(model) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.run(work))
        async with asyncio.timeout(60):
            while not model.requests:
                await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)
        bench.cancel.set()
        first = await running
        assert first == TurnResult(outcome=TurnOutcome.CANCELLED, text="par")
        assert await bench.run(await bench.take_up(work.turn.id)) == first
    assert len(model.requests) == 1


async def test_a_turn_that_is_cancelled_after_a_crash_says_so_and_names_no_error_to_people():
    model = ScriptedModel([endless(), says("beyond")])
    async with workbench(model) as bench:
        work = await bench.begin()
        await dies_in_a_step(bench, work)
        bench.cancel.set()
        result = await bench.run(await bench.take_up(work.turn.id))
        assert result.outcome is TurnOutcome.CANCELLED
    assert len(model.requests) == 1


async def test_an_interrupted_step_is_not_mistaken_for_a_model_that_failed():
    """What is repeated is the run that a newer claim found active, and nothing else."""
    model = ScriptedModel([endless(), says("fresh")])
    async with workbench(model) as bench:
        work = await bench.begin()
        await dies_in_a_step(bench, work)
        again = await bench.take_up(work.turn.id)
        first = await bench.stores.transcripts.find_run(bench.conversation.id, f"{work.turn.id}/1")
        assert first.stop_reason is StopReason.ERROR
        assert (await bench.run(again)).text == "fresh"


class ModeOfConversation(PlainHost):
    """A host that goes by what is stored for the conversation, as the real one does."""

    async def subject(self, turn, agent, conversation):
        known = await super().subject(turn, agent, conversation)
        return replace(known, mode=conversation.permission_mode or self.mode)


async def test_a_stricter_mode_that_is_set_in_a_turn_holds_from_its_next_step():
    gate = asyncio.Event()
    tool = RecordingTool(gate=gate)
    model = ScriptedModel([asks(shell("a", "first")), asks(shell("b", "second")), says("Done.")])
    async with workbench(model, tool, mode=FREE) as bench:
        loop = TurnLoop(replace(bench.loop._services, host=ModeOfConversation(FREE)))
        stricter = replace(bench.conversation, permission_mode=PermissionMode.STRICT)
        running = asyncio.create_task(loop.run(await bench.begin()))
        async with asyncio.timeout(60):
            await tool.started.wait()
            await bench.stores.transcripts.update_conversation(stricter)
            gate.set()
            await running
    assert tool.calls == ["a"]


async def test_text_of_steps_before_a_crash_is_part_of_the_answer():
    """The worker hands over what earlier steps said; the loop says it first, and once."""
    model, tool = ScriptedModel([asks(shell("a"), text="First."), endless(), says("Last.")]), RecordingTool()
    async with workbench(model, tool, mode=FREE) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.loop.run(work))
        async with asyncio.timeout(60):
            while len(model.requests) < 2:
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        again = await bench.take_up(work.turn.id)
        again.texts.extend((await answers(bench))[: again.turn.steps])
        assert (await bench.run(again)).text == "First.\n\nLast."


@pytest.mark.parametrize("counted", [False, True])
async def test_a_last_step_that_is_told_again_is_said_once(counted):
    last = [asks(shell("b"), text="Second."), says("Last.")]
    model, tool = ScriptedModel([asks(shell("a"), text="First."), *last]), RecordingTool()
    async with workbench(model, tool, mode=FREE) as bench:
        work = await bench.begin()
        if counted:
            assert (await bench.run(work)).text == "First.\n\nSecond.\n\nLast."
        else:
            await dies_before_the_step_counts(bench, work)
        again = await bench.take_up(work.turn.id)
        again.texts.extend((await answers(bench))[: again.turn.steps])
        assert (await bench.run(again)).text == "First.\n\nSecond.\n\nLast."
    assert tool.calls == ["a", "b"]
    assert len(model.requests) == 3


async def test_a_question_that_was_not_counted_is_asked_once_and_answered_once():
    model, tool = ScriptedModel([asks(shell("a"), text="May I?"), says("Made.")]), RecordingTool()
    async with workbench(model, tool) as bench:
        work = await bench.begin()
        await dies_before_the_step_counts(bench, work)
        assert isinstance(await bench.run(await bench.take_up(work.turn.id)), Parked)
        (approval,) = await bench.open_approvals()
        await bench.decide(approval, approve=True)
        assert (await bench.run(await bench.take_up(work.turn.id))).text == "Made."
    assert tool.calls == ["a"]
