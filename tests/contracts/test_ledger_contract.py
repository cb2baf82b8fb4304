"""What every TurnLedger promises; run on SQLite in a file and in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.addresses import Removal
from core.contracts.delivery import InboxState, OutboxState
from core.contracts.errors import InvalidInput, NotFound, StaleClaim
from core.contracts.ids import AgentId, ApprovalId, CallId, PersonId, TurnId
from core.contracts.ledger import CallState, TurnEnd
from core.contracts.messages import TextPart
from core.contracts.permissions import Action, ApprovalState, Decision, DecisionScope, Grant, Verdict
from core.contracts.runs import RunStatus, TurnOutcome, TurnState
from tests.core.stores.samples import (
    ADDRESS,
    AGENT,
    CHAT,
    CONVERSATION,
    RUN,
    START,
    TURN,
    World,
    approval,
    call,
    inbound,
    open_world,
    run_start,
    seed,
    step,
    text_item,
    tool_message,
    tool_return,
    turn,
)

YES = Decision(approve=True, by=PersonId("person-1"), by_name="Alice")
NO = Decision(approve=False, by=PersonId("person-1"), by_name="Alice", feedback="not today")
RING = ("conversations", CONVERSATION)


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        yield opened


async def begin(world: World, *, live: bool = False, inbox_ids=()):
    await seed(world)
    item = text_item(f"{TURN}/1", "…") if live else None
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=inbox_ids, live=item)
    world.rung()
    return claim


async def ask(world: World, *call_ids: str):
    """Begin a turn whose step made these calls, with an open approval for each."""
    claim = await begin(world)
    await step(world, claim, *[call(call_id) for call_id in call_ids])
    await world.stores.ledger.open_approvals(claim, [approval(f"apr-{c}", c) for c in call_ids], None)
    world.rung()
    return claim


def verdict(action: Action) -> Verdict:
    return Verdict(action=action, rule="rule 1", reason="because", remember="shell: echo")


def end(outcome: TurnOutcome = TurnOutcome.COMPLETED, *outgoing) -> TurnEnd:
    return TurnEnd(outcome=outcome, outgoing=outgoing)


async def decide(world: World, approval_id: str, decision=YES, state=ApprovalState.APPROVED, **changes):
    arguments = {"hash_shown": f"hash of {approval_id.removeprefix('apr-')}", "grant": None} | changes
    return await world.stores.ledger.decide(ApprovalId(approval_id), decision, state, **arguments)


async def test_a_turn_comes_back_as_it_was_begun(world: World):
    await begin(world)
    assert await world.stores.ledger.turn(TURN) == turn()
    assert await world.stores.ledger.open_turn(CONVERSATION) == turn()
    assert await world.stores.ledger.latest_turn(CONVERSATION) == turn()
    with pytest.raises(NotFound):
        await world.stores.ledger.turn(TurnId("turn-x"))


async def test_beginning_a_turn_claims_the_conversation_and_ends_what_an_older_claim_left(world: World):
    old = await seed(world)
    await world.stores.transcripts.begin_run(old, run_start(RUN))
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=None)
    assert claim.epoch == old.epoch + 1
    assert (await world.stores.transcripts.run(RUN)).status is RunStatus.FINISHED


async def test_a_conversation_has_one_open_turn(world: World):
    claim = await begin(world)
    with pytest.raises(InvalidInput):
        await world.stores.ledger.begin_turn(turn("turn-2"), inbox_ids=(), live=None)
    await world.stores.ledger.finish_turn(claim, TURN, end())  # the refused turn did not take the claim


async def test_beginning_a_turn_takes_its_messages(world: World):
    await seed(world)
    for key in ("1", "2"):
        await world.stores.delivery.accept(inbound(key), conversation_id=CONVERSATION)
    first, second = await world.stores.delivery.queued(CONVERSATION)
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(first.id,), live=None)
    assert await world.stores.delivery.queued(CONVERSATION) == (second,)
    taken = await world.stores.delivery.taken(TURN)
    assert taken == (replace(first, state=InboxState.TAKEN, turn_id=TURN),)


async def test_a_message_that_was_withdrawn_begins_no_turn(world: World):
    await seed(world)
    await world.stores.delivery.accept(inbound("1"), conversation_id=CONVERSATION)
    (row,) = await world.stores.delivery.queued(CONVERSATION)
    await world.stores.delivery.withdraw(ADDRESS, "1")
    with pytest.raises(InvalidInput):
        await world.stores.ledger.begin_turn(turn(), inbox_ids=(row.id,), live=None)
    assert await world.stores.ledger.open_turn(CONVERSATION) is None


async def test_the_open_outbox_row_exists_before_anything_is_shown(world: World):
    await begin(world, live=True)
    row = await world.stores.delivery.outbox_row(f"{TURN}/1")
    assert (row.state, row.turn_id, row.item) == (OutboxState.LIVE, TURN, text_item(f"{TURN}/1", "…"))
    assert (await world.stores.ledger.turn(TURN)).outbox_id == f"{TURN}/1"
    assert await world.stores.delivery.outgoing(CHAT) == ()


async def test_progress_adds_up(world: World):
    claim = await begin(world)
    for _ in range(2):
        await world.stores.ledger.add_progress(claim, TURN, steps=1, active_seconds=1.5)
    stored = await world.stores.ledger.turn(TURN)
    assert (stored.steps, stored.active_seconds) == (2, 3.0)


async def test_no_write_under_an_older_claim_is_kept(world: World):
    claim = await ask(world, "a")
    await world.stores.transcripts.claim(CONVERSATION)
    ledger = world.stores.ledger
    for write in (
        ledger.add_progress(claim, TURN, steps=1, active_seconds=1),
        ledger.park_turn(claim, TURN),
        ledger.resume_turn(claim, TURN),
        ledger.finish_turn(claim, TURN, end()),
        ledger.record_verdicts(claim, TURN, [(CallId("a"), verdict(Action.ALLOW), None)]),
        ledger.open_approvals(claim, [approval("apr-2", "a")], None),
        ledger.start_call(claim, CallId("a")),
        ledger.finish_call(claim, tool_return("a"), CallState.DONE),
    ):
        with pytest.raises(StaleClaim):
            await write
    assert await ledger.turn(TURN) == turn()
    assert [record.state for record in await ledger.calls(RUN)] == [CallState.WAITING]


async def test_a_turn_parks_only_while_an_approval_is_open(world: World):
    claim = await ask(world, "a")
    assert await world.stores.ledger.park_turn(claim, TURN)
    assert (await world.stores.ledger.turn(TURN)).state is TurnState.PARKED
    await world.stores.ledger.resume_turn(claim, TURN)
    await decide(world, "apr-a")
    assert not await world.stores.ledger.park_turn(claim, TURN)
    assert (await world.stores.ledger.turn(TURN)).state is TurnState.RUNNING


async def test_finishing_a_turn_ends_all_that_belongs_to_it(world: World):
    await seed(world)
    await world.stores.delivery.accept(inbound("1"), conversation_id=CONVERSATION)
    (row,) = await world.stores.delivery.queued(CONVERSATION)
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=(row.id,), live=None)
    await step(world, claim, call("a"))
    await world.stores.ledger.open_approvals(claim, [approval("apr-a", "a")], None)
    await world.stores.ledger.finish_turn(claim, TURN, TurnEnd(outcome=TurnOutcome.ERROR, outgoing=(), error="oops"))
    stored = await world.stores.ledger.turn(TURN)
    assert (stored.state, stored.outcome, stored.error) == (TurnState.FINISHED, TurnOutcome.ERROR, "oops")
    assert await world.stores.ledger.open_turn(CONVERSATION) is None
    assert (await world.stores.ledger.approval(ApprovalId("apr-a"))).state is ApprovalState.VOID
    assert [item.state for item in await world.stores.delivery.taken(TURN)] == [InboxState.DONE]
    assert not (await decide(world, "apr-a")).won


async def test_the_answer_takes_the_open_row_and_more_rows_follow(world: World):
    claim = await begin(world, live=True)
    await world.stores.delivery.mark_visible(f"{TURN}/1", "m7")
    answers = (text_item(f"{TURN}/1", "part one"), text_item(f"{TURN}/2", "part two"))
    await world.stores.ledger.finish_turn(claim, TURN, end(TurnOutcome.COMPLETED, *answers))
    rows = await world.stores.delivery.outgoing(CHAT)
    assert [row.item for row in rows] == [replace(answers[0], external_id="m7"), answers[1]]
    assert {(row.state, row.turn_id) for row in rows} == {(OutboxState.PENDING, TURN)}
    assert world.rung() == [("outbox", CHAT)]


async def test_an_answer_without_an_open_row_is_posted(world: World):
    claim = await begin(world)
    await world.stores.ledger.finish_turn(claim, TURN, end(TurnOutcome.COMPLETED, text_item(f"{TURN}/1")))
    assert [row.item.id for row in await world.stores.delivery.outgoing(CHAT)] == [f"{TURN}/1"]


async def test_a_silent_turn_drops_the_row_that_nobody_saw(world: World):
    claim = await begin(world, live=True)
    await world.stores.ledger.finish_turn(claim, TURN, end(TurnOutcome.SILENT))
    assert (await world.stores.delivery.outbox_row(f"{TURN}/1")).state is OutboxState.DROPPED
    assert world.rung() == []


async def test_a_late_answer_is_a_message_of_its_own_and_the_preview_goes(world: World):
    claim = await begin(world, live=True)
    await world.stores.delivery.mark_visible(f"{TURN}/1", "m1")
    end = TurnEnd(outcome=TurnOutcome.COMPLETED, outgoing=(text_item("turn-1/end", "done"),), replace_live=False)
    await world.stores.ledger.finish_turn(claim, TURN, end)
    rows = [row.item for row in await world.stores.delivery.outgoing(CHAT)]
    assert [(item.id, item.external_id) for item in rows] == [("turn-1/end", None), (f"{TURN}/1", "m1")]
    assert rows[1].content == Removal()


async def test_a_late_answer_drops_a_preview_that_nobody_saw(world: World):
    claim = await begin(world, live=True)
    end = TurnEnd(outcome=TurnOutcome.COMPLETED, outgoing=(text_item("turn-1/end", "done"),), replace_live=False)
    await world.stores.ledger.finish_turn(claim, TURN, end)
    assert [row.item.id for row in await world.stores.delivery.outgoing(CHAT)] == ["turn-1/end"]


async def test_a_message_that_steers_is_taken_with_its_step(world: World):
    claim = await begin(world)
    await world.stores.delivery.accept(inbound("s1"), conversation_id=CONVERSATION)
    (row,) = await world.stores.delivery.queued(CONVERSATION)
    await world.stores.ledger.steer_turn(claim, TURN, [row.id], step=2)
    (taken,) = await world.stores.delivery.taken(TURN)
    assert (taken.event, taken.step, taken.state) == (inbound("s1"), 2, InboxState.TAKEN)
    with pytest.raises(InvalidInput):
        await world.stores.ledger.steer_turn(claim, TURN, [row.id], step=3)


async def test_a_stale_worker_steers_nothing(world: World):
    claim = await begin(world)
    await world.stores.delivery.accept(inbound("s1"), conversation_id=CONVERSATION)
    (row,) = await world.stores.delivery.queued(CONVERSATION)
    await world.stores.transcripts.claim(CONVERSATION)
    with pytest.raises(StaleClaim):
        await world.stores.ledger.steer_turn(claim, TURN, [row.id], step=2)
    assert len(await world.stores.delivery.queued(CONVERSATION)) == 1


async def test_a_preview_that_people_saw_is_not_dropped(world: World):
    claim = await begin(world, live=True)
    await world.stores.delivery.mark_visible(f"{TURN}/1", "m7")
    await world.stores.ledger.finish_turn(claim, TURN, end(TurnOutcome.SILENT))
    assert (await world.stores.delivery.outbox_row(f"{TURN}/1")).state is OutboxState.PENDING


async def test_finishing_a_turn_twice_posts_once(world: World):
    claim = await begin(world)
    for n in (1, 2):
        await world.stores.ledger.finish_turn(claim, TURN, end(TurnOutcome.COMPLETED, text_item(f"{TURN}/{n}")))
    assert [row.item.id for row in await world.stores.delivery.outgoing(CHAT)] == [f"{TURN}/1"]


async def test_the_conversation_is_rung_again_when_messages_are_queued(world: World):
    claim = await begin(world)
    await world.stores.delivery.accept(inbound("later"), conversation_id=CONVERSATION)
    world.rung()
    await world.stores.ledger.finish_turn(claim, TURN, end())
    assert world.rung() == [RING]


async def test_asking_to_stop_reaches_the_open_turn_and_rings(world: World):
    await begin(world)
    assert not await world.stores.ledger.cancel_requested(TURN)
    assert await world.stores.ledger.request_cancel(CONVERSATION, by=PersonId("person-1")) == turn()
    assert await world.stores.ledger.cancel_requested(TURN)
    assert world.rung() == [RING]


async def test_where_no_turn_is_open_nothing_can_be_stopped(world: World):
    await seed(world)
    assert await world.stores.ledger.request_cancel(CONVERSATION, by=None) is None
    assert world.rung() == []


async def test_verdicts_move_calls_that_wait(world: World):
    claim = await begin(world)
    await step(world, claim, call("a"), call("b"), call("c"))
    refusal = tool_return("b", "Denied", "denied")
    await world.stores.ledger.record_verdicts(
        claim,
        TURN,
        [
            (CallId("a"), verdict(Action.ALLOW), None),
            (CallId("b"), verdict(Action.DENY), refusal),
            (CallId("c"), verdict(Action.ASK), None),
        ],
    )
    records = await world.stores.ledger.calls(RUN)
    states = [CallState.APPROVED, CallState.DENIED, CallState.WAITING]
    assert [(record.state, record.result) for record in records] == list(
        zip(states, [None, refusal, None], strict=True)
    )
    assert [record.verdict for record in records] == [verdict(Action.ALLOW), verdict(Action.DENY), verdict(Action.ASK)]
    assert await world.stores.ledger.calls_of_turn(TURN) == records


async def test_a_second_verdict_does_not_undo_what_was_decided(world: World):
    claim = await ask(world, "a")
    await decide(world, "apr-a")
    await world.stores.ledger.record_verdicts(claim, TURN, [(CallId("a"), verdict(Action.ASK), None)])
    (record,) = await world.stores.ledger.calls(RUN)
    assert record.state is CallState.APPROVED


async def test_a_verdict_on_no_call_is_refused(world: World):
    claim = await begin(world)
    with pytest.raises(InvalidInput):
        await world.stores.ledger.record_verdicts(claim, TURN, [(CallId("x"), verdict(Action.ALLOW), None)])


async def test_only_an_approved_call_starts_and_only_once(world: World):
    claim = await ask(world, "a")
    with pytest.raises(InvalidInput):
        await world.stores.ledger.start_call(claim, CallId("a"))
    await decide(world, "apr-a")
    await world.stores.ledger.start_call(claim, CallId("a"))
    with pytest.raises(InvalidInput):
        await world.stores.ledger.start_call(claim, CallId("a"))


async def test_the_first_result_of_a_call_stays(world: World):
    claim = await ask(world, "a")
    await world.stores.ledger.finish_call(claim, tool_return("a", "first"), CallState.DONE)
    await world.stores.ledger.finish_call(claim, tool_return("a", "second"), CallState.UNKNOWN)
    (record,) = await world.stores.ledger.calls(RUN)
    assert (record.state, record.result) == (CallState.DONE, tool_return("a", "first"))


async def test_a_result_needs_a_call_and_an_end(world: World):
    claim = await ask(world, "a")
    with pytest.raises(InvalidInput):
        await world.stores.ledger.finish_call(claim, tool_return("x"), CallState.DONE)
    with pytest.raises(InvalidInput):
        await world.stores.ledger.finish_call(claim, tool_return("a"), CallState.STARTED)


async def test_unanswered_calls_are_those_of_the_last_step_without_a_message(world: World):
    claim = await begin(world)
    await step(world, claim, call("old"), run_id="run-0")
    await step(world, claim, call("b"), call("a"))
    assert [r.call.id for r in await world.stores.ledger.unanswered_calls(CONVERSATION)] == ["b", "a"]
    await world.stores.transcripts.append_returns(claim, [tool_message("b")])
    assert [r.call.id for r in await world.stores.ledger.unanswered_calls(CONVERSATION)] == ["a"]
    await step(world, claim, TextPart(text="done"), run_id="run-2")
    assert await world.stores.ledger.unanswered_calls(CONVERSATION) == ()


async def test_approvals_are_stored_with_their_card_and_ring_at_their_deadline(world: World):
    claim = await begin(world)
    await step(world, claim, call("a"), call("b"))
    sooner = replace(approval("apr-b", "b"), expires_at=START + timedelta(hours=1), created_at=START)
    await world.stores.ledger.open_approvals(claim, [approval("apr-a", "a"), sooner], text_item("card-1", "Run it?"))
    stored = await world.stores.ledger.approvals_of(TURN)
    assert stored == (replace(approval("apr-a", "a"), card_id="card-1"), replace(sooner, card_id="card-1"))
    assert [row.item.id for row in await world.stores.delivery.outgoing(CHAT)] == ["card-1"]
    due = [(item.queue, item.key, item.due_at) for item in world.rings]
    assert due[:2] == [("outbox", CHAT, START), (*RING, START + timedelta(hours=1))]


async def test_a_call_has_one_open_approval(world: World):
    claim = await ask(world, "a")
    with pytest.raises(InvalidInput):
        await world.stores.ledger.open_approvals(claim, [approval("apr-2", "a")], None)


async def test_open_approvals_can_be_listed_for_one_agent(world: World):
    await ask(world, "a", "b")
    await decide(world, "apr-a")
    for agent_id in (None, AGENT):
        assert [item.id for item in await world.stores.ledger.open_approvals_of(agent_id)] == ["apr-b"]
    assert await world.stores.ledger.open_approvals_of(AgentId("agent-x")) == ()


async def test_c21_the_first_decision_wins_and_later_ones_are_told(world: World):
    await ask(world, "a")
    world_at_first = await decide(world, "apr-a")
    late = await decide(world, "apr-a", NO, ApprovalState.DENIED)
    assert (world_at_first.won, world_at_first.approval.state) == (True, ApprovalState.APPROVED)
    assert world_at_first.approval.decision == YES
    assert (late.won, late.approval) == (False, world_at_first.approval)
    (record,) = await world.stores.ledger.calls(RUN)
    assert (record.state, record.approval) == (CallState.APPROVED, world_at_first.approval)
    assert world.rung() == [RING]


async def test_c21_a_denied_call_is_not_approved_afterwards(world: World):
    await ask(world, "a")
    assert (await decide(world, "apr-a", NO, ApprovalState.DENIED)).won
    assert not (await decide(world, "apr-a")).won
    (record,) = await world.stores.ledger.calls(RUN)
    assert record.state is CallState.WAITING  # its result is written by the turn


async def test_c21_one_decision_releases_one_of_two_equal_calls(world: World):
    await ask(world, "a", "b")
    await decide(world, "apr-a")
    states = [record.state for record in await world.stores.ledger.calls(RUN)]
    assert states == [CallState.APPROVED, CallState.WAITING]
    assert (await world.stores.ledger.approval(ApprovalId("apr-b"))).state is ApprovalState.OPEN


async def test_a_decision_on_something_else_than_was_shown_changes_nothing(world: World):
    await ask(world, "a")
    decided = await decide(world, "apr-a", hash_shown="hash of something else")
    assert (decided.won, decided.approval) == (False, approval("apr-a", "a"))
    assert world.rung() == []


async def test_arguments_that_a_person_edited_are_in_the_decision_and_leave_the_call_alone(world: World):
    await ask(world, "a")
    edited = replace(YES, edited='{"command":"echo y"}')
    decided = await decide(world, "apr-a", edited)
    assert (decided.won, decided.approval.decision) == (True, edited)
    (record,) = await world.stores.ledger.calls(RUN)
    assert (record.call, record.state) == (call("a"), CallState.APPROVED)
    assert record.approval.decision == edited


async def test_of_two_who_edit_the_first_wins_and_a_plain_approval_after_it_changes_nothing(world: World):
    await ask(world, "a")
    first = replace(YES, edited='{"command":"echo y"}')
    assert (await decide(world, "apr-a", first)).won
    for late in (replace(YES, edited='{"command":"echo z"}'), YES):
        decided = await decide(world, "apr-a", late)
        assert (decided.won, decided.approval.decision) == (False, first)


async def test_a_decision_behind_the_deadline_finds_the_approval_expired(world: World):
    await ask(world, "a")
    await world.clock.advance(timedelta(hours=24))
    decided = await decide(world, "apr-a")
    assert (decided.won, decided.approval.state) == (False, ApprovalState.EXPIRED)
    (record,) = await world.stores.ledger.calls(RUN)
    assert record.state is CallState.WAITING
    assert world.rung() == [RING]


async def test_deciding_nothing_is_not_found(world: World):
    with pytest.raises(NotFound):
        await decide(world, "apr-x")


async def test_expiry_takes_what_is_past_its_deadline_once(world: World):
    claim = await begin(world)
    await step(world, claim, call("a"), call("b"))
    later = replace(approval("apr-b", "b"), expires_at=START + timedelta(hours=48))
    await world.stores.ledger.open_approvals(claim, [approval("apr-a", "a"), later], None)
    now = START + timedelta(hours=24)
    (expired,) = await world.stores.ledger.expire_approvals(CONVERSATION, now)
    assert (expired.id, expired.state, expired.decided_at) == ("apr-a", ApprovalState.EXPIRED, now)
    assert expired.decision is not None
    assert (expired.decision.approve, expired.decision.by) == (False, None)
    assert await world.stores.ledger.expire_approvals(CONVERSATION, now) == ()


async def test_the_winner_leaves_the_grant_and_the_loser_none(world: World):
    await ask(world, "a", "b")
    here = Grant(
        rule="shell: echo", agent_id=AGENT, conversation_id=CONVERSATION, requester=None, given_by=PersonId("person-1")
    )
    always = replace(here, rule="read", conversation_id=None)
    scoped = replace(YES, scope=DecisionScope.CONVERSATION)
    await decide(world, "apr-a", scoped, grant=here)
    await decide(world, "apr-a", scoped, grant=replace(here, rule="rm"))
    await decide(world, "apr-b", replace(YES, scope=DecisionScope.ALWAYS), grant=always)
    assert await world.stores.ledger.grants(AGENT, CONVERSATION) == (here, always)
    elsewhere = (await seed(world, "conv-2")).conversation_id
    assert await world.stores.ledger.grants(AGENT, elsewhere) == (always,)


async def test_the_origin_of_a_turn_is_sealed_with_its_thread(world: World):
    await seed(world)
    origin = replace(ADDRESS, thread="42")
    await world.stores.ledger.begin_turn(replace(turn(), origin=origin), inbox_ids=(), live=None)
    assert (await world.stores.ledger.turn(TURN)).origin == origin
