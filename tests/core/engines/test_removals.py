"""Handled doorbells are forgotten late, together, and not lost when the store fails."""

from __future__ import annotations

import asyncio

import pytest

from core.contracts.clock import FakeClock
from core.contracts.engine import WorkItem
from core.contracts.errors import StoreUnavailable
from core.engines.inmemory import InMemoryWorkItems
from core.engines.removals import BATCH, DELAY, LONGEST_WAIT, LazyRemovals


class FaultyWorkItems(InMemoryWorkItems):
    """Fails the first removals; notes what the others took together."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures = failures
        self.tries = 0
        self.batches: list[set[str]] = []

    async def remove(self, ids: tuple[str, ...]) -> None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("locked")
        self.batches.append(set(ids))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_removals_of_a_second_are_one_commit():
    clock, items = FakeClock(), FaultyWorkItems()
    removals = LazyRemovals(items, clock)
    task = asyncio.create_task(removals.run())
    for item_id in "abc":
        removals.add([item_id])
        await settle()
    assert items.batches == []
    await clock.advance(DELAY)
    await settle()
    assert items.batches == [{"a", "b", "c"}]
    task.cancel()
    await asyncio.wait([task])


async def test_what_could_not_be_removed_is_removed_with_the_next_batch():
    clock, items = FakeClock(), FaultyWorkItems(failures=1)
    removals = LazyRemovals(items, clock)
    task = asyncio.create_task(removals.run())
    removals.add(["a"])
    await settle()
    await clock.advance(DELAY)
    await settle()
    removals.add(["b"])
    await settle()
    await clock.advance(DELAY)
    await settle()
    assert items.batches == [{"a", "b"}]
    task.cancel()
    await asyncio.wait([task])


async def test_a_store_that_stays_full_is_tried_ever_more_rarely_and_told_in_one_line_each(caplog):
    clock, items = FakeClock(), FaultyWorkItems(failures=1_000)
    removals = LazyRemovals(items, clock)
    task = asyncio.create_task(removals.run())
    removals.add(["a"])
    tried_at = []
    for second in range(1, 93):
        before = items.tries
        await settle()
        await clock.advance(DELAY)
        await settle()
        removals.add(f"{second}-{number}" for number in range(BATCH))
        if items.tries > before:
            tried_at.append(second)
    assert tried_at == [1, 2, 4, 8, 16, 32, 62, 92]
    assert len(caplog.records) == items.tries
    assert all(record.exc_info is None and record.error == "StoreUnavailable" for record in caplog.records)
    task.cancel()
    await asyncio.wait([task])


async def test_when_the_store_works_again_removals_are_quick_again():
    clock, items = FakeClock(), FaultyWorkItems(failures=3)
    removals = LazyRemovals(items, clock)
    task = asyncio.create_task(removals.run())
    removals.add(["a"])
    await settle()
    for _ in range(3):
        await clock.advance(LONGEST_WAIT)
        await settle()
    removals.add(["b"])
    await settle()
    await clock.advance(DELAY)
    await settle()
    assert items.batches == [{"a"}, {"b"}]
    task.cancel()
    await asyncio.wait([task])


async def test_nothing_handled_is_no_commit():
    items = FaultyWorkItems()
    await LazyRemovals(items, FakeClock()).flush()
    assert items.batches == []


async def test_the_fake_forgets_what_rolls_back():
    items = InMemoryWorkItems()
    item = WorkItem(id="a", queue="q", key="k", due_at=FakeClock().now())

    def insert_and_fail() -> None:
        with items.transaction() as tx:
            items.insert(tx, item)
            raise LookupError

    with pytest.raises(LookupError):
        insert_and_fail()
    assert await items.load() == ()


class Calendar(FaultyWorkItems):
    """Notes what was put off together."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(failures)
        self.put_off: list[dict] = []

    async def postpone(self, items) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("locked")
        self.put_off.append(dict(items))


async def test_what_is_put_off_within_a_second_is_one_commit_and_the_last_time_counts():
    clock, items = FakeClock(), Calendar()
    removals = LazyRemovals(items, clock)
    task = asyncio.create_task(removals.run())
    soon, later = clock.now() + DELAY, clock.now() + LONGEST_WAIT
    removals.postpone(["a", "b"], soon)
    removals.postpone(["b"], later)
    await settle()
    await clock.advance(DELAY)
    await settle()
    assert items.put_off == [{"a": soon, "b": later}]
    await removals.flush()
    assert len(items.put_off) == 1
    task.cancel()
    await asyncio.wait([task])


async def test_what_is_removed_is_not_put_off_as_well():
    clock, items = FakeClock(), Calendar()
    removals = LazyRemovals(items, clock)
    removals.postpone(["a"], clock.now())
    removals.add(["a"])
    await removals.flush()
    await removals.flush()
    assert (items.batches, items.put_off) == ([{"a"}], [])


async def test_what_could_not_be_put_off_is_put_off_with_the_next_batch():
    clock, items = FakeClock(), Calendar(failures=1)
    removals = LazyRemovals(items, clock)
    removals.postpone(["a"], clock.now())
    await removals.flush()
    assert items.put_off == []
    await removals.flush()
    assert items.put_off == [{"a": clock.now()}]


async def test_what_is_put_off_once_more_during_a_flush_is_stored_again():
    clock, gate, entered = FakeClock(), asyncio.Event(), asyncio.Event()

    class Slow(Calendar):
        async def postpone(self, items) -> None:
            entered.set()
            await gate.wait()
            await super().postpone(items)

    items = Slow()
    removals = LazyRemovals(items, clock)
    soon, later = clock.now() + DELAY, clock.now() + LONGEST_WAIT
    removals.postpone(["a"], soon)
    flushing = asyncio.create_task(removals.flush())
    await entered.wait()
    removals.postpone(["a", "b"], later)
    gate.set()
    await flushing
    await removals.flush()
    assert items.put_off == [{"a": soon}, {"a": later, "b": later}]
