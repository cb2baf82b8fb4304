"""Calls that conflict are kept apart, seen while one of them is held in the middle."""

import asyncio

from core.contracts.agents import PermissionMode
from core.models.scripted import ScriptedModel, asks, says, tool_call
from tests.core.turns.workbench import RecordingTool, workbench


def shell(call_id, command):
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


async def test_a_shell_call_does_not_begin_while_an_earlier_one_of_its_step_runs():
    gate = asyncio.Event()
    tool = RecordingTool(gate=gate)
    model = ScriptedModel([asks(shell("a", "one"), shell("b", "two")), says("ok")])
    async with workbench(model, tool, mode=PermissionMode.UNRESTRICTED) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.run(work))
        async with asyncio.timeout(60):
            await tool.started.wait()
        # The store answers in order, so whatever a second call needs of it has been done after these.
        for _ in range(50):
            await bench.stores.ledger.turn(work.turn.id)
        assert tool.calls == ["a"]
        gate.set()
        await running
    assert tool.calls == ["a", "b"]
    assert tool.most_running == 1


async def test_shell_calls_of_two_conversations_on_one_workspace_do_not_overlap():
    gate = asyncio.Event()
    tool = RecordingTool(gate=gate)
    model = ScriptedModel([asks(shell("a", "one")), asks(shell("b", "two")), says("ok"), says("ok")])
    async with workbench(model, tool, mode=PermissionMode.UNRESTRICTED) as bench:
        first_work = await bench.begin()
        first = asyncio.create_task(bench.run(first_work))
        async with asyncio.timeout(60):
            await tool.started.wait()
        bench.conversation = await bench.backend.create_conversation(bench.agent.id, bench.conversation.audience)
        second = asyncio.create_task(bench.run(await bench.begin()))
        async with asyncio.timeout(60):
            while len(model.requests) < 2:
                await asyncio.sleep(0)
        for _ in range(50):
            await bench.stores.ledger.turn(first_work.turn.id)
        assert tool.calls == ["a"]
        gate.set()
        await asyncio.gather(first, second)
    assert tool.calls == ["a", "b"]
    assert tool.most_running == 1
