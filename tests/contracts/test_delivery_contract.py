"""What every DeliveryStore promises; run on SQLite in a file and in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.addresses import (
    Address,
    Attachment,
    Button,
    ButtonStyle,
    CardContent,
    EditBody,
    MessageBody,
    PressBody,
    TextContent,
)
from core.contracts.delivery import Binding, InboxState, OutboxState
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId
from tests.core.stores.samples import (
    ADDRESS,
    AGENT,
    CHAT,
    CONVERSATION,
    START,
    TURN,
    World,
    inbound,
    open_world,
    seed,
    text_item,
    turn,
)

LATER = START + timedelta(seconds=30)


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        yield opened


def text(markdown: str) -> TextContent:
    return TextContent(markdown=markdown)


async def post(world: World, *item_ids: str) -> None:
    await world.stores.delivery.post([text_item(item_id, item_id) for item_id in item_ids])
    world.rung()


async def ids(world: World) -> list[str]:
    return [row.item.id for row in await world.stores.delivery.outgoing(CHAT)]


async def test_an_accepted_event_waits_for_the_router(world: World):
    assert await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    (row,) = await world.stores.delivery.new_events(ADDRESS.key)
    assert (row.event, row.state, row.conversation_id) == (inbound("e1"), InboxState.NEW, None)
    assert row.received_at == START
    assert world.rung() == [("inbox", ADDRESS.key)]


async def test_an_event_for_a_known_conversation_is_queued_at_once(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION)
    assert await world.stores.delivery.new_events(ADDRESS.key) == ()
    (row,) = await world.stores.delivery.queued(CONVERSATION)
    assert (row.state, row.conversation_id) == (InboxState.QUEUED, CONVERSATION)
    assert world.rung() == [("conversations", CONVERSATION)]


async def test_an_event_never_overtakes_an_earlier_one_that_waits_for_the_router(world: World):
    """`/new` and a quick "hello" behind it: the greeting belongs to the new conversation."""
    await world.stores.delivery.accept(inbound("e1", "/new"), conversation_id=None)
    await world.stores.delivery.accept(inbound("e2", "hello"), conversation_id=CONVERSATION)
    rows = await world.stores.delivery.new_events(ADDRESS.key)
    assert [row.event.key for row in rows] == ["e1", "e2"]
    assert await world.stores.delivery.queued(CONVERSATION) == ()
    assert world.rung() == [("inbox", ADDRESS.key), ("inbox", ADDRESS.key)]


async def test_an_event_of_another_address_waits_for_no_router(world: World):
    await world.stores.delivery.accept(inbound("e1", "/new"), conversation_id=None)
    elsewhere = inbound("e2", address=replace(ADDRESS, chat="222"))
    await world.stores.delivery.accept(elsewhere, conversation_id=CONVERSATION)
    assert len(await world.stores.delivery.queued(CONVERSATION)) == 1


async def test_an_event_does_not_follow_a_binding_that_was_replaced_meanwhile(world: World):
    await seed(world)
    bound = Binding(address=ADDRESS, agent_id=AGENT, conversation_id=CONVERSATION)
    await world.stores.delivery.bind(bound)
    assert await world.stores.delivery.accept(inbound("e1"), conversation_id=ConversationId("conv-of-old"))
    assert [row.event.key for row in await world.stores.delivery.new_events(ADDRESS.key)] == ["e1"]


async def test_a_known_event_is_stored_once_and_rings_once(world: World):
    assert await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    assert not await world.stores.delivery.accept(inbound("e1", "again"), conversation_id=CONVERSATION)
    assert len(await world.stores.delivery.inbox_of(ADDRESS.key)) == 1
    assert len(world.rung()) == 1


async def test_equal_keys_of_two_accounts_are_two_events(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    assert await world.stores.delivery.accept(
        inbound("e1", address=replace(ADDRESS, account="second")), conversation_id=None
    )


@pytest.mark.parametrize(
    "body",
    [
        MessageBody(
            text="see",
            attachments=(Attachment(handle="h", name="ä.png", media_type="image/png", size_bytes=3),),
            addressed=False,
        ),
        EditBody(message_key="e0", text="better"),
        PressBody(token="t1", card="m3", acknowledge="q1"),
        PressBody(token="t1", card="m3"),
    ],
)
async def test_every_kind_of_event_comes_back_as_it_came(world: World, body):
    event = replace(inbound("e1", address=replace(ADDRESS, thread="7")), body=body)
    await world.stores.delivery.accept(event, conversation_id=None)
    (row,) = await world.stores.delivery.new_events(event.address.key)
    assert row.event == event


async def test_events_come_in_the_order_of_acceptance(world: World):
    for key in ("c", "a", "b"):
        await world.stores.delivery.accept(inbound(key), conversation_id=None)
    rows = await world.stores.delivery.new_events(ADDRESS.key)
    assert [row.event.key for row in rows] == ["c", "a", "b"]
    assert [row.id for row in rows] == sorted(row.id for row in rows)


async def test_routing_queues_a_new_event_once(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    (row,) = await world.stores.delivery.new_events(ADDRESS.key)
    world.rung()
    await world.stores.delivery.route(row.id, CONVERSATION)
    await world.stores.delivery.route(row.id, ConversationId("conv-2"))
    assert [item.id for item in await world.stores.delivery.queued(CONVERSATION)] == [row.id]
    assert world.rung() == [("conversations", CONVERSATION)]
    with pytest.raises(NotFound):
        await world.stores.delivery.route(999, CONVERSATION)


async def test_completed_rows_wait_for_nothing(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    (row,) = await world.stores.delivery.new_events(ADDRESS.key)
    await world.stores.delivery.complete([row.id])
    assert await world.stores.delivery.new_events(ADDRESS.key) == ()
    await world.stores.delivery.complete([])


async def test_withdrawing_leaves_other_conversations_and_states(world: World):
    for number, conversation_id in enumerate((CONVERSATION, CONVERSATION, ConversationId("conv-2"))):
        await world.stores.delivery.accept(inbound(str(number)), conversation_id=conversation_id)
    assert await world.stores.delivery.withdraw_queued(CONVERSATION) == 2
    assert await world.stores.delivery.withdraw_queued(CONVERSATION) == 0
    assert len(await world.stores.delivery.queued(ConversationId("conv-2"))) == 1


async def test_the_newest_rows_of_an_address_come_oldest_first(world: World):
    for key in "abc":
        await world.stores.delivery.accept(inbound(key), conversation_id=None)
    rows = await world.stores.delivery.inbox_of(ADDRESS.key, limit=2)
    assert [row.event.key for row in rows] == ["b", "c"]


async def test_a_new_binding_replaces_the_old_one(world: World):
    old = Binding(address=ADDRESS, agent_id=AGENT, conversation_id=CONVERSATION)
    new = replace(old, conversation_id=ConversationId("conv-2"))
    assert await world.stores.delivery.binding(ADDRESS.key) is None
    for binding in (old, new):
        await world.stores.delivery.bind(binding)
        assert await world.stores.delivery.binding(ADDRESS.key) == binding
    assert await world.stores.delivery.binding_of(CONVERSATION) is None
    assert await world.stores.delivery.binding_of(ConversationId("conv-2")) == new


async def test_posted_items_leave_in_order_and_ring_their_chats_once(world: World):
    elsewhere = Address(channel="slack", account="bot", chat="C1", thread="9")
    items = [text_item("1"), text_item("2"), text_item("3", address=elsewhere)]
    await world.stores.delivery.post(items, turn_id=TURN)
    rows = await world.stores.delivery.outgoing(CHAT)
    assert [(row.item, row.state, row.turn_id) for row in rows] == [
        (item, OutboxState.PENDING, TURN) for item in items[:2]
    ]
    assert sorted(world.rung()) == [("outbox", "slack/bot/C1"), ("outbox", CHAT)]


async def test_an_item_that_exists_is_left_alone(world: World):
    await post(world, "1")
    await world.stores.delivery.post([text_item("1", "other")])
    assert (await world.stores.delivery.outbox_row("1")).item.content == text("1")
    assert world.rung() == []


async def test_a_card_comes_back_as_it_was_posted(world: World):
    button = Button(token="t", label="Approve", style=ButtonStyle.GOOD)
    card = CardContent(text="Run?", code="rm x", rows=((button,), (button, button)), silent=True)
    item = replace(text_item("card"), content=card, reply_to="m1")
    await world.stores.delivery.post([item])
    assert (await world.stores.delivery.outbox_row("card")).item == item


async def test_a_delivery_is_attempted_then_sent(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_attempted("1")
    row = await world.stores.delivery.outbox_row("1")
    assert (row.state, row.item.attempts) == (OutboxState.ATTEMPTED, 1)
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    row = await world.stores.delivery.outbox_row("1")
    assert (row.state, row.item.external_id, row.sent_at) == (OutboxState.SENT, "m9", START)
    assert await ids(world) == []


async def test_only_a_row_that_waits_is_attempted(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    with pytest.raises(InvalidInput):
        await world.stores.delivery.mark_attempted("1")
    with pytest.raises(NotFound):
        await world.stores.delivery.mark_attempted("x")


async def test_attempted_rows_are_what_a_dead_process_left(world: World):
    await post(world, "1", "2", "3")
    for item_id in ("2", "1"):
        await world.stores.delivery.mark_attempted(item_id)
    assert [row.item.id for row in await world.stores.delivery.interrupted()] == ["1", "2"]
    assert await ids(world) == ["1", "2", "3"]


async def test_amending_a_sent_row_delivers_an_edit(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_attempted("1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    await world.stores.delivery.amend("1", text("settled"))
    (row,) = await world.stores.delivery.outgoing(CHAT)
    assert (row.item.content, row.item.external_id, row.item.attempts) == (text("settled"), "m9", 0)
    assert world.rung() == [("outbox", CHAT)]


async def test_an_edit_keeps_the_time_at_which_the_message_was_first_seen(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    first = (await world.stores.delivery.outbox_row("1")).sent_at
    await world.clock.advance(timedelta(seconds=30))
    await world.stores.delivery.amend("1", text("settled"))
    await world.stores.delivery.mark_sent("1", "m9", content=text("settled"))
    assert (await world.stores.delivery.outbox_row("1")).sent_at == first


async def test_amending_with_the_same_content_delivers_nothing(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    await world.stores.delivery.amend("1", text("1"))
    assert await ids(world) == []


async def test_amending_a_row_not_yet_sent_replaces_its_content(world: World):
    await post(world, "1")
    await world.stores.delivery.amend("1", text("better"))
    (row,) = await world.stores.delivery.outgoing(CHAT)
    assert (row.state, row.item.content) == (OutboxState.PENDING, text("better"))


async def test_a_row_amended_while_it_was_sent_stays_pending(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_attempted("1")
    await world.stores.delivery.amend("1", text("settled"))
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    (row,) = await world.stores.delivery.outgoing(CHAT)
    assert (row.state, row.item.external_id, row.item.content) == (OutboxState.PENDING, "m9", text("settled"))
    assert world.rung() == [("outbox", CHAT)]


async def test_amending_a_live_row_keeps_it_live(world: World):
    await seed(world)
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=text_item("live"))
    await world.stores.delivery.mark_visible("live", "m1")
    await world.stores.delivery.amend("live", text("more"))
    row = await world.stores.delivery.outbox_row("live")
    assert (row.state, row.item.external_id, row.item.content) == (OutboxState.LIVE, "m1", text("more"))


async def test_a_late_preview_does_not_replace_what_is_visible(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    await world.stores.delivery.mark_visible("1", "m10")
    assert (await world.stores.delivery.outbox_row("1")).item.external_id == "m9"


async def test_a_deferred_row_holds_back_what_stands_behind_it(world: World):
    await post(world, "1", "2", "3")
    await world.stores.delivery.mark_attempted("2")
    await world.stores.delivery.defer("2", LATER, "rate limit")
    assert [(item.queue, item.key, item.due_at) for item in world.rings] == [("outbox", CHAT, LATER)]
    assert await ids(world) == ["1"]
    await world.clock.advance(timedelta(seconds=30))
    assert await ids(world) == ["1", "2", "3"]
    row = await world.stores.delivery.outbox_row("2")
    assert (row.state, row.not_before, row.error) == (OutboxState.PENDING, LATER, "rate limit")


async def test_a_row_that_is_given_up_holds_nothing_back(world: World):
    await post(world, "1", "2", "3")
    await world.stores.delivery.fail("1", OutboxState.FAILED, "chat is gone")
    await world.stores.delivery.fail("2", OutboxState.UNKNOWN, "lost")
    assert await ids(world) == ["3"]
    assert (await world.stores.delivery.outbox_row("1")).error == "chat is gone"
    with pytest.raises(InvalidInput):
        await world.stores.delivery.fail("3", OutboxState.SENT, "")


async def test_the_parts_of_a_row_take_its_place(world: World):
    await post(world, "1", "2", "3")
    await world.stores.delivery.split("2", [text_item("2", "a"), text_item("2/2", "b"), text_item("2/3", "c")])
    assert await ids(world) == ["1", "2", "2/2", "2/3", "3"]
    await world.stores.delivery.split("2/2", [text_item("2/2", "b1"), text_item("2/2/2", "b2")])
    assert await ids(world) == ["1", "2", "2/2", "2/2/2", "2/3", "3"]


async def test_the_first_part_keeps_what_is_visible(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    await world.stores.delivery.amend("1", text("far too long"))
    await world.stores.delivery.mark_attempted("1")
    world.rung()
    await world.stores.delivery.split("1", [text_item("1", "far too"), text_item("1/2", "long")])
    first, second = await world.stores.delivery.outgoing(CHAT)
    assert (first.item.external_id, first.item.content, first.state) == ("m9", text("far too"), OutboxState.PENDING)
    assert (second.item.external_id, second.item.content) == (None, text("long"))
    assert world.rung() == [("outbox", CHAT)]


async def test_an_address_shows_its_newest_visible_or_pending_rows_oldest_first(world: World):
    await seed(world)
    await post(world, "sent", "failed", "unknown")
    await world.stores.delivery.mark_sent("sent", "m1", content=text("sent"))
    await world.stores.delivery.fail("failed", OutboxState.FAILED, "")
    await world.stores.delivery.fail("unknown", OutboxState.UNKNOWN, "")
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=text_item("live"))
    await post(world, "pending")
    rows = await world.stores.delivery.outbox_of(ADDRESS.key)
    assert [row.item.id for row in rows] == ["sent", "unknown", "pending"]
    await world.stores.delivery.mark_visible("live", "m2")
    rows = await world.stores.delivery.outbox_of(ADDRESS.key, limit=2)
    assert [row.item.id for row in rows] == ["live", "pending"]
