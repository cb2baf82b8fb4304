"""Invariant 2: one active run per conversation, over all processes."""

import asyncio

import pytest

from core.contracts.agents import Audience, PermissionMode
from core.contracts.errors import ConversationBusy, StaleClaim
from core.contracts.events import RunFinished
from core.contracts.ledger import CallState
from core.contracts.messages import ReturnOutcome, Role, TextPart, visible_text
from core.contracts.runs import RunStatus, StopReason, UserInput
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from tests.acceptance.invariants.chat_host import chat_host
from tests.core.turns.workbench import RecordingTool, workbench


def said(text):
    return UserInput(parts=(TextPart(text=text),))


async def test_a_second_run_is_refused_while_one_is_active():
    gate = asyncio.Event()
    model = ScriptedModel([ScriptedStep(pieces=("slow", "ly"), gate=gate)])
    async with workbench(model) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        run = await bench.backend.start_run(claim, said("one"), tools=(), request_id="1")
        with pytest.raises(ConversationBusy):
            await bench.backend.start_run(claim, said("two"), tools=(), request_id="2")
        gate.set()
        async with asyncio.timeout(60):
            last = [event.body async for event in bench.backend.events(run.id)][-1]

        assert last == RunFinished(stop_reason=StopReason.END_TURN)
        words = [visible_text(message.parts) for message in await bench.backend.list_messages(bench.conversation.id)]
        assert words == ["one", "slowly"]
    assert len(model.requests) == 1


async def test_of_many_starts_at_once_one_becomes_active():
    model = ScriptedModel([ScriptedStep(pieces=("a", "b"), gate=asyncio.Event())])
    async with workbench(model) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        starts = [bench.backend.start_run(claim, said(f"{n}"), tools=(), request_id=f"{n}") for n in range(5)]
        outcomes = await asyncio.gather(*starts, return_exceptions=True)

        assert sum(isinstance(outcome, ConversationBusy) for outcome in outcomes) == 4
        assert len(await bench.backend.list_messages(bench.conversation.id)) == 1


async def test_the_same_request_twice_is_one_run():
    model = ScriptedModel([says("hello")])
    async with workbench(model) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        first = await bench.backend.start_run(claim, said("hi"), tools=(), request_id="same")
        second = await bench.backend.start_run(claim, said("hi"), tools=(), request_id="same")

        assert first.id == second.id
    assert len(model.requests) == 1


async def test_a_process_that_lost_its_claim_stores_nothing_any_more(tmp_path):
    """Two hosts on one database: the newer claim ends the older one's run, whose answer never arrives."""
    gate = asyncio.Event()
    slow = ScriptedModel([ScriptedStep(pieces=("from ", "the dead"), gate=gate)])
    async with chat_host(tmp_path, slow) as old, chat_host(tmp_path, ScriptedModel([says("from the living")])) as new:
        conversation = await old.backend.create_conversation(old.agent.id, Audience())
        old_claim = await old.backend.claim(conversation.id)
        lost = await old.backend.start_run(old_claim, said("one"), tools=(), request_id="1")
        async with asyncio.timeout(60):
            while not slow.requests:
                await asyncio.sleep(0)

        claim = await new.backend.claim(conversation.id)
        assert (await new.backend.get_run(lost.id)).status is RunStatus.FINISHED
        run = await new.backend.start_run(claim, said("two"), tools=(), request_id="2")
        async with asyncio.timeout(60):
            assert [event async for event in new.backend.events(run.id)]
            gate.set()
            assert [event async for event in old.backend.events(lost.id)]
        with pytest.raises(StaleClaim):
            await old.backend.start_run(old_claim, said("three"), tools=(), request_id="3")

        messages = await new.backend.list_messages(conversation.id)
        assert [visible_text(m.parts) for m in messages] == ["one", "two", "from the living"]
        assert [m.role for m in messages].count(Role.ASSISTANT) == 1


async def test_a_worker_that_lost_its_claim_changes_nothing_when_its_tool_ends_at_last(tmp_path):
    """Taken for dead, it was only slow: what the next worker settled stays as it is."""
    gate = asyncio.Event()
    slow, free = RecordingTool(gate=gate), PermissionMode.UNRESTRICTED
    first_model = ScriptedModel([asks(tool_call("a", "shell")), says("from the dead")])
    second_model = ScriptedModel([says("I do not know.")])
    async with (
        chat_host(tmp_path, first_model, slow, mode=free) as old,
        chat_host(tmp_path, second_model, RecordingTool(), mode=free) as new,
    ):
        working = asyncio.create_task(old.says("pay"))
        async with asyncio.timeout(60):
            await slow.started.wait()
        conversation = await new.conversation_of()
        await new.worker.advance(conversation)
        gate.set()
        async with asyncio.timeout(60):
            await working

        (record,) = await new.stores.ledger.calls_of_turn((await new.stores.ledger.latest_turn(conversation)).id)
        assert record.state is CallState.UNKNOWN
        assert [answer.outcome for answer in await new.returns()] == [ReturnOutcome.UNKNOWN]
        assert visible_text((await new.transcript())[-1].parts) == "I do not know."
    assert len(first_model.requests) == 1
