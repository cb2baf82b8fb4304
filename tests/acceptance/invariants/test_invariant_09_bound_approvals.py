"""Invariant 9: an approval is bound to one call and to what was shown, and is decided once, by those who may."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.addresses import PressBody
from core.contracts.messages import ReturnOutcome
from core.contracts.permissions import ApprovalState, Decision
from core.models.scripted import ScriptedModel, asks, says, tool_call
from tests.acceptance.invariants.chat_host import GUEST, OWNER, chat, chat_host
from tests.core.turns.workbench import RecordingTool


def shell(call_id, command):
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


def yes(approval):
    return Decision(approve=True, by=approval.requester, by_name="Alice")


async def open_approval(host):
    (approval,) = await host.stores.ledger.open_approvals_of()
    return approval


async def test_a_press_releases_the_shown_call_and_no_equal_one(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "make x"), shell("b", "make x")), says("ok")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("make it twice")
        await host.presses("1: Approve")

        assert tool.calls == ["a"]
        assert (await open_approval(host)).call_id == "b"


async def test_the_same_command_asks_again_the_next_time(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "make x")), says("ok"), asks(shell("b", "make x")), says("ok")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("make it")
        await host.presses("Approve")
        await host.says("once more")
        assert tool.calls == ["a"]
        assert (await open_approval(host)).call_id == "b"


async def test_what_is_shown_is_the_whole_call(tmp_path):
    command = "echo " + "x" * 500 + " && rm -rf everything"
    async with chat_host(tmp_path, ScriptedModel([asks(shell("a", command))]), RecordingTool()) as host:
        await host.says("clean up")
        (card,) = [message for message in host.seen_in() if message.buttons]
        assert command in card.text


async def test_a_decision_on_another_text_than_the_stored_one_changes_nothing(tmp_path):
    tool = RecordingTool()
    async with chat_host(tmp_path, ScriptedModel([asks(shell("a", "make")), says("ok")]), tool) as host:
        await host.says("go")
        approval = await open_approval(host)
        decided = await host.stores.ledger.decide(
            approval.id,
            yes(approval),
            ApprovalState.APPROVED,
            hash_shown="0" * 64,
            grant=None,
        )
        await host.settle()
        assert not decided.won
        assert (await open_approval(host)).state is ApprovalState.OPEN
    assert tool.calls == []


async def test_many_presses_at_once_are_one_decision(tmp_path):
    """Whatever the order: one wins, and an approval and a denial are never both in force."""
    tool = RecordingTool()
    async with chat_host(tmp_path, ScriptedModel([asks(shell("a", "make")), says("ok")]), tool) as host:
        await host.says("go")
        approval = await open_approval(host)
        states = [ApprovalState.APPROVED, ApprovalState.DENIED] * 4
        decided = await asyncio.gather(
            *(
                host.stores.ledger.decide(
                    approval.id,
                    replace(yes(approval), approve=state is ApprovalState.APPROVED),
                    state,
                    hash_shown=approval.hash,
                    grant=None,
                )
                for state in states
            )
        )
        await host.settle()

        winners = [state for state, outcome in zip(states, decided, strict=True) if outcome.won]
        assert len(winners) == 1
        assert {outcome.approval.state for outcome in decided} == set(winners)
        assert len(await host.returns()) == 1
    assert tool.calls == (["a"] if winners == [ApprovalState.APPROVED] else [])


async def test_who_may_not_decide_decides_nothing(tmp_path):
    tool = RecordingTool()
    async with chat_host(tmp_path, ScriptedModel([asks(shell("a", "make")), says("ok")]), tool) as host:
        await host.says("go", who=GUEST)
        told = await host.presses("Approve", who=GUEST)
        assert "may not" in told
        assert (await open_approval(host)).state is ApprovalState.OPEN
    assert tool.calls == []


async def test_a_press_from_a_chat_where_nobody_was_asked_decides_nothing(tmp_path):
    """A button's token, sent from elsewhere by somebody who may decide."""
    tool = RecordingTool()
    async with chat_host(tmp_path, ScriptedModel([asks(shell("a", "make")), says("ok")]), tool) as host:
        await host.says("go")
        card = next(message for message in host.seen_in() if message.buttons)
        forged = PressBody(token=card.buttons["Approve"], card=card.external_id)
        await host.arrives(forged, where=chat("elsewhere"), who=OWNER)
        await host.settle()
        assert (await open_approval(host)).state is ApprovalState.OPEN
    assert tool.calls == []


async def test_silence_is_a_denial(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "make")), says("Nobody answered.")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("go")
        await host.passes(timedelta(hours=24, seconds=1))

        (answer,) = await host.returns()
        assert answer.outcome is ReturnOutcome.DENIED
        assert "timed out" in answer.parts[0].text
        assert host.texts_in()[-1] == "Nobody answered."
    assert tool.calls == []


async def test_a_press_after_the_deadline_is_too_late_even_when_nothing_has_expired_it_yet(tmp_path):
    tool = RecordingTool()
    async with chat_host(tmp_path, ScriptedModel([asks(shell("a", "make")), says("ok")]), tool) as host:
        await host.says("go")
        await host.clock.advance(timedelta(hours=25))
        host.bells.rung.clear()
        assert "Too late" in await host.presses("Approve")
    assert tool.calls == []


@pytest.mark.parametrize(("label", "ran"), [("Approve", ["a"]), ("Deny", [])])
async def test_a_question_outlives_the_process_that_asked_it(tmp_path, label, ran):
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a", "make")), says("After the restart.")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("go")
        channel, clock = host.channel, host.clock
    async with chat_host(tmp_path, model, tool, clock=clock, channel=channel) as host:
        await host.presses(label)
        assert host.texts_in()[-1] == "After the restart."
    assert tool.calls == ran
