"""What every TranscriptStore promises; run on SQLite in a file and in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.agents import Audience, PermissionMode, QueueMode
from core.contracts.errors import ConversationBusy, InvalidInput, NotFound, StaleClaim
from core.contracts.events import MessageStored, RunFinished, TextDelta, UsageReported
from core.contracts.ids import AgentId, ConversationId, RunId, TurnId
from core.contracts.ledger import CallState
from core.contracts.messages import Role, TextPart
from core.contracts.runs import RunStatus, StopReason, Usage
from core.contracts.store import ConversationChange
from tests.core.stores.samples import (
    AGENT,
    CONVERSATION,
    RUN,
    START,
    World,
    agent,
    approval,
    as_row,
    assistant_message,
    call,
    conversation,
    events,
    open_world,
    prompt,
    run_end,
    run_start,
    seed,
    step,
    tool_message,
    tool_return,
    turn,
    user_message,
)


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        yield opened


async def test_an_agent_comes_back_as_it_was_stored(world: World):
    await world.stores.transcripts.insert_agent(agent())
    assert await world.stores.transcripts.agent(AGENT) == agent()


async def test_two_agents_cannot_have_one_name(world: World):
    await world.stores.transcripts.insert_agent(agent())
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.insert_agent(agent(agent_id="agent-2"))
    assert await world.stores.transcripts.agents() == (agent(),)


async def test_agents_come_by_name(world: World):
    for name in ("mike", "alice", "zoe"):
        await world.stores.transcripts.insert_agent(agent(name, agent_id=f"agent-{name}"))
    assert [found.name for found in await world.stores.transcripts.agents()] == ["alice", "mike", "zoe"]


async def test_an_update_replaces_an_agent_but_for_its_creation_time(world: World):
    await world.stores.transcripts.insert_agent(agent())
    changed = replace(agent("renamed"), permission_mode=PermissionMode.STRICT, created_at=START + timedelta(days=1))
    await world.stores.transcripts.update_agent(changed)
    assert await world.stores.transcripts.agent(AGENT) == replace(changed, created_at=START)


async def test_what_does_not_exist_is_not_found(world: World):
    transcripts = world.stores.transcripts
    nobody, nowhere = AgentId("agent-x"), ConversationId("conv-x")
    for missing in (
        transcripts.agent(nobody),
        transcripts.update_agent(agent(agent_id=nobody)),
        transcripts.conversation(nowhere),
        transcripts.update_conversation(conversation(nowhere)),
        transcripts.state(nowhere),
        transcripts.claim(nowhere),
        transcripts.mark_prompt_stale(nowhere, "why"),
        transcripts.run(RunId("run-x")),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_a_conversation_comes_back_as_it_was_stored(world: World):
    await world.stores.transcripts.insert_agent(agent())
    await world.stores.transcripts.insert_conversation(conversation())
    assert await world.stores.transcripts.conversation(CONVERSATION) == conversation()


async def test_a_conversation_of_no_agent_is_refused(world: World):
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.insert_conversation(conversation())


async def test_updating_a_conversation_leaves_its_epoch_alone(world: World):
    claim = await seed(world)
    changed = replace(conversation(), title="New", permission_mode=None, audience=Audience(), epoch=77)
    await world.stores.transcripts.update_conversation(changed)
    assert await world.stores.transcripts.conversation(CONVERSATION) == replace(changed, epoch=claim.epoch)


async def test_the_newest_conversations_come_first_without_hidden_ones(world: World):
    await world.stores.transcripts.insert_agent(agent())
    for number in range(4):
        at = START + timedelta(minutes=number)
        await world.stores.transcripts.insert_conversation(conversation(f"conv-{number}", at=at, hidden=number == 2))
    found = await world.stores.transcripts.conversations(AGENT, limit=2)
    assert [item.id for item in found] == ["conv-3", "conv-1"]


async def test_every_claim_is_newer_than_the_one_before(world: World):
    first = await seed(world)
    second = await world.stores.transcripts.claim(CONVERSATION)
    assert (first.epoch, second.epoch) == (1, 2)


async def test_no_write_under_an_older_claim_leaves_a_trace(world: World):
    old = await seed(world)
    await world.stores.transcripts.begin_run(old, run_start(RUN, user_message("hello")))
    await world.stores.transcripts.claim(CONVERSATION)
    transcripts = world.stores.transcripts
    before = await transcripts.messages(CONVERSATION)
    for write in (
        transcripts.begin_run(old, run_start("run-2", user_message("more"))),
        transcripts.append_events(old, events(RUN, 2, TextDelta(text="zombie"))),
        transcripts.finish_run(old, run_end(assistant_message(TextPart(text="zombie")), first_seq=2)),
        transcripts.append_returns(old, [tool_message("a")]),
    ):
        with pytest.raises(StaleClaim):
            await write
    assert await transcripts.messages(CONVERSATION) == before
    assert [event.seq for event in await transcripts.events(RUN)] == [1, 2]


async def test_a_claim_finishes_the_run_that_an_older_one_left_active(world: World):
    old = await seed(world)
    await world.stores.transcripts.begin_run(old, run_start(RUN, user_message("hello")))
    await world.stores.transcripts.append_events(old, events(RUN, 2, TextDelta(text="I was saying")))
    await world.stores.transcripts.claim(CONVERSATION)
    run = await world.stores.transcripts.run(RUN)
    assert (run.status, run.stop_reason, run.error) == (RunStatus.FINISHED, StopReason.ERROR, "interrupted")
    last = (await world.stores.transcripts.events(RUN))[-1]
    assert (last.seq, last.body) == (3, RunFinished(stop_reason=StopReason.ERROR, error="interrupted"))
    assert (await world.stores.transcripts.state(CONVERSATION)).active_run is None


async def test_a_claim_leaves_other_conversations_alone(world: World):
    mine, other = await seed(world), await seed(world, "conv-2")
    await world.stores.transcripts.begin_run(other, run_start("run-2"))
    await world.stores.transcripts.claim(mine.conversation_id)
    assert (await world.stores.transcripts.run(RunId("run-2"))).status is RunStatus.ACTIVE


async def test_beginning_a_run_stores_its_messages_and_tells_of_them(world: World):
    claim = await seed(world)
    new = (user_message("one"), user_message("two"))
    run, stored = await world.stores.transcripts.begin_run(claim, run_start(RUN, *new))
    assert run.status is RunStatus.ACTIVE
    assert [(row.id, row.seq, row.parts, row.run_id) for row in stored] == [
        (new[0].id, 1, new[0].parts, RUN),
        (new[1].id, 2, new[1].parts, RUN),
    ]
    assert [event.body for event in await world.stores.transcripts.events(RUN)] == [
        MessageStored(message=stored[0]),
        MessageStored(message=stored[1]),
    ]


async def test_a_known_request_returns_its_run_and_stores_nothing(world: World):
    claim = await seed(world)
    transcripts = world.stores.transcripts
    run, _ = await transcripts.begin_run(claim, run_start(RUN, user_message("hello"), request_id="r1"))
    again, stored = await transcripts.begin_run(claim, run_start("run-2", user_message("hello"), request_id="r1"))
    assert (again, stored) == (run, ())
    assert len(await transcripts.messages(CONVERSATION)) == 1
    assert await transcripts.find_run(CONVERSATION, "r1") == run
    assert await transcripts.find_run(CONVERSATION, "r2") is None


async def test_a_second_run_is_refused_while_one_is_active(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN))
    with pytest.raises(ConversationBusy) as refused:
        await world.stores.transcripts.begin_run(claim, run_start("run-2", user_message("more")))
    assert refused.value.run_id == RUN
    assert await world.stores.transcripts.messages(CONVERSATION) == ()


async def test_the_state_holds_all_that_a_run_needs(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN, user_message("hello"), with_prompt=True))
    state = await world.stores.transcripts.state(CONVERSATION)
    assert (state.agent, state.prompt, state.prompt_stale, state.active_run) == (agent(), prompt(), "", RUN)
    assert state.conversation == replace(conversation(), epoch=1)
    assert state.view == await world.stores.transcripts.messages(CONVERSATION)


async def test_a_prompt_is_stale_until_a_run_brings_a_new_one(world: World):
    claim = await seed(world)
    transcripts = world.stores.transcripts
    await transcripts.mark_prompt_stale(CONVERSATION, "the persona changed")
    assert (await transcripts.state(CONVERSATION)).prompt_stale == "the persona changed"
    new = replace(run_start(RUN), prompt=prompt("Afresh.", reason="the persona changed"))
    await transcripts.begin_run(claim, new)
    state = await transcripts.state(CONVERSATION)
    assert (state.prompt, state.prompt_stale) == (new.prompt, "")


async def test_a_run_without_a_prompt_leaves_the_stored_one(world: World):
    claim = await seed(world)
    transcripts = world.stores.transcripts
    await transcripts.begin_run(claim, run_start(RUN, with_prompt=True))
    await transcripts.finish_run(claim, run_end(None))
    await transcripts.mark_prompt_stale(CONVERSATION, "later")
    await transcripts.begin_run(claim, run_start("run-2"))
    state = await transcripts.state(CONVERSATION)
    assert (state.prompt, state.prompt_stale) == (prompt(), "later")


async def test_events_come_in_order_behind_a_number(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN))
    told = events(RUN, 1, TextDelta(text="a"), TextDelta(text="b"), UsageReported(usage=Usage(input_tokens=3)))
    await world.stores.transcripts.append_events(claim, told[:2])
    await world.stores.transcripts.append_events(claim, told[2:])
    assert await world.stores.transcripts.events(RUN) == told
    assert await world.stores.transcripts.events(RUN, after=1, limit=1) == told[1:2]


async def test_events_with_a_gap_or_twice_are_refused(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN))
    await world.stores.transcripts.append_events(claim, events(RUN, 1, TextDelta(text="a")))
    for first_seq in (1, 3):
        with pytest.raises(InvalidInput):
            await world.stores.transcripts.append_events(claim, events(RUN, first_seq, TextDelta(text="b")))
    assert len(await world.stores.transcripts.events(RUN)) == 1


async def test_a_finished_run_takes_no_more_events(world: World):
    claim = await seed(world)
    await step(world, claim, TextPart(text="bye"))
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.append_events(claim, events(RUN, 3, TextDelta(text="and")))


async def test_finishing_a_run_stores_message_usage_and_last_event(world: World):
    claim = await seed(world)
    transcripts = world.stores.transcripts
    await transcripts.begin_run(claim, run_start(RUN, user_message("hello")))
    await world.clock.advance(timedelta(seconds=5))
    message = assistant_message(TextPart(text="Hi."), cut=True)
    usage = Usage(input_tokens=10, output_tokens=2, cached_tokens=8, cost_usd=0.5)
    run, stored = await transcripts.finish_run(claim, run_end(message, first_seq=2, usage=usage))
    assert (run.status, run.stop_reason, run.usage) == (RunStatus.FINISHED, StopReason.END_TURN, usage)
    assert stored == replace(as_row(message), seq=2, created_at=START + timedelta(seconds=5))
    assert [event.body for event in await transcripts.events(RUN, after=1)] == [
        MessageStored(message=stored),
        RunFinished(stop_reason=StopReason.END_TURN),
    ]


async def test_finishing_a_finished_run_changes_nothing(world: World):
    claim = await seed(world)
    transcripts = world.stores.transcripts
    await transcripts.begin_run(claim, run_start(RUN))
    first = await transcripts.finish_run(claim, run_end(assistant_message(TextPart(text="one"))))
    again = await transcripts.finish_run(claim, run_end(assistant_message(TextPart(text="two"))))
    assert again == first
    assert len(await transcripts.messages(CONVERSATION)) == 1


async def test_a_run_may_end_with_nothing_to_keep(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN))
    _, stored = await world.stores.transcripts.finish_run(claim, run_end(None, stop_reason=StopReason.ERROR))
    assert stored is None
    assert await world.stores.transcripts.messages(CONVERSATION) == ()


async def test_a_run_cannot_end_without_its_last_event(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN))
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.finish_run(claim, replace(run_end(None), events=()))
    assert (await world.stores.transcripts.run(RUN)).status is RunStatus.ACTIVE


async def test_the_calls_of_a_step_wait_in_the_ledger_in_its_order(world: World):
    claim = await seed(world)
    await step(world, claim, TextPart(text="Let me see."), call("b"), call("a"))
    records = await world.stores.ledger.calls(RUN)
    assert [(record.call, record.run_id, record.position, record.state) for record in records] == [
        (call("b"), RUN, 0, CallState.WAITING),
        (call("a"), RUN, 1, CallState.WAITING),
    ]


async def test_a_call_id_of_an_earlier_step_is_refused_as_a_whole(world: World):
    claim = await seed(world)
    await step(world, claim, call("a"))
    await world.stores.transcripts.begin_run(claim, run_start("run-2"))
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.finish_run(claim, run_end(assistant_message(call("a")), run_id="run-2"))
    assert len(await world.stores.transcripts.messages(CONVERSATION)) == 1


async def test_c38_a_call_gets_exactly_one_result(world: World):
    claim = await seed(world)
    await step(world, claim, call("a"))
    await world.stores.transcripts.append_returns(claim, [tool_message("a", "first")])
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.append_returns(claim, [tool_message("a", "second")])
    roles = [message.role for message in await world.stores.transcripts.messages(CONVERSATION)]
    assert roles == [Role.ASSISTANT, Role.TOOL]


async def test_c38_results_known_before_a_crash_are_told_once(world: World):
    claim = await seed(world)
    await step(world, claim, call("a"), call("b"), call("c"))
    await world.stores.ledger.finish_call(claim, tool_return("b", "known b"), CallState.DONE)
    await world.stores.ledger.finish_call(claim, tool_return("a", "known a"), CallState.DENIED)
    known = await world.stores.transcripts.known_returns(CONVERSATION)
    assert known == (tool_return("a", "known a"), tool_return("b", "known b"))
    await world.stores.transcripts.append_returns(claim, [tool_message("a", "known a")])
    assert await world.stores.transcripts.known_returns(CONVERSATION) == (tool_return("b", "known b"),)


async def test_a_call_is_parked_while_its_approval_is_open(world: World):
    await seed(world)
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=None)
    await step(world, claim, call("a"), call("b"))
    await world.stores.ledger.open_approvals(claim, [approval("apr-b", "b")], None)
    assert await world.stores.transcripts.parked_calls(CONVERSATION) == (call("b"),)
    await world.stores.ledger.expire_approvals(CONVERSATION, START + timedelta(hours=25))
    assert await world.stores.transcripts.parked_calls(CONVERSATION) == ()


async def test_messages_come_in_order_behind_a_number(world: World):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start(RUN, *[user_message(str(n)) for n in range(5)]))
    page = await world.stores.transcripts.messages(CONVERSATION, after_seq=2, limit=2)
    assert [message.seq for message in page] == [3, 4]


async def test_the_runs_of_a_turn_come_oldest_first(world: World):
    await seed(world)
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=None)
    for run_id in ("run-b", "run-a"):
        await world.stores.transcripts.begin_run(claim, run_start(run_id))
        await world.stores.transcripts.finish_run(claim, run_end(None, run_id=run_id))
        await world.clock.advance(timedelta(seconds=1))
    assert [run.id for run in await world.stores.transcripts.runs_of_turn(TurnId("turn-1"))] == ["run-b", "run-a"]
    assert await world.stores.transcripts.runs_of_turn(TurnId("turn-9")) == ()


async def test_a_turns_usage_is_the_sum_of_its_runs(world: World):
    await seed(world)
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=None)
    usages = (Usage(input_tokens=10, output_tokens=1, cost_usd=0.25), Usage(input_tokens=5, estimated=True))
    for number, usage in enumerate(usages):
        await world.stores.transcripts.begin_run(claim, run_start(f"run-{number}"))
        await world.stores.transcripts.finish_run(claim, run_end(None, run_id=f"run-{number}", usage=usage))
    total = await world.stores.transcripts.usage_since(TurnId("turn-1"))
    assert total == Usage(input_tokens=15, output_tokens=1, cost_usd=0.25, estimated=True)
    assert await world.stores.transcripts.usage_since(TurnId("turn-x")) == Usage()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"paused": True},
        {"permission_mode": PermissionMode.UNRESTRICTED},
        {"queue_mode": QueueMode.INTERRUPT},
        {"paused": True, "permission_mode": PermissionMode.ASK},
    ],
)
async def test_a_change_sets_what_it_names_and_nothing_else(world: World, change):
    claim = await seed(world)
    await world.stores.transcripts.change_conversation(CONVERSATION, ConversationChange(**change))
    expected = replace(conversation(), epoch=claim.epoch, **change)
    assert await world.stores.transcripts.conversation(CONVERSATION) == expected


async def test_a_pause_is_taken_back_by_a_change(world: World):
    await seed(world)
    for paused in (True, False):
        await world.stores.transcripts.change_conversation(CONVERSATION, ConversationChange(paused=paused))
        assert (await world.stores.transcripts.conversation(CONVERSATION)).paused is paused


async def test_a_change_of_a_conversation_that_does_not_exist_is_not_found(world: World):
    await seed(world)
    with pytest.raises(NotFound):
        await world.stores.transcripts.change_conversation(ConversationId("conv-x"), ConversationChange(paused=True))
    assert not (await world.stores.transcripts.conversation(CONVERSATION)).paused
