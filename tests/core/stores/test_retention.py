"""What is old is deleted, bit by bit; what is still needed stays, however old it is."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event, select, update

from core.contracts.addresses import Address
from core.contracts.delivery import InboxState
from core.contracts.events import MessageStored, RunFinished, TextDelta
from core.contracts.ids import ConversationId, RunId
from core.contracts.ledger import TurnEnd
from core.contracts.messages import Role, TextPart
from core.contracts.runs import TurnOutcome
from core.models.scripted import ScriptedModel, says
from core.stores.retention import REDELIVERY, ROWS_A_TRANSACTION, RUNS_A_PAGE, SqlRetention
from core.stores.tables.delivery import INBOX
from tests.contracts.backend_harnesses import local_on_files, say
from tests.core.stores.samples import (
    ADDRESS,
    CONVERSATION,
    RUN,
    TURN,
    assistant_message,
    events,
    inbound,
    open_world,
    run_end,
    run_start,
    seed,
    turn,
    user_message,
)

WEEK = timedelta(days=7)
MONTH = timedelta(days=30)


@pytest.fixture
async def world(tmp_path):
    async with open_world(tmp_path / "host.db") as opened:
        yield opened


def retention(world, **more) -> SqlRetention:
    return SqlRetention(world.stores.database, world.clock, **more)


async def tell(world, claim, *, run_id=RUN, deltas=3):
    """Take a whole step that says something in so many pieces."""
    await world.stores.transcripts.begin_run(claim, run_start(run_id, user_message("hi")))
    pieces = [TextDelta(text=str(number)) for number in range(deltas)]
    await world.stores.transcripts.append_events(claim, events(run_id, 2, *pieces))
    end = run_end(assistant_message(TextPart(text="all of it")), run_id=run_id, first_seq=2 + deltas)
    await world.stores.transcripts.finish_run(claim, end)


async def inbox_keys(world) -> set[str]:
    def operation(connection: Connection) -> set[str]:
        return set(connection.execute(select(INBOX.c.event_key)).scalars())

    return await world.stores.database.read(operation)


async def test_a_finished_run_is_pruned_to_its_messages_and_its_end(world):
    claim = await seed(world)
    await tell(world, claim)
    await world.clock.advance(WEEK + timedelta(hours=1))
    await tell(world, claim, run_id="run-2")

    assert await retention(world).prune_events(world.clock.now() - WEEK) == 3

    left = await world.stores.transcripts.events(RunId(RUN))
    assert [(each.seq, type(each.body)) for each in left] == [(1, MessageStored), (5, MessageStored), (6, RunFinished)]
    assert len(await world.stores.transcripts.events(RunId("run-2"))) == 6
    assert await retention(world).prune_events(world.clock.now() - WEEK) == 0


async def test_the_events_of_a_pruned_run_replay_its_messages_and_end(tmp_path):
    """DESIGN 5: a reader of old, who comes back behind an event that is gone, is served as well."""
    async with local_on_files(tmp_path, ScriptedModel([says("Hel", "lo")])) as backend:
        told = await backend.step(say("hi"))
        await backend.clock.advance(2 * WEEK)
        pruning = SqlRetention(backend.stores.database, backend.clock)
        assert await pruning.prune_events(backend.clock.now() - WEEK) > 0
        replayed = await backend.events(told[0].run_id)
        resumed = await backend.events(told[0].run_id, after=2)

    kept = [each for each in told if isinstance(each.body, MessageStored | RunFinished)]
    assert replayed == kept
    assert [each.body.message.role for each in replayed[:-1]] == [Role.USER, Role.ASSISTANT]
    assert resumed == [each for each in kept if each.seq > 2]


async def test_the_runs_of_an_open_turn_and_an_active_run_stay_whole(world):
    await seed(world)
    claim = await world.stores.ledger.begin_turn(turn(), inbox_ids=[], live=None)
    await tell(world, claim)
    await world.stores.transcripts.begin_run(claim, run_start("run-2", user_message("more")))
    await world.stores.transcripts.append_events(claim, events("run-2", 2, TextDelta(text="so far")))
    await world.clock.advance(10 * MONTH)

    assert await retention(world).prune_events(world.clock.now() - WEEK) == 0
    await world.stores.ledger.finish_turn(claim, TURN, TurnEnd(outcome=TurnOutcome.COMPLETED, outgoing=()))
    assert await retention(world).prune_events(world.clock.now() - WEEK) == 3
    assert len(await world.stores.transcripts.events(RunId("run-2"))) == 2


async def test_more_runs_than_fit_on_a_page_are_all_pruned(world):
    claim = await seed(world)
    for number in range(RUNS_A_PAGE + 5):
        await tell(world, claim, run_id=f"run-{number:04}", deltas=1)
    await world.clock.advance(MONTH)

    assert await retention(world).prune_events(world.clock.now() - WEEK) == RUNS_A_PAGE + 5


async def test_no_transaction_deletes_more_than_its_share(world):
    claim = await seed(world)
    await tell(world, claim, deltas=2 * ROWS_A_TRANSACTION + 1)
    await world.clock.advance(MONTH)
    shares = []

    def count(connection, cursor, statement, parameters, context, many):
        if statement.startswith("DELETE"):
            shares.append(len(parameters) if many else 1)

    event.listen(world.stores.database._writer, "after_cursor_execute", count)
    assert await retention(world).prune_events(world.clock.now() - WEEK) == 2 * ROWS_A_TRANSACTION + 1
    assert shares == [ROWS_A_TRANSACTION, ROWS_A_TRANSACTION, 1]


async def test_handled_events_go_and_what_waits_or_is_being_answered_stays(world):
    await seed(world)
    delivery = world.stores.delivery
    for key in ("new", "queued", "taken", "done", "withdrawn"):
        await delivery.accept(inbound(key), conversation_id=None)
    ids = {row.event.key: row.id for row in await delivery.inbox_of(ADDRESS.key)}
    await delivery.route([ids["queued"], ids["taken"]], ConversationId(CONVERSATION))
    await delivery.complete([ids["done"]])
    await delivery.withdraw(ADDRESS, "withdrawn")
    await world.stores.ledger.begin_turn(turn(), inbox_ids=[ids["taken"]], live=None)
    await world.clock.advance(2 * MONTH)
    await delivery.accept(inbound("young"), conversation_id=None)
    await delivery.complete([row.id for row in await delivery.inbox_of(ADDRESS.key) if row.event.key == "young"])

    assert await retention(world).prune_inbox(world.clock.now() - MONTH) == 2
    assert await inbox_keys(world) == {"new", "queued", "taken", "young"}


async def test_an_event_that_may_still_be_sent_again_is_known_however_short_the_limit(world):
    """C12: platforms redeliver for a day."""
    await seed(world)
    await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    (row,) = await world.stores.delivery.inbox_of(ADDRESS.key)
    await world.stores.delivery.complete([row.id])
    await world.clock.advance(REDELIVERY - timedelta(seconds=1))

    assert await retention(world).prune_inbox(world.clock.now()) == 0
    assert await world.stores.delivery.accept(inbound("e1"), conversation_id=None) is False
    await world.clock.advance(timedelta(seconds=2))
    assert await retention(world).prune_inbox(world.clock.now()) == 1


async def test_the_rows_of_chats_that_are_drawn_from_the_inbox_stay(world):
    await seed(world)
    shown = inbound("seen", address=Address(channel="web", account="local", chat="main"))
    for each in (inbound("e1"), shown):
        await world.stores.delivery.accept(each, conversation_id=None)
    await world.stores.database.write(lambda tx: tx.connection.execute(update(INBOX).values(state=InboxState.DONE)))
    await world.clock.advance(2 * MONTH)

    assert await retention(world, shown=("web", "terminal")).prune_inbox(world.clock.now() - MONTH) == 1
    assert await inbox_keys(world) == {"seen"}


async def test_old_lines_of_sessions_go_and_numbers_go_on(world):
    await seed(world)
    await seed(world, "conv-2")
    sessions = world.stores.sessions
    await sessions.append_lines(ConversationId(CONVERSATION), ["a", "b", "c"])
    await world.clock.advance(WEEK + timedelta(hours=1))
    await sessions.append_lines(ConversationId("conv-2"), ["x", "y"])

    assert await retention(world).prune_sessions(world.clock.now() - WEEK) == 2
    assert [line.seq for line in await sessions.lines_after(ConversationId(CONVERSATION), 0)] == [3]
    assert [line.seq for line in await sessions.append_lines(ConversationId(CONVERSATION), ["d"])] == [4]
    assert len(await sessions.lines_after(ConversationId("conv-2"), 0)) == 2


async def test_nothing_that_is_looked_for_reads_all_events_or_lines(world):
    plans = set()

    def explain(connection, cursor, statement, parameters, context, many):
        if statement.startswith("SELECT"):
            found = connection.connection.driver_connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.update(row[3] for row in found.fetchall())

    await tell(world, await seed(world))
    await world.clock.advance(MONTH)
    event.listen(world.stores.database._readers, "after_cursor_execute", explain)
    pruning = retention(world)
    await pruning.prune_events(world.clock.now())
    await pruning.prune_sessions(world.clock.now())

    assert any(plan.startswith("SEARCH runs") for plan in plans)
    assert any(plan.startswith("SEARCH run_events") for plan in plans)
    assert {plan for plan in plans if plan.startswith("SCAN")} == set()


async def test_a_turn_goes_on_while_much_is_being_deleted(world):
    """A write that comes in between is not kept until all is deleted."""
    claim = await seed(world)
    await tell(world, claim, deltas=3 * ROWS_A_TRANSACTION)
    await world.clock.advance(MONTH)
    order = []

    async def write() -> None:
        await world.stores.transcripts.begin_run(claim, run_start("run-2", user_message("hi")))
        order.append("turn")

    def note(connection, cursor, statement, parameters, context, many):
        if statement.startswith("DELETE"):
            order.append("delete")
            if order == ["delete"]:
                loop.call_soon_threadsafe(lambda: tasks.append(loop.create_task(write())))

    loop, tasks = asyncio.get_running_loop(), []
    event.listen(world.stores.database._writer, "after_cursor_execute", note)
    await retention(world).prune_events(world.clock.now() - WEEK)
    await asyncio.gather(*tasks)
    assert order.index("turn") < len(order) - 1
