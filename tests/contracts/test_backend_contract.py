"""What every `Backend` promises of agents and runs, checked on every one that `backend_harnesses` opens."""

from __future__ import annotations

import asyncio

import pytest

from core.contracts.agents import AgentSpec, Audience, ModelSettings, PermissionMode
from core.contracts.errors import (
    ApprovalPending,
    ConversationBusy,
    InvalidInput,
    MemoryRefused,
    ModelRejected,
    ModelUnreachable,
    NotFound,
    StaleClaim,
)
from core.contracts.events import ApprovalRequested, CallRequested, MessageStored, RunFinished, TextDelta, UsageReported
from core.contracts.ids import AgentId, CallId, ConversationId, RunId
from core.contracts.ledger import CallState
from core.contracts.messages import ReturnOutcome, Role, TextPart, text_return, visible_text
from core.contracts.runs import ApprovalInput, RunStatus, StopReason, Usage, UserInput
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from tests.contracts.backend_harnesses import BOUND_SECONDS, HARNESSES, SPEC, BackendWorld, say

LS, PWD = tool_call("a", "shell", '{"command":"ls"}'), tool_call("b", "shell", '{"command":"pwd"}')


def ok(call_id: str):
    return text_return(CallId(call_id), f"result of {call_id}", ReturnOutcome.OK)


@pytest.fixture(params=HARNESSES, ids=list(HARNESSES))
def opened(request, tmp_path):
    """Give a function that opens a world for a script."""

    def open_world(*steps):
        return HARNESSES[request.param](tmp_path, ScriptedModel(steps))

    return open_world


def bodies(events, kind):
    return [event.body for event in events if isinstance(event.body, kind)]


async def until_asked(world: BackendWorld) -> None:
    """Wait until the model has the request and has said its first piece."""
    async with asyncio.timeout(BOUND_SECONDS):
        while not world.model.requests:
            await asyncio.sleep(0.001)
        for _ in range(10):
            await asyncio.sleep(0)


async def test_an_agent_is_found_by_id_and_name_and_its_memory_exists(opened):
    async with opened() as world:
        assert await world.backend.get_agent(world.agent.id) == world.agent
        assert await world.backend.find_agent("lodger") == world.agent
        assert await world.backend.find_agent("nobody") is None
        assert (await world.memory.log(world.agent.memory_id))[0].author == "lodger"


async def test_a_name_is_taken_once(opened):
    async with opened() as world:
        with pytest.raises(InvalidInput):
            await world.backend.create_agent(SPEC)


async def test_initial_memory_that_breaks_the_rules_makes_no_agent(opened):
    async with opened() as world:
        spec = AgentSpec(name="second", model=SPEC.model, memory_files=(("ARCHIVE.md", "old things"),))
        with pytest.raises(MemoryRefused):
            await world.backend.create_agent(spec)
        assert await world.backend.find_agent("second") is None


async def test_an_update_replaces_all_but_identity_and_memory(opened):
    async with opened() as world:
        model = ModelSettings(name="other", model="scripted/other")
        spec = AgentSpec(name="lodger", model=model, permission_mode=PermissionMode.STRICT, workspace="/elsewhere")
        updated = await world.backend.update_agent(world.agent.id, spec)
        assert updated == await world.backend.get_agent(world.agent.id)
        assert (updated.model, updated.workspace) == (model, "/elsewhere")
        assert (updated.id, updated.memory_id) == (world.agent.id, world.agent.memory_id)


async def test_what_does_not_exist_is_not_found(opened):
    async with opened() as world:
        for missing in (
            world.backend.get_agent(AgentId("agent-x")),
            world.backend.update_agent(AgentId("agent-x"), SPEC),
            world.backend.get_conversation(ConversationId("conv-x")),
            world.backend.claim(ConversationId("conv-x")),
            world.backend.pending_calls(ConversationId("conv-x")),
            world.backend.get_run(RunId("run-x")),
            world.events(RunId("run-x")),
        ):
            with pytest.raises(NotFound):
                await missing


async def test_a_conversation_comes_back_with_its_audience(opened):
    async with opened() as world:
        audience = Audience(words=frozenset({"everyone", "person:p1"}))
        made = await world.backend.create_conversation(world.agent.id, audience, hidden=True)
        assert await world.backend.get_conversation(made.id) == made
        assert (made.audience, made.hidden) == (audience, True)


async def test_a_step_stores_its_input_and_its_answer(opened):
    async with opened(says("Hel", "lo")) as world:
        events = await world.step(say("hi"))
        user, answer = await world.backend.list_messages(world.conversation_id)
        assert (user.role, visible_text(user.parts)) == (Role.USER, "hi")
        assert (answer.role, visible_text(answer.parts), answer.cut) == (Role.ASSISTANT, "Hello", False)
        assert [body.message for body in bodies(events, MessageStored)] == [user, answer]
        assert "".join(body.text for body in bodies(events, TextDelta)) == "Hello"


async def test_messages_come_in_pages(opened):
    async with opened(says("one"), says("two")) as world:
        await world.step(say("a"))
        await world.step(say("b"))
        whole = await world.backend.list_messages(world.conversation_id)
        first = await world.backend.list_messages(world.conversation_id, limit=3)
        rest = await world.backend.list_messages(world.conversation_id, after_seq=first[-1].seq)
        assert (*first, *rest) == whole
        assert [message.seq for message in whole] == [1, 2, 3, 4]


async def test_the_usage_of_a_step_is_reported_and_kept(opened):
    usage = Usage(input_tokens=10, output_tokens=3, cached_tokens=4)
    async with opened(ScriptedStep(pieces=("ok",), usage=usage)) as world:
        run = await world.start(say("hi"))
        events = await world.events(run.id)
        assert bodies(events, UsageReported) == [UsageReported(usage=usage)]
        assert (await world.backend.get_run(run.id)).usage == usage


async def test_the_same_request_is_the_same_run_and_stores_nothing_twice(opened):
    async with opened(says("once")) as world:
        claim = await world.claim()
        first = await world.start(say("hi"), claim=claim, request_id="r1")
        again_at_once = await world.start(say("hi"), claim=claim, request_id="r1")
        await world.events(first.id)
        again_later = await world.start(say("something else"), claim=claim, request_id="r1")
        assert first.id == again_at_once.id == again_later.id
        assert await world.roles() == [Role.USER, Role.ASSISTANT]
        assert len(world.model.requests) == 1


async def test_two_starts_of_one_request_at_the_same_time_are_one_run(opened):
    async with opened(says("once")) as world:
        claim = await world.claim()
        starts = [world.start(say("hi"), claim=claim, request_id="r1") for _ in range(4)]
        runs = await asyncio.gather(*starts)
        await world.events(runs[0].id)
        assert len({run.id for run in runs}) == 1
        assert await world.roles() == [Role.USER, Role.ASSISTANT]


async def test_a_request_of_the_time_before_a_restart_is_still_known(opened):
    async with opened(says("once")) as world:
        first = await world.start(say("hi"), request_id="r1")
        seen = await world.events(first.id)
        async with world.restart() as again:
            second = await again.start(say("hi"), request_id="r1")
            assert second.id == first.id
            assert await again.events(second.id) == seen


@pytest.mark.parametrize(
    "step",
    [says("Hello"), asks(LS, PWD, text="Looking."), says(""), ModelRejected("no such model")],
    ids=["answer", "calls", "empty", "refused"],
)
async def test_events_count_from_one_without_gaps_and_run_finished_is_the_last_of_all(opened, step):
    async with opened(step) as world:
        run = await world.start(say("hi"))
        events = await world.events(run.id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert {event.run_id for event in events} == {run.id}
        assert len(bodies(events, RunFinished)) == 1
        assert isinstance(events[-1].body, RunFinished)
        finished = await world.backend.get_run(run.id)
        assert (finished.status, finished.stop_reason) == (RunStatus.FINISHED, events[-1].body.stop_reason)


@pytest.mark.parametrize("step", [says("a", "b", "c"), asks(LS, text="x"), ModelRejected("no")])
async def test_events_replayed_later_are_those_that_were_seen_live(opened, step):
    async with opened(step) as world:
        run = await world.start(say("hi"))
        live = await world.events(run.id)
        async with asyncio.timeout(BOUND_SECONDS):
            while world.backend._steps:
                await asyncio.sleep(0)
        assert await world.events(run.id) == live
        for after in range(len(live) + 1):
            assert await world.events(run.id, after=after) == live[after:]


async def test_a_reader_that_comes_back_gets_exactly_what_it_missed(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("Once upon", " a time"), gate=gate)) as world:
        run = await world.start(say("hi"))
        seen = await world.first_event(run.id, TextDelta)
        assert seen.body.text == "Once upon"
        gate.set()
        rest = await world.events(run.id, after=seen.seq)
        assert rest[0].seq == seen.seq + 1
        assert "".join(body.text for body in bodies(rest, TextDelta)) == " a time"
        assert isinstance(rest[-1].body, RunFinished)


async def test_any_number_of_readers_see_the_same(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "two"), gate=gate)) as world:
        run = await world.start(say("hi"))
        readers = [asyncio.create_task(world.events(run.id)) for _ in range(3)]
        await until_asked(world)
        gate.set()
        first, *others = await asyncio.gather(*readers)
        assert all(other == first for other in others)


async def test_a_reader_that_leaves_cancels_nothing(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "two"), gate=gate)) as world:
        run = await world.start(say("hi"))
        reader = asyncio.create_task(world.events(run.id))
        await until_asked(world)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        gate.set()
        assert (await world.events(run.id))[-1].body.stop_reason is StopReason.END_TURN
        answer = (await world.backend.list_messages(world.conversation_id))[-1]
        assert visible_text(answer.parts) == "onetwo"


async def test_a_conversation_has_one_active_run(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "two"), gate=gate)) as world:
        claim = await world.claim()
        run = await world.start(say("hi"), claim=claim)
        with pytest.raises(ConversationBusy) as raised:
            await world.start(say("and?"), claim=claim)
        assert raised.value.run_id == run.id
        gate.set()
        await world.events(run.id)
        assert await world.roles() == [Role.USER, Role.ASSISTANT]


async def test_a_step_that_calls_tools_ends_with_them_pending_in_order(opened):
    async with opened(asks(LS, PWD, text="Looking.")) as world:
        events = await world.step(say("hi"))
        assert bodies(events, CallRequested) == [CallRequested(call=LS), CallRequested(call=PWD)]
        assert bodies(events, ApprovalRequested) == [ApprovalRequested(calls=(LS, PWD))]
        assert events[-1].body.stop_reason is StopReason.REQUIRES_APPROVAL
        assert await world.backend.pending_calls(world.conversation_id) == (LS, PWD)


async def test_answers_follow_their_calls_and_more_parts_follow_the_answers(opened):
    async with opened(asks(LS, PWD), says("Done.")) as world:
        await world.step(say("hi"))
        await world.step(ApprovalInput(returns=(ok("a"), ok("b")), parts=(TextPart(text="and hurry"),)))
        assert await world.roles() == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER, Role.ASSISTANT]
        assert [m.role for m in world.model.requests[1].messages] == (await world.roles())[:-1]
        assert await world.backend.pending_calls(world.conversation_id) == ()


@pytest.mark.parametrize("answered", [("a",), ("a", "b", "b"), ("b", "a"), ("a", "x"), (), ("a", "b", "c")])
async def test_answers_that_are_not_exactly_those_asked_for_are_refused(opened, answered):
    async with opened(asks(LS, PWD), says("Done.")) as world:
        await world.step(say("hi"))
        with pytest.raises(InvalidInput):
            await world.start(ApprovalInput(returns=tuple(ok(call_id) for call_id in answered)))
        assert await world.roles() == [Role.USER, Role.ASSISTANT]
        await world.step(ApprovalInput(returns=(ok("a"), ok("b"))))
        assert len(world.model.requests) == 2


async def test_a_message_over_parked_calls_is_refused_and_touches_nothing(opened):
    async with opened(asks(LS, PWD), says("Done.")) as world:
        claim = await world.begin_turn()
        await world.step(say("hi"), claim=claim)
        await world.park(claim, PWD)
        with pytest.raises(ApprovalPending) as raised:
            await world.start(say("are you there?"), claim=claim)
        assert raised.value.call_ids == ("b",)
        assert await world.backend.pending_calls(world.conversation_id) == (LS, PWD)
        assert await world.roles() == [Role.USER, Role.ASSISTANT]


async def test_a_message_over_dangling_calls_settles_them_as_unknown_first(opened):
    async with opened(asks(LS, PWD), says("Where was I?")) as world:
        await world.step(say("hi"))
        async with world.restart() as again:
            await again.step(say("are you there?"))
            rows = await again.backend.list_messages(again.conversation_id)
            returns = [part for row in rows if row.role is Role.TOOL for part in row.parts]
            assert [(r.call_id, r.outcome) for r in returns] == [
                ("a", ReturnOutcome.UNKNOWN),
                ("b", ReturnOutcome.UNKNOWN),
            ]
            assert [row.role for row in rows[:5]] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER]


async def test_what_the_ledger_knows_of_a_dangling_call_is_its_result(opened):
    async with opened(asks(LS), says("ok")) as world:
        claim = await world.begin_turn()
        await world.step(say("hi"), claim=claim)
        await world.stores.ledger.finish_call(claim, ok("a"), CallState.DONE)
        async with world.restart() as again:
            await again.step(say("and?"))
            rows = await again.backend.list_messages(again.conversation_id)
            assert [row.parts for row in rows if row.role is Role.TOOL] == [(ok("a"),)]


async def test_settling_stores_results_without_a_step(opened):
    async with opened(asks(LS, PWD), says("ok")) as world:
        claim = await world.claim()
        await world.step(say("hi"), claim=claim)
        await world.backend.settle(claim, [ok("a")])
        assert await world.backend.pending_calls(world.conversation_id) == (PWD,)
        await world.backend.settle(claim, [ok("b")])
        assert len(world.model.requests) == 1
        await world.step(say("next"), claim=claim)
        assert await world.roles() == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER, Role.ASSISTANT]


@pytest.mark.parametrize("answered", [("x",), ("a", "a"), ("a", "x")])
async def test_results_for_calls_that_do_not_wait_are_refused(opened, answered):
    async with opened(asks(LS, PWD)) as world:
        claim = await world.claim()
        await world.step(say("hi"), claim=claim)
        with pytest.raises(InvalidInput):
            await world.backend.settle(claim, [ok(call_id) for call_id in answered])
        assert await world.backend.pending_calls(world.conversation_id) == (LS, PWD)


async def test_an_older_claim_writes_nothing(opened):
    async with opened(asks(LS)) as world:
        old = await world.claim()
        await world.step(say("hi"), claim=old)
        await world.claim()
        for write in (
            world.start(say("zombie"), claim=old),
            world.start(ApprovalInput(returns=(ok("a"),)), claim=old),
            world.start(ApprovalInput(returns=(ok("of another time"),)), claim=old),
            world.backend.settle(old, [ok("a")]),
            world.backend.settle(old, [ok("of another time")]),
            world.backend.settle(old, []),
        ):
            with pytest.raises(StaleClaim):
                await write
        assert await world.roles() == [Role.USER, Role.ASSISTANT]


async def test_an_older_claim_is_told_so_even_while_the_newer_one_works(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "two"), gate=gate)) as world:
        old = await world.claim()
        run = await world.start(say("hi"))
        with pytest.raises(StaleClaim):
            await world.start(say("zombie"), claim=old)
        gate.set()
        assert (await world.events(run.id))[-1].body.stop_reason is StopReason.END_TURN


async def test_a_step_that_lost_its_claim_leaves_no_answer(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("zombie", " talk"), gate=gate)) as world:
        run = await world.start(say("hi"))
        reader = asyncio.create_task(world.events(run.id))
        await until_asked(world)
        await world.claim()
        gate.set()
        finished = (await reader)[-1].body
        assert (finished.stop_reason, finished.error) == (StopReason.ERROR, "interrupted")
        assert await world.roles() == [Role.USER]


async def test_cancelling_keeps_what_was_said_and_marks_it_cut(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("Once upon", " a time"), gate=gate)) as world:
        run = await world.start(say("hi"))
        await until_asked(world)
        await asyncio.gather(world.backend.cancel_run(run.id), world.backend.cancel_run(run.id))
        await world.backend.cancel_run(run.id)
        assert (await world.events(run.id))[-1].body.stop_reason is StopReason.CANCELLED
        answer = (await world.backend.list_messages(world.conversation_id))[-1]
        assert (visible_text(answer.parts), answer.cut) == ("Once upon", True)


async def test_cancelling_a_finished_run_changes_nothing(opened):
    async with opened(says("done")) as world:
        run = await world.start(say("hi"))
        live = await world.events(run.id)
        await world.backend.cancel_run(run.id)
        await world.backend.cancel_run(RunId("run-nobody-knows"))
        assert await world.events(run.id) == live
        assert (await world.backend.get_run(run.id)).stop_reason is StopReason.END_TURN


async def test_a_run_that_died_with_its_process_is_finished_by_the_next_claim(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("Once", " upon"), gate=gate), says("Again.")) as world:
        run = await world.start(say("hi"))
        await until_asked(world)
        async with world.restart() as again:
            claim = await again.claim()
            died = await again.backend.get_run(run.id)
            assert (died.status, died.stop_reason, died.error) == (
                RunStatus.FINISHED,
                StopReason.ERROR,
                "interrupted",
            )
            assert len(bodies(await again.events(run.id), RunFinished)) == 1
            await again.step(UserInput(parts=()), claim=claim)
            assert await again.roles() == [Role.USER, Role.ASSISTANT]


async def test_a_model_that_fails_for_good_is_a_finished_run_with_its_error(opened):
    async with opened(ModelRejected("invalid api key", status=401)) as world:
        run = await world.start(say("hi"))
        finished = (await world.events(run.id))[-1].body
        assert (finished.stop_reason, finished.error) == (StopReason.ERROR, "invalid api key")
        assert (await world.backend.get_run(run.id)).error == "invalid api key"
        assert await world.roles() == [Role.USER]


async def test_a_failing_model_is_tried_again_inside_the_same_run(opened):
    async with opened(ModelUnreachable("reset"), says("Here.")) as world:
        run = await world.start(say("hi"))
        async with asyncio.TaskGroup() as group:
            passing = group.create_task(world.time_passes())
            events = await world.events(run.id)
            passing.cancel()
        assert events[-1].body.stop_reason is StopReason.END_TURN
        assert await world.roles() == [Role.USER, Role.ASSISTANT]


async def test_a_call_id_that_was_used_before_becomes_a_new_one(opened):
    async with opened(asks(LS), asks(LS), says("ok")) as world:
        await world.step(say("hi"))
        await world.step(ApprovalInput(returns=(ok("a"),)))
        (second,) = await world.backend.pending_calls(world.conversation_id)
        assert second.id != LS.id
        assert second.arguments == LS.arguments
        await world.step(ApprovalInput(returns=(ok(second.id),)))
        assert await world.backend.pending_calls(world.conversation_id) == ()
