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
    CommandBody,
    EditBody,
    HomeBody,
    MessageBody,
    PressBody,
    Sender,
    TextContent,
)
from core.contracts.agents import EVERYONE, Audience, QueueMode
from core.contracts.delivery import Binding, BoundConversation, InboxState, OutboxState, chat_key
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId, PersonId
from core.contracts.people import Place, PlaceState
from core.contracts.store import ConversationChange
from tests.core.stores.samples import (
    ADDRESS,
    AGENT,
    CHAT,
    CONVERSATION,
    START,
    TURN,
    World,
    conversation,
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


def conversation_for(conversation_id: str, words: frozenset[str]):
    return replace(conversation(conversation_id), audience=Audience(words=words))


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
        PressBody(token="t1", card="m3", values=(("reason", "no"), ("more", ""))),
        CommandBody(text="/status", acknowledge="q1"),
        HomeBody(),
    ],
)
async def test_every_kind_of_event_comes_back_as_it_came(world: World, body):
    event = replace(inbound("e1", address=replace(ADDRESS, thread="7")), body=body)
    await world.stores.delivery.accept(event, conversation_id=None)
    (row,) = await world.stores.delivery.new_events(event.address.key)
    assert row.event == event


async def test_who_sent_an_event_comes_back_with_roles_and_space(world: World):
    sender = Sender(identity="slack:T1/U1", name="Ann", is_guest=True, roles=("slack:S1", "slack:S2"))
    event = replace(inbound("e1", address=replace(ADDRESS, space="T1")), sender=sender)
    await world.stores.delivery.accept(event, conversation_id=None)
    (row,) = await world.stores.delivery.new_events(event.address.key)
    assert (row.event.sender, row.event.address.space) == (sender, "T1")


async def test_where_each_address_of_an_account_stands_is_its_newest_row(world: World):
    thread, other = replace(ADDRESS, thread="7"), replace(ADDRESS, account="second")
    for key, address in (("a", ADDRESS), ("b", thread), ("c", ADDRESS), ("d", other)):
        await world.stores.delivery.accept(inbound(key, address=address), conversation_id=None)
    rows = await world.stores.delivery.newest_of(ADDRESS.channel, ADDRESS.account)
    assert [row.event.key for row in rows] == ["b", "c"]


async def test_what_a_conversation_makes_of_a_message_is_its_own_setting_or_its_agents(world: World):
    await seed(world)
    delivery, transcripts = world.stores.delivery, world.stores.transcripts
    assert await delivery.bound_conversation(ADDRESS.key) is None
    await delivery.bind(Binding(address=ADDRESS, agent_id=AGENT, conversation_id=CONVERSATION))
    inherited = BoundConversation(id=CONVERSATION, paused=False, queue_mode=QueueMode.STEER)
    assert await delivery.bound_conversation(ADDRESS.key) == inherited
    change = ConversationChange(queue_mode=QueueMode.INTERRUPT, paused=True)
    await transcripts.change_conversation(CONVERSATION, change)
    own = BoundConversation(id=CONVERSATION, paused=True, queue_mode=QueueMode.INTERRUPT)
    assert await delivery.bound_conversation(ADDRESS.key) == own


async def test_the_bound_addresses_of_an_account_are_its_own(world: World):
    similar = replace(ADDRESS, account=f"{ADDRESS.account}2")
    for address in (ADDRESS, replace(ADDRESS, thread="7"), similar):
        await world.stores.delivery.bind(Binding(address=address, agent_id=AGENT, conversation_id=CONVERSATION))
    bound = await world.stores.delivery.bound_addresses(ADDRESS.channel, ADDRESS.account)
    assert set(bound) == {ADDRESS, replace(ADDRESS, thread="7")}


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
    await world.stores.delivery.route([row.id], CONVERSATION)
    await world.stores.delivery.route([row.id], ConversationId("conv-2"))
    assert [item.id for item in await world.stores.delivery.queued(CONVERSATION)] == [row.id]
    assert world.rung() == [("conversations", CONVERSATION)]
    with pytest.raises(NotFound):
        await world.stores.delivery.route([999], CONVERSATION)


async def test_completed_rows_wait_for_nothing(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    (row,) = await world.stores.delivery.new_events(ADDRESS.key)
    await world.stores.delivery.complete([row.id])
    assert await world.stores.delivery.new_events(ADDRESS.key) == ()
    await world.stores.delivery.complete([])


async def test_rows_that_belong_together_are_queued_together(world: World):
    for key in ("p1", "p2"):
        await world.stores.delivery.accept(inbound(key), conversation_id=None)
    rows = await world.stores.delivery.new_events(ADDRESS.key)
    world.rung()
    await world.stores.delivery.route([row.id for row in rows], CONVERSATION)
    assert [row.event.key for row in await world.stores.delivery.queued(CONVERSATION)] == ["p1", "p2"]
    assert world.rung() == [("conversations", CONVERSATION)]


@pytest.mark.parametrize("conversation_id", [None, CONVERSATION])
async def test_a_message_that_waits_gets_the_text_of_its_edit(world: World, conversation_id):
    await world.stores.delivery.accept(inbound("e1", "helo"), conversation_id=conversation_id)
    state = await world.stores.delivery.revise(ADDRESS, "e1", "hello")
    assert state is (InboxState.NEW if conversation_id is None else InboxState.QUEUED)
    (row,) = await world.stores.delivery.inbox_of(ADDRESS.key)
    assert row.event == inbound("e1", "hello")


async def test_a_message_that_a_turn_took_keeps_its_text(world: World):
    await seed(world)
    await world.stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION)
    (row,) = await world.stores.delivery.queued(CONVERSATION)
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(row.id,), live=None)
    assert await world.stores.delivery.revise(ADDRESS, "e1", "other") is InboxState.TAKEN
    assert await world.stores.delivery.withdraw(ADDRESS, "e1") is InboxState.TAKEN
    (kept,) = await world.stores.delivery.taken(TURN)
    assert (kept.event, kept.turn_id, kept.step) == (inbound("e1"), TURN, 0)


async def test_an_unknown_message_can_be_neither_revised_nor_withdrawn(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=None)
    elsewhere = replace(ADDRESS, account="other")
    assert await world.stores.delivery.revise(ADDRESS, "e2", "x") is None
    assert await world.stores.delivery.withdraw(elsewhere, "e1") is None


async def test_a_conversation_is_rung_on_request(world: World):
    await world.stores.delivery.ring(CONVERSATION)
    assert world.rung() == [("conversations", CONVERSATION)]


async def test_a_withdrawn_message_waits_for_nobody(world: World):
    await world.stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION)
    await world.stores.delivery.accept(inbound("e2"), conversation_id=CONVERSATION)
    assert await world.stores.delivery.withdraw(ADDRESS, "e1") is InboxState.QUEUED
    assert [row.event.key for row in await world.stores.delivery.queued(CONVERSATION)] == ["e2"]
    assert await world.stores.delivery.withdraw(ADDRESS, "e1") is InboxState.WITHDRAWN


async def test_what_was_said_since_the_last_turn_stands_between_it_and_a_message(world: World):
    await seed(world)
    for key in ("before", "asked", "said 1", "said 2", "gone", "asking"):
        await world.stores.delivery.accept(inbound(key), conversation_id=None)
    rows = {row.event.key: row.id for row in await world.stores.delivery.new_events(ADDRESS.key)}
    await world.stores.delivery.complete([rows["before"], rows["said 1"], rows["said 2"]])
    await world.stores.delivery.withdraw(ADDRESS, "gone")
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(rows["asked"],), live=None)
    between = await world.stores.delivery.since_last_turn(ADDRESS.key, before=rows["asking"])
    assert [row.event.key for row in between] == ["said 1", "said 2"]
    newest = await world.stores.delivery.since_last_turn(ADDRESS.key, before=rows["asking"], limit=1)
    assert [row.event.key for row in newest] == ["said 2"]


async def test_a_person_is_reached_where_they_talk_alone(world: World):
    await seed(world)
    person, other = PersonId("person-1"), PersonId("person-10")
    for number, words in enumerate(({"person:person-1"}, {"person:person-10"}, {"address:telegram/-1"}), start=5):
        conversation = conversation_for(f"conv-{number}", frozenset({EVERYONE, *words}))
        await world.stores.transcripts.insert_conversation(conversation)
        binding = Binding(address=replace(ADDRESS, chat=str(number)), agent_id=AGENT, conversation_id=conversation.id)
        await world.stores.delivery.bind(binding)
    assert [each.chat for each in await world.stores.delivery.direct_addresses(person)] == ["5"]
    assert [each.chat for each in await world.stores.delivery.direct_addresses(other)] == ["6"]


async def test_a_chat_goes_on_under_its_new_id(world: World):
    await seed(world)
    topic = replace(ADDRESS, thread="7")
    for address in (ADDRESS, topic, replace(ADDRESS, chat=f"{ADDRESS.chat}9")):
        await world.stores.delivery.bind(Binding(address=address, agent_id=AGENT, conversation_id=CONVERSATION))
    await world.stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION)
    await world.stores.delivery.accept(inbound("e2", address=topic), conversation_id=None)
    await post(world, "1")
    await world.stores.people.set_place(Place(key=CHAT, state=PlaceState.ADMITTED, by=None, at=START))
    for _ in range(2):
        await world.stores.delivery.migrate_chat(ADDRESS, "-100200")
    moved = replace(ADDRESS, chat="-100200")
    bound = await world.stores.delivery.binding(moved.key)
    assert bound is not None
    assert (bound.address, bound.conversation_id) == (moved, CONVERSATION)
    assert await world.stores.delivery.binding(replace(moved, thread="7").key) is not None
    assert await world.stores.delivery.binding(ADDRESS.key) is None
    assert await world.stores.delivery.binding(f"{ADDRESS.key}9") is not None
    assert [row.event.address for row in await world.stores.delivery.queued(CONVERSATION)] == [moved]
    assert len(await world.stores.delivery.new_events(replace(moved, thread="7").key)) == 1
    assert [row.item.address for row in await world.stores.delivery.outgoing(chat_key(moved))] == [moved]
    place = await world.stores.people.place(chat_key(moved))
    assert place is not None
    assert place.state is PlaceState.ADMITTED
    assert await world.stores.people.place(CHAT) is None


async def test_a_visible_message_is_found_by_its_id(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_sent("1", "m9", content=text("1"))
    row = await world.stores.delivery.shown_message(CHAT, "m9")
    assert row is not None
    assert row.item.id == "1"
    assert await world.stores.delivery.shown_message(CHAT, "m8") is None


async def test_everything_that_a_turn_sent_is_found_in_any_state(world: World):
    await seed(world)
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=text_item("live"))
    await world.stores.delivery.post([text_item("memory")], turn_id=TURN)
    await world.stores.delivery.mark_sent("memory", "m1", content=text_item("memory").content)
    await world.stores.delivery.post([text_item("other")])
    rows = await world.stores.delivery.outbox_of_turn(TURN)
    assert [(row.item.id, row.state) for row in rows] == [("live", OutboxState.LIVE), ("memory", OutboxState.SENT)]


async def test_unknown_sends_are_counted_for_good(world: World):
    await post(world, "1")
    assert [await world.stores.delivery.count_unknown("1") for _ in range(2)] == [1, 2]


async def test_an_unknown_send_is_counted_and_put_off_at_once(world: World):
    await post(world, "1")
    await world.stores.delivery.mark_attempted("1")
    assert await world.stores.delivery.count_unknown("1", limit=2, until=LATER, error="lost") == 1
    row = await world.stores.delivery.outbox_row("1")
    assert (row.state, row.not_before, row.error) == (OutboxState.PENDING, LATER, "lost")
    assert world.rung() == [("outbox", CHAT)]
    await world.stores.delivery.mark_attempted("1")
    assert await world.stores.delivery.count_unknown("1", limit=2, until=LATER, error="lost") == 2
    assert (await world.stores.delivery.outbox_row("1")).state is OutboxState.ATTEMPTED


async def test_when_a_message_was_first_visible_is_kept(world: World):
    await seed(world)
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=text_item("live"))
    await world.stores.delivery.mark_visible("live", "m1")
    await world.clock.advance(timedelta(seconds=90))
    await world.stores.delivery.mark_visible("live", "m1")
    assert (await world.stores.delivery.outbox_row("live")).shown_at == START


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
