"""Invariant 3: transcripts only grow, and every call has one result directly behind it, whatever happened."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.backends.local.view import valid_view
from core.contracts.agents import PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.messages import Message, ReturnOutcome, Role, TextPart, text_return
from core.contracts.models import FinishReason
from core.contracts.runs import UserInput
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from tests.acceptance.invariants.chat_host import chat_host
from tests.acceptance.invariants.transcripts import faults_of
from tests.core.turns.workbench import RecordingTool, workbench

FREE = PermissionMode.UNRESTRICTED


def shell(call_id, command="make"):
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


async def test_calls_of_a_turn_that_was_given_up_are_settled_before_the_next_input(tmp_path):
    """The worker failed again and again and ended the turn; the calls of its last step had no answer."""
    broken = RecordingTool(gate=asyncio.Event())
    model = ScriptedModel([asks(shell("a"), shell("b")), says("I do not know what became of it.")])
    async with chat_host(tmp_path, model, broken, mode=FREE) as host:
        dying = asyncio.create_task(host.says("build it"))
        await until(broken.started.is_set)
        conversation = await host.conversation_of()
        await host.worker.give_up(conversation, "failed five times")
        await host.says("and now?")

        rows = await host.transcript()
        assert [answer.call_id for answer in await host.returns()] == ["a", "b"]
        assert {answer.outcome for answer in await host.returns()} == {ReturnOutcome.UNKNOWN}
        assert faults_of(rows) == []
        assert faults_of(model.requests[-1].messages) == []
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    assert broken.calls == ["a"]


async def test_a_result_that_is_known_is_used_when_its_turn_died_before_it_was_sent_on(tmp_path):
    quick, hanging = RecordingTool(), RecordingTool(name="slow", gate=asyncio.Event())
    model = ScriptedModel([asks(shell("a"), tool_call("b", "slow")), says("a was made.")])
    async with chat_host(tmp_path, model, quick, hanging, mode=FREE) as host:
        dying = asyncio.create_task(host.says("build it"))
        await until(hanging.started.is_set)
        await host.worker.give_up(await host.conversation_of(), "failed five times")
        await host.says("and now?")

        outcomes = {answer.call_id: answer.outcome for answer in await host.returns()}
        assert outcomes == {"a": ReturnOutcome.OK, "b": ReturnOutcome.UNKNOWN}
        assert faults_of(await host.transcript()) == []
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    assert quick.calls + hanging.calls == ["a", "b"]


async def test_a_worker_that_dies_in_a_tool_leaves_a_call_that_the_next_one_settles(tmp_path):
    """Two hosts on one database: the second takes over what the first was doing."""
    hanging = RecordingTool(gate=asyncio.Event())
    fresh = RecordingTool()
    first_model = ScriptedModel([asks(shell("a", "pay"))])
    second_model = ScriptedModel([says("I do not know whether it was paid.")])
    async with (
        chat_host(tmp_path, first_model, hanging, mode=FREE) as first,
        chat_host(tmp_path, second_model, fresh, mode=FREE) as second,
    ):
        dying = asyncio.create_task(first.says("pay"))
        await until(hanging.started.is_set)
        await second.worker.advance(await second.conversation_of())

        assert [answer.outcome for answer in await second.returns()] == [ReturnOutcome.UNKNOWN]
        assert faults_of(second_model.requests[-1].messages) == []
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    assert hanging.calls == ["a"]
    assert fresh.calls == []


async def test_a_cancelled_tool_and_a_cancelled_answer_leave_a_valid_transcript(tmp_path):
    tool = RecordingTool(gate=asyncio.Event())
    model = ScriptedModel(
        [
            asks(shell("a"), shell("b")),
            ScriptedStep(pieces=("Half an", " answer"), gate=asyncio.Event()),
            says("Whole."),
        ]
    )
    async with chat_host(tmp_path, model, tool, mode=FREE) as host:
        first = asyncio.create_task(host.says("build"))
        await until(tool.started.is_set)
        host.worker.wake_cancel(await host.conversation_of())
        await first
        second = asyncio.create_task(host.says("tell me"))
        await until(lambda: len(model.requests) == 2)
        host.worker.wake_cancel(await host.conversation_of())
        await second
        await host.says("again")

        assert {answer.outcome for answer in await host.returns()} == {ReturnOutcome.CANCELLED}
        assert [faults_of(request.messages) for request in model.requests] == [[], [], []]
        assert faults_of(await host.transcript()) == []


async def test_rows_that_were_stored_never_change(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel(
        [
            says("One."),
            asks(shell("a")),
            says("Two."),
            ScriptedStep(pieces=("Cut",), finish=FinishReason.LENGTH),
            says("Three."),
        ]
    )
    seen = []
    async with chat_host(tmp_path, model, tool, mode=FREE) as host:
        for words in ("first", "second", "third"):
            await host.says(words)
            seen.append(await host.transcript())
    async with chat_host(tmp_path, ScriptedModel([says("Four.")])) as host:
        await host.says("after a restart")
        seen.append(await host.transcript())

    for before, after in pairwise(seen):
        assert len(after) > len(before)
        assert after[: len(before)] == before
    assert [message.seq for message in seen[-1]] == list(range(1, len(seen[-1]) + 1))


async def test_call_ids_that_a_model_uses_again_stay_apart():
    """Some models count their calls from 0 in every step."""
    model = ScriptedModel([asks(shell("call_0")), asks(shell("call_0")), says("done")])
    async with workbench(model, RecordingTool(), mode=FREE) as bench:
        await bench.run(await bench.begin())

        ids = [answer.call_id for answer in await bench.returns()]
        assert len(set(ids)) == len(ids) == 2
    assert faults_of(model.requests[-1].messages) == []


async def test_a_call_without_any_stored_result_is_still_answered_in_the_view():
    """The host asked the backend for a new step and settled nothing itself."""
    model = ScriptedModel([asks(shell("a")), says("go on")])
    async with workbench(model, RecordingTool()) as bench:
        claim = await bench.backend.claim(bench.conversation.id)
        for number, words in enumerate(("do it", "never mind")):
            run = await bench.backend.start_run(
                claim, UserInput(parts=(TextPart(text=words),)), tools=bench.tools.schemas, request_id=f"{number}"
            )
            async with asyncio.timeout(60):
                assert [event async for event in bench.backend.events(run.id)]

        assert [answer.outcome for answer in await bench.returns()] == [ReturnOutcome.UNKNOWN]
    assert faults_of(model.requests[1].messages) == []


def message(number, role, *parts):
    now = FakeClock().now()
    return Message(id=f"m{number}", conversation_id="c", seq=number, role=role, parts=parts, created_at=now)


ROWS = st.one_of(
    st.just(message(0, Role.USER, TextPart(text="hello"))),
    st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(
        lambda ids: message(0, Role.ASSISTANT, TextPart(text="yes"), *(shell(call_id) for call_id in ids))
    ),
    st.sampled_from("abcx").map(lambda call_id: message(0, Role.TOOL, text_return(call_id, "done", ReturnOutcome.OK))),
)


@given(st.lists(ROWS, max_size=12))
def test_whatever_the_rows_are_the_view_is_valid_and_grows_with_them(rows):
    """Rows that a crash, a cut or an old bug left behind are never changed; the view repairs them."""
    numbered = tuple(replace(row, id=f"m{number}", seq=number) for number, row in enumerate(rows, start=1))
    view = valid_view(numbered)

    assert view == () or faults_of(view) == []
    assert valid_view(numbered) == view
    said = [row for row in view if row.role is not Role.TOOL]
    assert said == [row for row in numbered if row in said]
