"""No operation reads a whole table: what grows with use is reached through an index."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, event

from core.contracts.delivery import Binding, OutboxState
from core.contracts.ids import ApprovalId, CallId, PersonId
from core.contracts.ledger import CallState, TurnEnd
from core.contracts.messages import TextPart
from core.contracts.people import AuditEntry, Place, PlaceState
from core.contracts.permissions import Action, ApprovalState, Decision, Verdict
from core.contracts.runs import TurnOutcome
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
    assistant_message,
    call,
    events,
    inbound,
    open_world,
    run_end,
    run_start,
    seed,
    text_item,
    tool_message,
    tool_return,
    turn,
    user_message,
)

WHOLE_ON_PURPOSE = {
    "SCAN work_items": "an engine loads all of its doorbells once, at its start",
    "SCAN agents USING INDEX sqlite_autoindex_agents_2": "all agents of a host by name, on request",
    "SCAN audit": "the newest entries: from the end, as many as asked for",
    "SCAN approvals USING INDEX uq_approvals_open": "a partial index: all open ones are wanted",
    "SCAN turns USING INDEX uq_turns_open": "a partial index: all open ones are wanted",
    "SCAN bindings USING INDEX ix_bindings_conversation": "where one person talks alone, to tell them something",
    "SCAN pairings USING INDEX uq_pairings_open": "a partial index: all open ones are wanted",
}
"""Plans that read a whole table or index, with the reason why they may."""


async def use_messages(world: World) -> None:
    delivery = world.stores.delivery
    await delivery.accept(inbound("e1"), conversation_id=None)
    (row,) = await delivery.new_events(ADDRESS.key)
    await delivery.route([row.id], CONVERSATION)
    await delivery.queued(CONVERSATION)
    await delivery.inbox_of(ADDRESS.key)
    await delivery.taken(TURN)
    await delivery.complete([row.id])
    await delivery.revise(ADDRESS, "e1", "x")
    await delivery.withdraw(ADDRESS, "e1")
    await delivery.since_last_turn(ADDRESS.key, before=row.id)
    await delivery.bind(Binding(address=ADDRESS, agent_id=AGENT, conversation_id=CONVERSATION))
    await delivery.binding(ADDRESS.key)
    await delivery.binding_of(CONVERSATION)
    await delivery.post([text_item("i1"), text_item("i2")])
    await delivery.outgoing(CHAT)
    await delivery.outbox_of(ADDRESS.key)
    await delivery.mark_attempted("i1")
    await delivery.count_unknown("i1")
    await delivery.shown_message(CHAT, "m1")
    await delivery.split("i1", [text_item("i1"), text_item("i1/2")])
    await delivery.defer("i1", START, "")
    await delivery.mark_sent("i1", "m1", content=text_item("i1").content)
    await delivery.amend("i1", text_item("i1", "new").content)
    await delivery.fail("i2", OutboxState.FAILED, "")
    await delivery.direct_addresses(PersonId("person-1"))
    await delivery.migrate_chat(ADDRESS, "222")
    await world.stores.attachments.attachments_of([row.id])
    await world.stores.sessions.append_lines(CONVERSATION, ["x"])
    await world.stores.sessions.lines_after(CONVERSATION, 0)


async def use_a_turn(world: World) -> None:
    transcripts, ledger = world.stores.transcripts, world.stores.ledger
    claim = await ledger.begin_turn(turn(), inbox_ids=(), live=text_item("live"))
    await transcripts.state(CONVERSATION)
    await transcripts.begin_run(claim, run_start(RUN, user_message("hi"), with_prompt=True))
    await transcripts.append_events(claim, events(RUN, 2))
    await transcripts.find_run(CONVERSATION, "request")
    end = run_end(assistant_message(TextPart(text="x"), call("a")), first_seq=2)
    await transcripts.finish_run(claim, end)
    await transcripts.finish_run(claim, end)
    await transcripts.events(RUN)
    await transcripts.messages(CONVERSATION)
    verdict = Verdict(action=Action.ASK, rule="", reason="")
    await ledger.record_verdicts(claim, TURN, [(CallId("a"), verdict, None)])
    await ledger.open_approvals(claim, [approval("apr", "a")], text_item("card"))
    await ledger.park_turn(claim, TURN)
    decision = Decision(approve=True, by=PersonId("p"), by_name="")
    await ledger.decide(ApprovalId("apr"), decision, ApprovalState.APPROVED, hash_shown="hash of a", grant=None)
    await ledger.expire_approvals(CONVERSATION, START + timedelta(days=9))
    await ledger.resume_turn(claim, TURN)
    await ledger.start_call(claim, CallId("a"))
    await ledger.finish_call(claim, tool_return("a"), CallState.DONE)
    await transcripts.known_returns(CONVERSATION)
    await transcripts.parked_calls(CONVERSATION)
    await transcripts.append_returns(claim, [tool_message("a")])
    await ledger.add_progress(claim, TURN, steps=1, active_seconds=1)
    for read in (ledger.calls(RUN), ledger.calls_of_turn(TURN), ledger.approvals_of(TURN), ledger.open_approvals_of()):
        await read
    await ledger.unanswered_calls(CONVERSATION)
    await ledger.grants(AGENT, CONVERSATION)
    await ledger.latest_turn(CONVERSATION)
    await ledger.request_cancel(CONVERSATION, by=None)
    await ledger.cancel_requested(TURN)
    await ledger.finish_turn(claim, TURN, TurnEnd(outcome=TurnOutcome.COMPLETED, outgoing=(text_item("live"),)))
    await transcripts.usage_since(TURN)
    await transcripts.runs_of_turn(TURN)
    await world.stores.delivery.outbox_of_turn(TURN)
    await transcripts.conversations(AGENT)


async def use_people(world: World) -> None:
    people = world.stores.people
    person = await people.ensure_person("telegram:1", "A")
    await people.link("slack:U1", person.id)
    await people.open_pairing("telegram:2", "B", code="c", expires_at=START + timedelta(hours=1))
    await people.pairings()
    await people.accept_pairing("c", now=START)
    await people.is_admitted("telegram:2")
    await people.record(AuditEntry(at=START, who="", what="", detail={}))
    await people.audit()
    await people.set_place(Place(key=CHAT, state=PlaceState.ASKED, by=None, at=START))
    await people.place(CHAT)


async def test_no_operation_reads_a_whole_table(tmp_path):
    ran: dict[str, object] = {}
    async with open_world(tmp_path / "host.db") as world:

        def note(_connection, _cursor, statement, parameters, _context, many):
            ran[statement] = parameters[0] if many else parameters

        for engine in (world.stores.database._writer, world.stores.database._readers):
            event.listen(engine, "before_cursor_execute", note)
        await seed(world)
        await use_messages(world)
        await use_a_turn(world)
        await use_people(world)
        statements = {text: values for text, values in ran.items() if text.startswith(("SELECT", "UPDATE", "DELETE"))}

        def explain(connection: Connection) -> set[str]:
            plans = [
                connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values).all()
                for text, values in statements.items()
            ]
            return {row.detail for plan in plans for row in plan if row.detail.startswith("SCAN")}

        scans = await world.stores.database.read(explain)
    assert len(statements) > 60
    assert sorted(scans - WHOLE_ON_PURPOSE.keys()) == []


async def test_a_delivery_looks_only_at_the_messages_that_wait(tmp_path):
    """With an ORDER BY in the statement, SQLite would walk everything the chat was ever sent."""
    ran: list[tuple[str, object]] = []
    async with open_world(tmp_path / "host.db") as world:

        def note(_connection, _cursor, statement, parameters, _context, _many):
            ran.append((statement, parameters))

        event.listen(world.stores.database._readers, "before_cursor_execute", note)
        await world.stores.delivery.outgoing(CHAT)
        statement, values = ran[-1]

        def explain(connection: Connection) -> str:
            return connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).one().detail

        plan = await world.stores.database.read(explain)
    assert "ix_outbox_waiting (chat_key=? AND state=?)" in plan
