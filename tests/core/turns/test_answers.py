"""Approvals inside a turn: parked, decided, expired, apart, and checked again before they run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.errors import ApprovalPending
from core.contracts.ledger import CallState
from core.contracts.messages import ReturnOutcome, TextPart
from core.contracts.permissions import Action, ApprovalState
from core.contracts.runs import TurnOutcome, TurnState, UserInput
from core.contracts.tools import Access
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.permissions.rules import make_rule
from core.turns.services import Parked
from tests.core.turns.workbench import RecordingTool, workbench


def shell(call_id: str, command: str):
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


async def test_a_doubtful_call_parks_the_turn_and_runs_once_after_an_approval():
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "make it")), says("Made.")]), tool) as bench:
        work = await bench.begin()
        assert isinstance(await bench.run(work), Parked)
        assert tool.calls == []
        assert (await bench.stores.ledger.turn(work.turn.id)).state is TurnState.PARKED
        (approval,) = await bench.open_approvals()
        assert await bench.decide(approval, approve=True)
        result = await bench.run(await bench.take_up(work.turn.id))
        assert result.text == "Made."
    assert tool.calls == ["a"]


async def test_a_denial_is_a_return_that_names_who_and_why():
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "rm x")), says("Then not.")]), tool) as bench:
        work = await bench.begin()
        await bench.run(work)
        (approval,) = await bench.open_approvals()
        await bench.decide(approval, approve=False, feedback="keep x")
        assert (await bench.run(await bench.take_up(work.turn.id))).text == "Then not."
        (answer,) = await bench.returns()
        assert answer.outcome is ReturnOutcome.DENIED
        assert "Alice" in answer.parts[0].text
        assert "keep x" in answer.parts[0].text
    assert tool.calls == []


async def test_identical_waiting_calls_are_kept_apart():
    """C21 D: one click releases one of two equal calls."""
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "make x"), shell("b", "make x")), says("ok")]), tool) as bench:
        work = await bench.begin()
        await bench.run(work)
        first, second = await bench.open_approvals()
        await bench.decide(first, approve=True)
        assert isinstance(await bench.run(await bench.take_up(work.turn.id)), Parked)
        assert tool.calls == [first.call_id]
        assert [a.id for a in await bench.open_approvals()] == [second.id]


async def test_an_approved_call_waits_for_an_earlier_conflicting_one_that_is_undecided():
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "first"), shell("b", "second")), says("ok")]), tool) as bench:
        work = await bench.begin()
        await bench.run(work)
        first, second = await bench.open_approvals()
        await bench.decide(second, approve=True)
        assert isinstance(await bench.run(await bench.take_up(work.turn.id)), Parked)
        assert tool.calls == []
        await bench.decide(first, approve=True)
        await bench.run(await bench.take_up(work.turn.id))
    assert tool.calls == ["a", "b"]


async def test_nobody_deciding_is_an_expiry_and_never_a_run():
    """C24 A and D: the text differs from a denial, and another way to the same goal asks again."""
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "rm -rf build")), asks(shell("b", "find build -delete"))])
    async with workbench(model, tool) as bench:
        work = await bench.begin()
        await bench.run(work)
        await bench.clock.advance(timedelta(hours=25))
        assert isinstance(await bench.run(await bench.take_up(work.turn.id)), Parked)
        (answer,) = await bench.returns()
        assert "timed out, no decision" in answer.parts[0].text
        (again,) = await bench.open_approvals()
        assert again.call_id == "b"
    assert tool.calls == []


async def test_a_click_after_the_deadline_does_not_win():
    """C24 B."""
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "rm x"))]), tool) as bench:
        await bench.run(await bench.begin())
        (approval,) = await bench.open_approvals()
        await bench.clock.advance(timedelta(hours=25))
        assert not await bench.decide(approval, approve=True)
    assert tool.calls == []


async def test_the_first_of_two_decisions_wins():
    """C21 A, B and C."""
    async with workbench(ScriptedModel([asks(shell("a", "x"))]), RecordingTool()) as bench:
        await bench.run(await bench.begin())
        (approval,) = await bench.open_approvals()
        won = await asyncio.gather(*(bench.decide(approval, approve=n % 2 == 0) for n in range(6)))
        assert sum(won) == 1


async def test_a_decision_on_something_else_than_was_shown_does_not_count():
    """Invariant 9: the decision is bound to the hash."""
    async with workbench(ScriptedModel([asks(shell("a", "x"))]), RecordingTool()) as bench:
        await bench.run(await bench.begin())
        (approval,) = await bench.open_approvals()
        assert not await bench.decide(replace(approval, hash="0" * 64), approve=True)
        assert (await bench.stores.ledger.approval(approval.id)).state is ApprovalState.OPEN


async def test_a_rule_that_appears_while_a_call_waits_stops_it_at_execution():
    """Invariant 8: guards and deny rules are checked again when an approved call starts."""
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "rm x")), says("ok")]), tool) as bench:
        work = await bench.begin()
        await bench.run(work)
        (approval,) = await bench.open_approvals()
        await bench.decide(approval, approve=True)
        services = bench.loop._services
        denying = type(services.policy)([make_rule(tool="shell", action=Action.DENY, match="rm *")])
        bench.loop._services = replace(services, policy=denying)
        await bench.run(await bench.take_up(work.turn.id))
        (answer,) = await bench.returns()
        assert answer.outcome is ReturnOutcome.DENIED
    assert tool.calls == []


async def test_a_user_input_over_parked_calls_is_refused():
    async with workbench(ScriptedModel([asks(shell("a", "x"))]), RecordingTool()) as bench:
        work = await bench.begin()
        await bench.run(work)
        with pytest.raises(ApprovalPending):
            await bench.backend.start_run(
                work.claim, UserInput(parts=(TextPart(text="hi"),)), tools=bench.tools.schemas, request_id="other"
            )


async def test_cancelling_a_parked_turn_answers_its_calls_and_ends_it():
    tool = RecordingTool()
    async with workbench(ScriptedModel([asks(shell("a", "x"))]), tool) as bench:
        work = await bench.begin()
        await bench.run(work)
        bench.cancel.set()
        result = await bench.run(await bench.take_up(work.turn.id))
        assert result.outcome is TurnOutcome.CANCELLED
        assert [r.outcome for r in await bench.returns()] == [ReturnOutcome.CANCELLED]
    assert tool.calls == []


async def test_a_dry_run_question_asks_even_where_the_rules_allow():
    """Memory admission's question joins the card."""

    async def doubt(call, context):
        return "this removes more than half of human.md"

    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "x"))])
    async with workbench(model, tool, mode=PermissionMode.UNRESTRICTED, doubt=doubt) as bench:
        assert isinstance(await bench.run(await bench.begin()), Parked)
        (approval,) = await bench.open_approvals()
        assert "more than half" in approval.reason


async def test_text_that_was_posted_above_a_question_is_not_part_of_the_answer_too():
    """The question is decided while another call of the step runs, so that the turn goes on without a wait."""
    tool, gate = RecordingTool(), asyncio.Event()
    peek = RecordingTool(name="peek", reach=lambda arguments: Access(free=True), gate=gate)
    model = ScriptedModel([asks(shell("a", "make it"), tool_call("b", "peek"), text="Let me."), says("Made.")])
    async with workbench(model, tool, peek) as bench:
        running = asyncio.create_task(bench.run(await bench.begin()))
        async with asyncio.timeout(60):
            await peek.started.wait()
        (approval,) = await bench.open_approvals()
        assert await bench.decide(approval, approve=True)
        gate.set()
        assert (await running).text == "Made."
    assert tool.calls == ["a"]


@pytest.mark.parametrize(
    ("by_a_person", "outcome", "state"),
    [(True, ReturnOutcome.CANCELLED, CallState.DONE), (False, ReturnOutcome.UNKNOWN, CallState.UNKNOWN)],
)
async def test_a_call_that_is_ended_is_cancelled_by_a_person_and_unknown_where_the_host_stops(
    by_a_person, outcome, state
):
    tool = RecordingTool(gate=asyncio.Event())
    model = ScriptedModel([asks(tool_call("a", "shell", '{"command":"x"}'))])
    async with workbench(model, tool, mode=PermissionMode.UNRESTRICTED) as bench:
        work = await bench.begin()
        running = asyncio.create_task(bench.run(work))
        async with asyncio.timeout(60):
            await tool.started.wait()
            if by_a_person:
                bench.cancel.set()
            else:
                running.cancel()
            await asyncio.wait([running])
        (record,) = await bench.stores.ledger.calls_of_turn(work.turn.id)
        assert (record.result.outcome, record.state) == (outcome, state)
    assert tool.running == 0
