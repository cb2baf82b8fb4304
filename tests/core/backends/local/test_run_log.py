"""The log of one run: numbered, stored before it is shown, followed by any number of readers."""

from __future__ import annotations

import asyncio

import pytest

from core.backends.local.run_log import FLUSH_AFTER, FLUSH_BYTES, HELD_BYTES, RunLog
from core.contracts.clock import FakeClock
from core.contracts.errors import StoreUnavailable
from core.contracts.events import PromptRecompiled, ReasoningDelta, RunEvent, RunFinished, TextDelta
from core.contracts.ids import ConversationId, RunId
from core.contracts.runs import Claim, StopReason

RUN = RunId("run-1")
CLAIM = Claim(conversation_id=ConversationId("conv-1"), epoch=1)


class EventStore:
    """Keeps events; `gate` holds every write, `broken` refuses it."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.broken = False

    async def append_events(self, claim, events) -> None:
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise StoreUnavailable("gone")
        self.events.extend(events)


def make_log(store: EventStore, clock: FakeClock | None = None, stored: tuple[RunEvent, ...] = ()) -> RunLog:
    return RunLog(claim=CLAIM, run_id=RUN, stored=stored, store=store, clock=clock or FakeClock())


def finished(seq: int) -> RunEvent:
    return RunEvent(run_id=RUN, seq=seq, body=RunFinished(stop_reason=StopReason.END_TURN))


async def read(log: RunLog, after: int = 0) -> list[RunEvent]:
    async with asyncio.timeout(60):
        return [event async for event in log.follow(after)]


async def test_text_that_waits_together_is_one_event():
    store = EventStore()
    log = make_log(store)
    for piece in ("Hel", "lo", "!"):
        log.add(TextDelta(text=piece))
    await log.flush()
    assert [(event.seq, event.body) for event in store.events] == [(1, TextDelta(text="Hello!"))]


async def test_text_is_joined_only_with_the_text_right_before_it():
    store = EventStore()
    log = make_log(store)
    for body in (TextDelta(text="a"), ReasoningDelta(text="hm"), TextDelta(text="b")):
        log.add(body)
    await log.flush()
    log.add(TextDelta(text="c"))
    await log.flush()
    assert [event.seq for event in store.events] == [1, 2, 3, 4]
    assert log.last_seq == 4


async def test_numbers_go_on_behind_what_the_store_has():
    first = RunEvent(run_id=RUN, seq=1, body=PromptRecompiled(reason="new"))
    log = make_log(EventStore(), stored=(first,))
    log.add(TextDelta(text="a"))
    await log.flush()
    log.close((finished(3),))
    assert [event.seq for event in await read(log)] == [1, 2, 3]


async def test_nothing_is_shown_before_it_is_stored():
    store = EventStore()
    store.gate = asyncio.Event()
    log = make_log(store)
    log.add(TextDelta(text="a"))
    reader = log.follow(0)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(anext(reader))
        flushing = group.create_task(log.flush())
        await store.entered.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not first.done()
        store.gate.set()
        await flushing
        assert (await first).seq == 1
    await reader.aclose()


async def test_waiting_text_is_flushed_when_its_time_has_come():
    store, clock = EventStore(), FakeClock()
    log = make_log(store, clock)
    flusher = asyncio.create_task(log.flush_in_time())
    log.add(TextDelta(text="a"))
    while not clock.sleeping:
        await asyncio.sleep(0)
    await clock.advance(FLUSH_AFTER / 2)
    assert store.events == []
    await clock.advance(FLUSH_AFTER / 2)
    assert len(store.events) == 1
    flusher.cancel()
    await asyncio.gather(flusher, return_exceptions=True)


def test_much_text_is_to_be_flushed_at_once():
    log = make_log(EventStore())
    log.add(TextDelta(text="x" * (FLUSH_BYTES - 2)))
    assert not log.is_full
    log.add(TextDelta(text="ä"))
    assert log.is_full
    log.take_pending()
    assert not log.is_full


def test_text_that_waits_long_becomes_events_of_bounded_size():
    log = make_log(EventStore())
    for _ in range(100):
        log.add(TextDelta(text="x" * 300))
    events = log.take_pending()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert log.last_seq == len(events)
    assert "".join(event.body.text for event in events) == "x" * 30_000
    assert {len(event.body.text) for event in events[:-1]} == {2_100}


def test_a_log_is_flooded_when_very_much_text_waits():
    log = make_log(EventStore())
    log.add(TextDelta(text="x" * (HELD_BYTES - 1)))
    assert not log.is_flooded
    log.add(TextDelta(text="x"))
    assert log.is_flooded
    log.take_pending()
    assert not log.is_flooded


@pytest.mark.parametrize("pieces", [1, 4])
async def test_much_text_is_flushed_without_waiting_for_its_time(pieces):
    store = EventStore()
    log = make_log(store)
    flusher = asyncio.create_task(log.flush_in_time())
    async with asyncio.timeout(60):
        for _ in range(pieces):
            log.add(TextDelta(text="x" * (FLUSH_BYTES // pieces)))
            await asyncio.sleep(0)
        await store.entered.wait()
    assert [event.body.text for event in store.events] == ["x" * FLUSH_BYTES]
    flusher.cancel()
    await asyncio.gather(flusher, return_exceptions=True)


async def test_text_that_comes_during_a_flush_is_stored_behind_it():
    store = EventStore()
    store.gate = asyncio.Event()
    log = make_log(store)
    log.add(TextDelta(text="a"))
    async with asyncio.TaskGroup() as group:
        group.create_task(log.flush())
        await store.entered.wait()
        log.add(TextDelta(text="b"))
        group.create_task(log.flush())
        store.gate.set()
    assert [(event.seq, event.body.text) for event in store.events] == [(1, "a"), (2, "b")]


async def test_nothing_is_handed_over_behind_a_flush_that_failed():
    """The end of the run would be stored with a gap before it."""
    store = EventStore()
    store.broken = True
    log = make_log(store)
    log.add(TextDelta(text="a"))
    with pytest.raises(StoreUnavailable):
        await log.flush()
    log.add(TextDelta(text="b"))
    with pytest.raises(StoreUnavailable):
        log.take_pending()


async def test_a_reader_starts_where_it_wishes_and_ends_with_the_log():
    log = make_log(EventStore())
    for number in range(3):
        log.add(ReasoningDelta(text=str(number)))
    await log.flush()
    log.close((finished(4),))
    assert [event.seq for event in await read(log, after=2)] == [3, 4]
    assert await read(log, after=4) == []


async def test_readers_that_wait_are_all_woken():
    log = make_log(EventStore())
    readers = [asyncio.create_task(read(log)) for _ in range(5)]
    for number in range(3):
        await asyncio.sleep(0)
        log.add(ReasoningDelta(text=str(number)))
        await log.flush()
    log.close((finished(4),))
    first, *others = await asyncio.gather(*readers)
    assert [event.seq for event in first] == [1, 2, 3, 4]
    assert all(other == first for other in others)


async def test_a_write_that_fails_shows_nothing_and_raises():
    store = EventStore()
    store.broken = True
    log = make_log(store)
    log.add(TextDelta(text="a"))
    with pytest.raises(StoreUnavailable):
        await log.flush()
    log.abandon("gone")
    (only,) = await read(log)
    assert (only.seq, only.body) == (1, RunFinished(stop_reason=StopReason.ERROR, error="gone"))


async def test_abandoning_a_closed_log_changes_nothing():
    log = make_log(EventStore())
    log.close((finished(1),))
    log.abandon("late")
    assert await read(log) == [finished(1)]
