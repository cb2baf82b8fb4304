"""C80: text that no database can hold, at every place where text comes in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.contracts.addresses import Attachment, MessageBody, Sender
from core.contracts.ids import CallId, MessageId
from core.contracts.messages import Role, TextPart, ToolCall
from core.contracts.people import AuditEntry
from core.contracts.store import NewMessage
from core.stores.text import clean
from tests.core.stores.samples import (
    ADDRESS,
    CONVERSATION,
    RUN,
    START,
    agent,
    conversation,
    inbound,
    open_world,
    run_start,
    seed,
    step,
    text_item,
    tool_message,
    user_message,
)

DIRTY = [
    "a\0b",
    "bad \ud83d end",
    "\ud83c\udf78",
    "\u2028",
    "\ufffe",
    "\u200f\u202e",
    b"\xff\xfe".decode("utf-8", "surrogateescape"),
]


@pytest.fixture(params=DIRTY, ids=ascii)
def dirty(request):
    return request.param


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        yield opened


async def test_c80_messages_calls_and_results_are_stored(world, dirty):
    claim = await seed(world)
    await world.stores.transcripts.begin_run(claim, run_start("run-0", user_message(dirty)))
    claim = await world.stores.transcripts.claim(CONVERSATION)
    message = await step(
        world, claim, TextPart(text=dirty), ToolCall(id=CallId(dirty), name=dirty, arguments="{}", fault=dirty)
    )
    (answer,) = await world.stores.transcripts.append_returns(claim, [tool_message(dirty, dirty)])
    view = (await world.stores.transcripts.state(CONVERSATION)).view
    assert view[1:] == (message, answer)
    assert [view[0].parts[0].text, message.parts[0].text, answer.parts[0].parts[0].text] == [clean(dirty)] * 3
    assert message.parts[1].id == answer.parts[0].call_id == clean(dirty)
    assert await world.stores.ledger.unanswered_calls(CONVERSATION) == ()


async def test_c80_events_of_platforms_are_stored_and_recognised_again(world, dirty):
    body = MessageBody(text=dirty, attachments=(Attachment(handle=dirty, name=dirty, media_type="text/plain"),))
    event = replace(inbound(dirty), body=body, sender=Sender(identity="telegram:1", name=dirty))
    assert await world.stores.delivery.accept(event, conversation_id=None)
    assert not await world.stores.delivery.accept(event, conversation_id=None)
    (row,) = await world.stores.delivery.new_events(ADDRESS.key)
    assert row.event.body.attachments[0].name == row.event.sender.name == clean(dirty)


async def test_c80_what_goes_out_is_stored_and_counts_as_delivered(world, dirty):
    item = text_item("1", dirty)
    await world.stores.delivery.post([item])
    await world.stores.delivery.mark_sent("1", dirty, content=item.content)
    row = await world.stores.delivery.outbox_row("1")
    assert (row.state, row.item.external_id, row.item.content.markdown) == ("sent", clean(dirty), clean(dirty))


async def test_c80_names_and_notes_are_stored(world, dirty):
    await world.stores.transcripts.insert_agent(agent(dirty))
    await world.stores.transcripts.insert_conversation(replace(conversation(), title=dirty))
    person = await world.stores.people.ensure_person("telegram:1", dirty)
    await world.stores.people.record(AuditEntry(at=START, who=dirty, what=dirty, detail={dirty: dirty}))
    stored = await world.stores.transcripts.state(CONVERSATION)
    assert {stored.agent.name, stored.conversation.title, person.name} == {clean(dirty)}
    (entry,) = await world.stores.people.audit()
    assert dict(entry.detail) == {clean(dirty): clean(dirty)}


async def test_c80_a_megabyte_of_combining_marks_is_stored(world):
    claim = await seed(world)
    text = "a" + "\u0301" * 1_000_000
    new = NewMessage(id=MessageId("m1"), role=Role.USER, parts=(TextPart(text=text),))
    await world.stores.transcripts.begin_run(claim, run_start(RUN, new))
    (message,) = await world.stores.transcripts.messages(CONVERSATION)
    assert message.parts == new.parts
