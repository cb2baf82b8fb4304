"""Delivery: rows of a chat in order, each to exactly one visible message, whatever the platform does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.outbox import ELSEWHERE, MAX_UNKNOWN, Deliverer, masked, notice, text_items
from channels.contract import TextUnit
from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import Address, Button, CardContent, OutboundItem, TextContent
from core.contracts.delivery import OutboxState, chat_key
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, StoreUnavailable, TextTooLong
from tests.bot.conversations.posting import ONE, TWO, posting


@pytest.fixture
async def post():
    async with posting() as opened:
        yield opened


async def test_rows_are_delivered_in_order_and_marked_with_their_id(post):
    await post.send("one", "two", "three")
    assert post.texts() == ["one", "two", "three"]
    assert [await post.state(f"t/{number}") for number in (1, 2, 3)] == [OutboxState.SENT] * 3
    assert (await post.store.outbox_row("t/2")).item.external_id == "2"


async def test_delivering_again_sends_nothing_again(post):
    await post.send("one")
    await post.deliverer.deliver_chat(chat_key(ONE))
    assert len(post.channel.deliveries) == 1


async def test_an_amended_row_is_an_edit_of_its_message(post):
    await post.send("draft")
    await post.store.amend("t/1", TextContent(markdown="final"))
    await post.deliver()
    assert post.texts() == ["final"]
    assert post.channel.deliveries[-1].external_id == "1"


async def test_no_secret_leaves_in_any_text(post):
    """Invariant 10."""
    card = CardContent(text="run hunter2?", code="echo hunter2", rows=((Button(token="t", label="ok"),),))
    await post.store.post([notice("t/1", ONE, "it is hunter2"), OutboundItem(id="t/2", address=ONE, content=card)])
    await post.deliver()
    assert "hunter2" not in repr(post.channel.messages)
    assert post.texts()[0] == "it is [secret password]"
    assert masked(notice("x", ONE, "plain"), str) == notice("x", ONE, "plain")


async def test_a_text_that_is_too_long_is_split_smaller_until_it_is_delivered_whole(post):
    """C14: the platform counts otherwise than it says; nothing is dropped, whatever it takes."""
    text = " ".join(f"word{number}" for number in range(400))
    post.channel.fail_next(TextTooLong("too long"), TextTooLong("too long"), TextTooLong("too long"))
    await post.send(text)
    assert "".join(post.texts()).replace(" ", "") == text.replace(" ", "")
    assert len(post.texts()) > 4


async def test_a_part_of_a_long_text_that_is_split_again_loses_nothing(post):
    """The first of several parts is split: the new ids are not those of its neighbours."""
    text = " ".join(f"word{number}" for number in range(700))
    items = text_items(notice("t/1", ONE, ""), text, post.channel.capabilities)
    assert len(items) == 3
    post.channel.fail_next(TextTooLong("too long"), TextTooLong("too long"))
    await post.store.post(items)
    await post.deliver()
    assert "".join(post.texts()).replace(" ", "") == text.replace(" ", "")
    assert post.texts() == sorted(post.texts(), key=lambda part: int(part.split()[0].removeprefix("word") or 0))


async def test_a_text_that_is_always_too_long_is_given_up_and_blocks_nobody(post):
    post.channel.fail_next(*[TextTooLong("too long")] * 40)
    await post.send("ab cd")
    await post.send("next", first=9)
    states = {row.state for row in await post.store.outbox_of(ONE.key)}
    assert OutboxState.PENDING not in states
    post.channel._failures.clear()
    await post.send("later", first=10)
    assert post.texts()[-1] == "later"


async def test_code_that_is_split_keeps_its_fences(post):
    text = "```python\n" + "\n".join(f"x = {number}" for number in range(200)) + "\n```"
    post.channel.fail_next(TextTooLong("too long"))
    await post.send(text)
    assert len(post.texts()) > 1
    for part in post.texts():
        assert part.count("```") == 2
        assert part.startswith("```python\n")


async def test_a_limited_chat_waits_as_long_as_asked_and_another_goes_on(post):
    """C15."""
    post.channel.fail_next(SendLimited("slow down", retry_after=timedelta(seconds=25)))
    await post.send("one", "two")
    await post.send("other", to=TWO, first=7)
    assert (post.texts(), post.texts(TWO)) == ([], ["other"])
    await post.later(timedelta(seconds=24))
    assert post.texts() == []
    await post.later(timedelta(seconds=1))
    assert post.texts() == ["one", "two"]
    assert len(post.channel.deliveries) == 3


async def test_a_limit_on_the_final_edit_delivers_it_whole_and_once(post):
    """C15: preview 3 is visible, the final text is longer, and the platform asks to wait 149 s."""
    await post.send("the first")
    post.channel.fail_next(SendLimited("slow down", retry_after=timedelta(seconds=149)))
    await post.store.amend("t/1", TextContent(markdown="the first" + " and more" * 100))
    await post.deliver()
    assert post.texts() == ["the first"]
    await post.later(timedelta(seconds=149))
    assert post.texts() == ["the first" + " and more" * 100]


async def test_an_unknown_send_is_looked_for_before_it_is_sent_again(post):
    post.channel.lose_next_answer()
    await post.send("one")
    assert post.texts() == ["one"]
    assert await post.state("t/1") is OutboxState.SENT
    assert len(post.channel.deliveries) == 1


async def test_an_unknown_send_that_is_not_found_is_sent_again_a_little_later(post):
    post.channel.fail_next(SendUnknown("lost"))
    await post.send("one")
    assert post.texts() == []
    await post.later(timedelta(seconds=5))
    assert post.texts() == ["one"]


@pytest.mark.parametrize("lookup", [False, True])
async def test_a_send_stays_unknown_after_the_same_number_of_tries_on_every_platform(post, lookup):
    post.channel._capabilities = replace(post.channel.capabilities, lookup=lookup)
    post.channel.fail_next(*[SendUnknown("lost")] * 9)
    await post.send("one", "two")
    for _ in range(MAX_UNKNOWN - 1):
        assert await post.state("t/1") is not OutboxState.UNKNOWN
        await post.later(timedelta(seconds=5))
    assert await post.state("t/1") is OutboxState.UNKNOWN
    assert len(post.channel._failures) == 9 - MAX_UNKNOWN - 1


async def test_an_edit_with_an_unknown_outcome_is_repeated_until_it_is_known(post):
    """An edit may be repeated: the final text is never given up."""
    await post.send("draft")
    post.channel.fail_next(*[SendUnknown("lost")] * 6)
    await post.store.amend("t/1", TextContent(markdown="final"))
    await post.deliver()
    for _ in range(8):
        await post.later(timedelta(minutes=5))
    assert post.texts() == ["final"]


async def test_what_a_dead_process_was_sending_is_looked_for_first(post):
    item = notice("t/1", ONE, "one")
    await post.store.post([item])
    await post.store.mark_attempted("t/1")
    await post.channel.deliver(item)
    await post.deliver()
    assert post.texts() == ["one"]
    assert await post.state("t/1") is OutboxState.SENT


async def test_a_platform_with_a_lookup_is_told_nothing_before_that_is_on_record(post):
    post.channel._capabilities = replace(post.channel.capabilities, lookup=True)
    post.channel.fail_next(ChannelDown("gone"))
    await post.send("one")
    assert (await post.store.outbox_row("t/1")).item.attempts == 1


async def test_a_platform_that_is_away_is_asked_less_and_less_often(post):
    post.channel.fail_next(*[ChannelDown("gone")] * 12)
    await post.send("one")
    waits = []
    while post.channel._failures:
        row = await post.store.outbox_row("t/1")
        waits.append((row.not_before - post.clock.now()).total_seconds())
        await post.later(row.not_before - post.clock.now())
    assert waits[:4] == [5, 10, 20, 40]
    assert waits[-1] == 300
    await post.later(timedelta(minutes=5))
    assert post.texts() == ["one"]


async def test_an_edit_for_a_platform_that_is_away_waits_longer_each_time_too(post):
    await post.send("draft")
    post.channel.fail_next(*[ChannelDown("gone")] * 3)
    await post.store.amend("t/1", TextContent(markdown="final"))
    await post.deliver()
    waits = []
    for _ in range(3):
        row = await post.store.outbox_row("t/1")
        waits.append((row.not_before - post.clock.now()).total_seconds())
        await post.later(row.not_before - post.clock.now())
    assert waits == [5, 10, 20]
    assert post.texts() == ["final"]


async def test_a_refused_row_is_given_up_and_the_next_one_follows(post):
    post.channel.fail_next(SendRejected("blocked"))
    await post.send("one", "two")
    assert post.texts() == ["two"]
    assert await post.state("t/1") is OutboxState.FAILED
    assert (await post.store.outbox_row("t/1")).error == "blocked"


async def test_a_row_of_a_channel_that_this_host_has_not_waits_for_one_that_has(post):
    gone = Address(channel="slack", account="bot", chat="1")
    await post.send("one", to=gone)
    assert await post.state("t/1") is OutboxState.PENDING
    assert await post.deliverer.deliver_chat(chat_key(gone)) == ELSEWHERE


async def test_giving_up_fails_the_row_in_the_way_and_those_behind_it_go_on(post):
    await post.store.post([notice("t/1", ONE, "one"), notice("t/2", ONE, "two")])
    await post.deliverer.give_up(chat_key(ONE), "a bug")
    await post.deliver()
    assert post.texts() == ["two"]
    assert (await post.store.outbox_row("t/1")).error == "a bug"


class Forgetful:
    """A store that cannot record the next delivery."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.failures = 1

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def mark_sent(self, item_id, external_id, *, content):
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("disk full")
        await self._inner.mark_sent(item_id, external_id, content=content)


async def test_a_delivery_that_could_not_be_recorded_is_recorded_later_and_not_made_again(post):
    """Invariant 11."""
    store = Forgetful(post.store)
    deliverer = Deliverer(store=store, channels={"fake": post.channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "one")])
    with pytest.raises(StoreUnavailable):
        await deliverer.deliver_chat(chat_key(ONE))
    await deliverer.deliver_chat(chat_key(ONE))
    assert post.texts() == ["one"]
    assert len(post.channel.deliveries) == 1
    assert await post.state("t/1") is OutboxState.SENT


class HeldChannel(FakeChannel):
    """A platform that takes its time."""

    def __init__(self, clock) -> None:
        super().__init__("fake", clock=clock)
        self.entered, self.gate = asyncio.Event(), asyncio.Event()

    async def deliver(self, item):
        self.entered.set()
        await self.gate.wait()
        return await super().deliver(item)


async def test_a_send_that_is_under_way_when_the_host_stops_ends_and_is_recorded(post):
    """Cut off, it would be made again after the start."""
    channel = HeldChannel(post.clock)
    deliverer = Deliverer(store=post.store, channels={"fake": channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "one"), notice("t/2", ONE, "two")])
    async with asyncio.timeout(60):
        delivering = asyncio.create_task(deliverer.deliver_chat(chat_key(ONE)))
        await channel.entered.wait()
        delivering.cancel()
        await asyncio.sleep(0)
        channel.gate.set()
        await asyncio.wait({delivering})
    assert delivering.cancelled()
    assert await post.state("t/1") is OutboxState.SENT
    assert await post.state("t/2") is OutboxState.PENDING


async def test_draining_waits_for_what_is_under_way(post):
    channel = HeldChannel(post.clock)
    deliverer = Deliverer(store=post.store, channels={"fake": channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "one")])
    async with asyncio.TaskGroup() as group:
        group.create_task(deliverer.deliver_chat(chat_key(ONE)))
        await channel.entered.wait()
        draining = group.create_task(deliverer.drain(timedelta(seconds=10)))
        await asyncio.sleep(0)
        assert not draining.done()
        channel.gate.set()
    await deliverer.drain(timedelta(seconds=10))
    assert await post.state("t/1") is OutboxState.SENT


ASKING = CardContent(text="May I?", rows=((Button(token="a:1:y", label="Approve"),),))


@pytest.mark.parametrize("error", [SendRejected("invalid"), TextTooLong("too long")])
async def test_a_card_that_cannot_be_shown_is_told(post, error):
    """C26."""
    post.channel.fail_next(error)
    await post.store.post([OutboundItem(id="card", address=ONE, content=ASKING)])
    await post.deliver()
    assert post.failed_cards == [f"card: {error}"]
    assert await post.state("card") is OutboxState.FAILED


async def test_a_settled_card_that_cannot_be_shown_asks_about_nothing(post):
    post.channel.fail_next(SendRejected("invalid"))
    await post.store.post([OutboundItem(id="card", address=ONE, content=replace(ASKING, rows=()))])
    await post.deliver()
    assert post.failed_cards == []


def test_a_text_becomes_as_many_items_as_it_needs():
    first = replace(notice("t/1", ONE, "", silent=True), external_id="9", reply_to="m1")
    items = text_items(first, "a" * 4_500, FAKE_CAPABILITIES)
    assert [item.id for item in items] == ["t/1", "t/1.2", "t/1.3"]
    assert [item.external_id for item in items] == ["9", None, None]
    assert all(item.content.silent for item in items)
    assert "".join(item.content.markdown for item in items) == "a" * 4_500


def test_no_text_is_no_item():
    assert text_items(notice("t/1", ONE, ""), "", FAKE_CAPABILITIES) == ()


@given(st.text(alphabet=st.sampled_from("ab \n`~😀&;<"), max_size=300), st.integers(1, 80))
def test_splitting_ends_whatever_the_limit(text, limit):
    items = text_items(notice("t/1", ONE, ""), text, replace(FAKE_CAPABILITIES, text_unit=TextUnit.UTF16), limit=limit)
    assert len({item.id for item in items}) == len(items)
    assert bool(items) == bool(text)


async def test_a_message_for_a_channel_that_is_back_is_sent_once_when_it_is_rung_again(post):
    """A host without the channel leaves the row alone; `lodger run` beside a stopped host is one."""
    await post.store.post([notice("t/1", ONE, "one")])
    without = Deliverer(store=post.store, channels={}, clock=post.clock, card_failed=None, mask=str)
    assert await without.deliver_chat(chat_key(ONE)) == ELSEWHERE
    row = await post.store.outbox_row("t/1")
    assert (row.state, row.item.attempts, row.error) == (OutboxState.PENDING, 0, "")
    await post.deliverer.deliver_chat(chat_key(ONE))
    assert post.texts() == ["one"]


async def test_a_send_that_never_ends_does_not_hold_the_host(post):
    channel = HeldChannel(post.clock)
    deliverer = Deliverer(
        store=post.store,
        channels={"fake": channel},
        clock=post.clock,
        card_failed=None,
        mask=str,
        let_end=timedelta(milliseconds=5),
    )
    await post.store.post([notice("t/1", ONE, "one")])
    async with asyncio.timeout(60):
        delivering = asyncio.create_task(deliverer.deliver_chat(chat_key(ONE)))
        await channel.entered.wait()
        delivering.cancel()
        await asyncio.wait({delivering})
    assert delivering.cancelled()
    assert await post.state("t/1") is not OutboxState.SENT
    assert [task for task in asyncio.all_tasks() if task.get_name() == "delivery"] == []


async def test_a_second_order_to_stop_ends_a_delivery_at_once(post):
    channel = HeldChannel(post.clock)
    deliverer = Deliverer(store=post.store, channels={"fake": channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "one")])
    async with asyncio.timeout(60):
        delivering = asyncio.create_task(deliverer.deliver_chat(chat_key(ONE)))
        await channel.entered.wait()
        for _ in range(2):
            delivering.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({delivering})
    assert delivering.cancelled()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "delivery"] == []


async def test_a_delivery_is_recorded_once_however_long_the_disk_is_full(post):
    store = Forgetful(post.store)
    store.failures = 5
    deliverer = Deliverer(store=store, channels={"fake": post.channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "one"), notice("t/2", ONE, "two")])
    for _ in range(5):
        with pytest.raises(StoreUnavailable):
            await deliverer.deliver_chat(chat_key(ONE))
    await deliverer.deliver_chat(chat_key(ONE))
    assert post.texts() == ["one", "two"]
    assert len(post.channel.deliveries) == 2


async def test_text_that_was_amended_while_its_delivery_was_not_recorded_is_shown(post):
    """What is on record as delivered is what was delivered, not what stands in the row meanwhile."""
    store = Forgetful(post.store)
    deliverer = Deliverer(store=store, channels={"fake": post.channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "draft")])
    with pytest.raises(StoreUnavailable):
        await deliverer.deliver_chat(chat_key(ONE))
    await post.store.amend("t/1", TextContent(markdown="final"))
    await deliverer.deliver_chat(chat_key(ONE))
    assert post.texts() == ["final"]


@pytest.mark.parametrize("lookup", [False, True])
async def test_a_platform_that_was_away_uses_up_no_try_of_an_unknown_send(post, lookup):
    """It was down, so nothing can have been sent; only a lost answer counts."""
    post.channel._capabilities = replace(post.channel.capabilities, lookup=lookup)
    post.channel.fail_next(*[ChannelDown("gone")] * MAX_UNKNOWN, SendUnknown("timeout"))
    await post.send("one")
    for _ in range(MAX_UNKNOWN + 1):
        await post.later(timedelta(minutes=5))
    assert post.texts() == ["one"]
    assert await post.state("t/1") is OutboxState.SENT


class Blind(FakeChannel):
    """A platform on which nobody can look for a message, and whose answers are all lost."""

    async def find(self, item):
        return None

    async def deliver(self, item):
        self.lose_next_answer()
        return await super().deliver(item)


@pytest.mark.parametrize("lookup", [False, True])
async def test_a_send_whose_answers_are_all_lost_is_visible_twice_at_most(post, lookup):
    channel = Blind("fake", capabilities=replace(FAKE_CAPABILITIES, lookup=lookup), clock=post.clock)
    deliverer = Deliverer(store=post.store, channels={"fake": channel}, clock=post.clock, card_failed=None, mask=str)
    await post.store.post([notice("t/1", ONE, "one")])
    for _ in range(6):
        await deliverer.deliver_chat(chat_key(ONE))
        await post.clock.advance(timedelta(minutes=5))
    assert len(channel.messages) == 2
    assert await post.state("t/1") is OutboxState.UNKNOWN


async def test_giving_up_fails_one_row_and_denies_what_a_card_asks(post):
    await post.store.post([OutboundItem(id="card", address=ONE, content=ASKING), notice("t/2", ONE, "two")])
    await post.deliverer.give_up(chat_key(ONE), "a bug")
    assert post.failed_cards == ["card: a bug"]
    assert [await post.state(item_id) for item_id in ("card", "t/2")] == [OutboxState.FAILED, OutboxState.PENDING]


async def test_giving_up_a_chat_without_messages_changes_nothing(post):
    await post.send("one")
    await post.deliverer.give_up(chat_key(ONE), "late")
    assert await post.state("t/1") is OutboxState.SENT
