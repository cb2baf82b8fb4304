"""What people say into a running turn: where it enters, and that no crash loses or doubles it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.errors import StoreUnavailable
from core.contracts.messages import Message, Role, TextPart, ToolCall, visible_text
from core.contracts.runs import TurnOutcome
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.turns.loop import TurnLoop
from core.turns.services import Parked, TurnLimits, TurnResult, TurnWork
from tests.core.turns.dying import Dying
from tests.core.turns.workbench import RecordingTool, Workbench, workbench

FREE = PermissionMode.UNRESTRICTED


def shell(call_id: str) -> ToolCall:
    return tool_call(call_id, "shell", '{"command":"run"}')


class Recorded:
    """Steering on a record that outlives its workers, as rows do."""

    def __init__(self, *waiting: str) -> None:
        self.waiting = list(waiting)
        self.record: dict[int, list[str]] = {}
        self.asked: list[int] = []

    async def has_entered(self, step: int) -> bool:
        return step in self.record

    async def take(self, step: int, *, more: bool) -> tuple[TextPart, ...]:
        self.asked.append(step)
        if more and self.waiting:
            self.record.setdefault(step, []).extend(self.waiting)
            self.waiting.clear()
        return tuple(TextPart(text=text) for text in self.record.get(step, []))


async def said_by_people(bench: Workbench) -> list[str]:
    messages = await bench.backend.list_messages(bench.conversation.id)
    return [visible_text(message.parts) for message in messages if message.role is Role.USER]


async def roles(bench: Workbench) -> list[Role]:
    return [message.role for message in await bench.backend.list_messages(bench.conversation.id)]


def last(messages: tuple[Message, ...]) -> str:
    return visible_text(messages[-1].parts)


async def test_a_message_enters_behind_the_returns_of_the_step_that_was_running():
    model = ScriptedModel([asks(shell("a")), says("Both done.")])
    async with workbench(model, RecordingTool(), mode=FREE) as bench:
        bench.steering = Recorded("and y, please")
        assert (await bench.run(await bench.begin())).text == "Both done."
        assert await roles(bench) == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
    assert last(model.requests[1].messages) == "and y, please"


async def test_without_a_tool_boundary_nothing_enters():
    steering = Recorded("wait")
    async with workbench(ScriptedModel([says("Done.")])) as bench:
        bench.steering = steering
        await bench.run(await bench.begin())
    assert steering.waiting == ["wait"]


async def test_every_boundary_takes_what_came_since_the_one_before():
    steering = Recorded()

    def then(text: str, step):
        def played(request):
            steering.waiting.append(text)
            return step

        return played

    script = [then("one", asks(shell("a"))), then("two", asks(shell("b"))), then("three", says("Done."))]
    async with workbench(ScriptedModel(script), RecordingTool(), mode=FREE) as bench:
        bench.steering = steering
        await bench.run(await bench.begin())
        assert await said_by_people(bench) == ["go on", "one", "two"]
    assert steering.waiting == ["three"]


async def test_nothing_enters_over_calls_that_wait_for_people():
    """It enters where the turn goes on, with the decision's results."""
    steering = Recorded("are you there?")
    model = ScriptedModel([asks(shell("a")), says("Yes.")])
    async with workbench(model, RecordingTool()) as bench:
        bench.steering = steering
        work = await bench.begin()
        assert isinstance(await bench.run(work), Parked)
        assert (steering.asked, steering.waiting) == ([], ["are you there?"])
        await bench.decide((await bench.open_approvals())[0], approve=True)
        assert (await bench.run(await bench.take_up(work.turn.id))).text == "Yes."
        assert await roles(bench) == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]


CRASHES = {
    "before the step that ended was counted": ("ledger", "add_progress", False),
    "before anything was on record": ("ledger", "add_progress", True),
    "before a result was stored": ("ledger", "finish_call", False),
    "before the run began": ("backend", "start_run", False),
    "when the run had begun": ("backend", "start_run", True),
}


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("moment", CRASHES)
async def test_no_crash_loses_a_message_that_enters_or_lets_it_in_twice(moment, steps):
    port, name, behind = CRASHES[moment]
    steering = Recorded()

    def heard(number: int):
        def played(request):
            steering.waiting.append(f"more {number}")
            return asks(shell(f"c{number}")) if number < 5 else says("Done.")

        return played

    model, tool = ScriptedModel([heard(number) for number in range(1, 7)]), RecordingTool()
    async with workbench(model, tool, mode=FREE) as bench:
        bench.steering = steering
        services = bench.loop._services
        dying = Dying(getattr(services, port), name, behind=behind, passes=steps)
        work = await bench.begin()
        async with asyncio.timeout(60):
            with pytest.RaisesGroup(StoreUnavailable, allow_unwrapped=True, flatten_subgroups=True):
                await TurnLoop(replace(services, **{port: dying})).run(work)
        await bench.backend.__aexit__(None, None, None)
        result = await bench.run(await bench.take_up(work.turn.id))
        assert result.outcome is TurnOutcome.COMPLETED
        told = [text for text in await said_by_people(bench) if text != "go on"]
        assert told == [text for step in sorted(steering.record) for text in steering.record[step]]
        assert sorted(told + steering.waiting) == sorted(set(told + steering.waiting))
        assert set(told) >= {"more 1", "more 2", "more 3"}
    assert sorted(tool.calls) == sorted(set(tool.calls))


async def dies_before_its_second_run(bench: Workbench, work: TurnWork) -> None:
    """Let the steering be on record, and the worker die before the step it enters with begins."""
    services = bench.loop._services
    backend = Dying(services.backend, "start_run", passes=1)
    async with asyncio.timeout(60):
        with pytest.raises(StoreUnavailable):
            await TurnLoop(replace(services, backend=backend)).run(work)


async def test_what_had_entered_before_a_crash_goes_in_and_is_stopped_with_its_turn():
    """It is no longer queued, so a stop must not let it vanish."""
    model = ScriptedModel([asks(shell("a")), ScriptedStep(pieces=("par", "tial"), gate=asyncio.Event())])
    async with workbench(model, RecordingTool(), mode=FREE) as bench:
        bench.steering = Recorded("and y")
        work = await bench.begin()
        await dies_before_its_second_run(bench, work)
        bench.cancel.set()
        result = await bench.run(await bench.take_up(work.turn.id))
        assert result.outcome is TurnOutcome.CANCELLED
        assert await said_by_people(bench) == ["go on", "and y"]


async def test_what_had_entered_before_a_crash_goes_in_whatever_the_limit_has_become():
    model = ScriptedModel([asks(shell("a")), says("Both.")])
    async with workbench(model, RecordingTool(), mode=FREE) as bench:
        bench.steering = Recorded("and y")
        work = await bench.begin()
        await dies_before_its_second_run(bench, work)
        loop = TurnLoop(replace(bench.loop._services, limits=TurnLimits(steps=1)))
        assert (await loop.run(await bench.take_up(work.turn.id))).text == "Both."
        assert await said_by_people(bench) == ["go on", "and y"]


@pytest.mark.parametrize(("limits", "outcome"), [(TurnLimits(steps=1), TurnOutcome.LIMIT), (None, TurnOutcome.SILENT)])
async def test_a_turn_that_ends_at_a_boundary_leaves_waiting_messages_alone(limits, outcome):
    steering = Recorded("and y")
    calls = [shell("a")] if limits else [tool_call("s", "stay_silent", '{"reason":"not for me"}')]
    async with workbench(ScriptedModel([asks(*calls)]), RecordingTool(), mode=FREE, limits=limits) as bench:
        bench.steering = steering
        assert (await bench.run(await bench.begin())).outcome is outcome
    assert (steering.asked, steering.waiting) == ([], ["and y"])


async def test_a_stop_leaves_waiting_messages_alone():
    steering, tool = Recorded("and y"), RecordingTool(gate=asyncio.Event())
    async with workbench(ScriptedModel([asks(shell("a"))]), tool, mode=FREE) as bench:
        bench.steering = steering
        async with asyncio.timeout(60):
            running = asyncio.create_task(bench.run(await bench.begin()))
            await tool.started.wait()
            bench.cancel.set()
            assert await running == TurnResult(outcome=TurnOutcome.CANCELLED, text="")
    assert (steering.asked, steering.waiting) == ([], ["and y"])
