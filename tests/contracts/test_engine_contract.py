"""What every Engine promises; run on the embedded engine over the database and over its fake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from core.contracts.clock import FakeClock
from core.contracts.engine import Again, Handler, Transaction, WorkItem, WorkItems
from core.contracts.errors import InvalidInput
from core.engines.embedded import EmbeddedEngine
from core.engines.inmemory import InMemoryWorkItems
from core.stores.connection import Database
from core.stores.work_items import SqlWorkItems

SECOND = timedelta(seconds=1)
QUEUE = "conversations"

Transact = Callable[[Callable[[Transaction], None]], Awaitable[None]]


class WatchedWorkItems:
    """Lets a test wait until an engine has loaded what was stored."""

    def __init__(self, work_items: WorkItems) -> None:
        self._work_items = work_items
        self.loaded = asyncio.Event()
        self.insert = work_items.insert
        self.remove = work_items.remove
        self.postpone = work_items.postpone

    async def load(self) -> tuple[WorkItem, ...]:
        items = await self._work_items.load()
        self.loaded.set()
        return items


class Bench:
    """Stored doorbells that outlive engines, as a database outlives processes."""

    def __init__(self, work_items: WorkItems, transact: Transact) -> None:
        self.work_items = work_items
        self.clock = FakeClock()
        self._transact = transact
        self._count = 0
        self.engine = EmbeddedEngine(work_items, self.clock)
        self.given_up: list[tuple[str, str, str]] = []

    async def submit(self, key: str, *, after: timedelta = timedelta(0), item_id: str = "", queue: str = QUEUE) -> None:
        self._count += 1
        item = WorkItem(id=item_id or f"item-{self._count}", queue=queue, key=key, due_at=self.clock.now() + after)
        await self._transact(lambda tx: self.engine.submit(tx, item))

    async def submit_and_roll_back(self, key: str) -> None:
        def fail(tx: Transaction) -> None:
            self.engine.submit(tx, WorkItem(id="lost", queue=QUEUE, key=key, due_at=self.clock.now()))
            raise LookupError

        with pytest.raises(LookupError):
            await self._transact(fail)

    @asynccontextmanager
    async def running(self, handler: Handler, *, limit: int | None = None) -> AsyncIterator[None]:
        """Run a new engine, as a new process would."""
        watched = WatchedWorkItems(self.work_items)
        self.engine = EmbeddedEngine(watched, self.clock, limit=limit)
        run = asyncio.create_task(self.engine.run({QUEUE: handler}, self.gave_up))
        try:
            async with asyncio.timeout(60):
                await watched.loaded.wait()
            await settle()
            yield
        finally:
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    async def gave_up(self, queue: str, key: str, error: Exception) -> None:
        self.given_up.append((queue, key, str(error)))

    async def stored(self) -> list[str]:
        return [item.id for item in await self.work_items.load()]


@pytest.fixture(params=["database", "fake"])
async def bench(request, tmp_path):
    if request.param == "fake":
        items = InMemoryWorkItems()

        async def transact(operation: Callable[[Transaction], None]) -> None:
            with items.transaction() as tx:
                operation(tx)

        yield Bench(items, transact)
    else:
        database = Database.open(tmp_path / "host.db")
        yield Bench(SqlWorkItems(database), database.write)
        await database.close()


class Rings:
    """A handler that notes its keys; what it returns or raises can be set."""

    def __init__(self, *outcomes: Again | Exception | None) -> None:
        self.keys: list[str] = []
        self._outcomes = list(outcomes)

    async def __call__(self, key: str) -> Again | None:
        self.keys.append(key)
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Gate:
    """A handler that holds until it is let go; knows who is inside and how often it was entered."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside: list[str] = []
        self.most_inside = 0
        self.entered = 0
        self.left = 0

    async def __call__(self, key: str) -> None:
        self.entered += 1
        self.inside.append(key)
        self.most_inside = max(self.most_inside, len(self.inside))
        try:
            await self.open.wait()
        finally:
            await asyncio.sleep(0)
            self.inside.remove(key)
            self.left += 1


async def eventually(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return once the condition holds; fail after five seconds."""
    async with asyncio.timeout(60):
        while True:
            outcome = condition()
            if outcome is True or (not isinstance(outcome, bool) and await outcome):
                return
            await asyncio.sleep(0)


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(30):
        await asyncio.sleep(0)


async def test_a_committed_doorbell_rings_with_its_key(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])


async def test_a_transaction_that_rolls_back_rings_nothing(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        await bench.submit_and_roll_back("c1")
        await bench.submit("c2")
        await eventually(lambda: rings.keys == ["c2"])
    assert await bench.stored() == []


async def test_what_was_submitted_before_the_start_rings_at_the_start(bench: Bench):
    rings = Rings()
    await bench.submit("c1")
    async with bench.running(rings):
        await eventually(lambda: rings.keys == ["c1"])


async def test_a_due_item_rings_at_its_time_and_not_before(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        await bench.submit("late", after=60 * SECOND)
        await bench.submit("soon", after=10 * SECOND)
        await settle()
        assert rings.keys == []
        await bench.clock.advance(10 * SECOND)
        await eventually(lambda: rings.keys == ["soon"])
        await bench.clock.advance(49 * SECOND)
        await settle()
        assert rings.keys == ["soon"]
        await bench.clock.advance(SECOND)
        await eventually(lambda: rings.keys == ["soon", "late"])


async def test_a_due_item_of_a_dead_process_rings_at_its_time(bench: Bench):
    rings = Rings()
    await bench.submit("c1", after=60 * SECOND)
    async with bench.running(rings):
        await settle()
    await bench.clock.advance(60 * SECOND)
    async with bench.running(rings):
        await eventually(lambda: rings.keys == ["c1"])


async def test_one_id_is_stored_once(bench: Bench):
    rings = Rings()
    for key in ("c1", "c2"):
        await bench.submit(key, item_id="same", after=SECOND)
    assert await bench.stored() == ["same"]
    async with bench.running(rings):
        await bench.clock.advance(SECOND)
        await eventually(lambda: rings.keys == ["c1"])


async def test_one_handler_at_a_time_for_a_key_and_one_more_ring_for_all_that_came_meanwhile(bench: Bench):
    gate = Gate()
    async with bench.running(gate):
        await bench.submit("c1")
        await eventually(lambda: gate.inside == ["c1"])
        for _ in range(5):
            await bench.submit("c1")
        await settle()
        assert (gate.entered, gate.most_inside) == (1, 1)
        gate.open.set()
        await eventually(lambda: gate.left == 2)
        await settle()
    assert (gate.entered, gate.most_inside) == (2, 1)


async def test_handlers_of_different_keys_run_at_the_same_time(bench: Bench):
    gate = Gate()
    async with bench.running(gate):
        await bench.submit("c1")
        await bench.submit("c2")
        await eventually(lambda: sorted(gate.inside) == ["c1", "c2"])


async def test_a_limit_bounds_how_many_handlers_run(bench: Bench):
    gate = Gate()
    async with bench.running(gate, limit=2):
        for number in range(5):
            await bench.submit(f"c{number}")
        await eventually(lambda: len(gate.inside) == 2)
        await settle()
        gate.open.set()
        await eventually(lambda: gate.left == 5)
    assert gate.most_inside == 2


async def test_what_a_dead_process_held_is_rung_again(bench: Bench):
    gate, rings = Gate(), Rings()
    async with bench.running(gate):
        await bench.submit("c1")
        await eventually(lambda: gate.inside == ["c1"])
    async with bench.running(rings):
        await eventually(lambda: rings.keys == ["c1"])


async def test_cancellation_cancels_handlers_and_awaits_them(bench: Bench):
    gate = Gate()
    async with bench.running(gate):
        await bench.submit("c1")
        await eventually(lambda: gate.inside == ["c1"])
    assert (gate.left, gate.inside) == (1, [])


async def test_handled_items_are_forgotten_within_a_second(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])
        await settle()
        await bench.clock.advance(SECOND)

        async def forgotten() -> bool:
            return await bench.stored() == []

        await eventually(forgotten)


async def test_a_hundred_handled_items_are_forgotten_at_once(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        for number in range(100):
            await bench.submit(f"c{number}")

        async def forgotten() -> bool:
            return await bench.stored() == []

        await eventually(forgotten)


async def test_handled_items_are_forgotten_at_the_end(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])
        await settle()
    assert await bench.stored() == []


async def test_a_failing_handler_backs_off_and_is_given_up_after_five_failures(bench: Bench):
    rings = Rings(*[ValueError(f"failure {n}") for n in range(1, 6)])
    async with bench.running(rings):
        await bench.submit("c1")
        for failures, back_off in enumerate((1, 2, 4, 8), start=1):
            await eventually(lambda failures=failures: len(rings.keys) == failures)
            await settle()
            await bench.clock.advance(back_off * SECOND - timedelta(milliseconds=1))
            await settle()
            assert len(rings.keys) == failures
            await bench.clock.advance(timedelta(milliseconds=1))
        await eventually(lambda: bench.given_up == [(QUEUE, "c1", "failure 5")])
        await bench.submit("c1")
        await eventually(lambda: len(rings.keys) == 6)
    assert await bench.stored() == []


async def test_rings_do_not_shorten_a_back_off(bench: Bench):
    rings = Rings(ValueError())
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])
        await bench.submit("c1")
        await bench.submit("c2")
        await eventually(lambda: rings.keys == ["c1", "c2"])
        await settle()
        assert rings.keys == ["c1", "c2"]
        await bench.clock.advance(SECOND)
        await eventually(lambda: rings.keys == ["c1", "c2", "c1"])


async def test_a_success_forgets_earlier_failures(bench: Bench):
    rings = Rings(*[ValueError()] * 4, None, *[ValueError()] * 4, None)
    async with bench.running(rings):
        for done in (0, 5):
            await bench.submit("c1")
            for failures in range(1, 5):
                await eventually(lambda tries=done + failures: len(rings.keys) == tries)
                await settle()
                await bench.clock.advance(8 * SECOND)
            await eventually(lambda tries=done + 5: len(rings.keys) == tries)
    assert bench.given_up == []


async def test_a_failed_item_stays_stored_until_it_is_handled(bench: Bench):
    failing, rings = Rings(ValueError()), Rings()
    async with bench.running(failing):
        await bench.submit("c1")
        await eventually(lambda: failing.keys == ["c1"])
    async with bench.running(rings):
        await eventually(lambda: rings.keys == ["c1"])


async def test_giving_up_that_fails_is_tried_again(bench: Bench):
    rings = Rings(*[ValueError()] * 6)
    told = 0

    async def gave_up(queue: str, key: str, error: Exception) -> None:
        nonlocal told
        told += 1
        if told == 1:
            raise OSError

    bench.gave_up = gave_up
    async with bench.running(rings):
        await bench.submit("c1")
        for tries in range(1, 6):
            await eventually(lambda tries=tries: len(rings.keys) == tries)
            await settle()
            await bench.clock.advance(8 * SECOND)
        await eventually(lambda: told == 2)
    assert len(rings.keys) == 6


async def test_a_handler_that_cancels_itself_has_failed(bench: Bench):
    entered = 0

    async def handler(key: str) -> None:
        nonlocal entered
        entered += 1
        if entered == 1:
            raise asyncio.CancelledError

    async with bench.running(handler):
        await bench.submit("c1")
        await eventually(lambda: entered == 1)
        await settle()
        await bench.clock.advance(SECOND)
        await eventually(lambda: entered == 2)


async def test_again_rings_after_its_wait(bench: Bench):
    rings = Rings(Again(wait=60 * SECOND))
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])
        await settle()
        await bench.clock.advance(59 * SECOND)
        await settle()
        assert rings.keys == ["c1"]
        await bench.clock.advance(SECOND)
        await eventually(lambda: rings.keys == ["c1", "c1"])


async def test_again_survives_the_process(bench: Bench):
    rings = Rings(Again(wait=60 * SECOND))
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])
        await settle()
        await bench.clock.advance(2 * SECOND)
    async with bench.running(rings):
        await eventually(lambda: rings.keys == ["c1", "c1"])


async def test_the_latest_wish_counts(bench: Bench):
    rings = Rings(Again(wait=60 * SECOND), None)
    async with bench.running(rings):
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1"])
        await bench.submit("c1")
        await eventually(lambda: rings.keys == ["c1", "c1"])
        await settle()
        await bench.clock.advance(120 * SECOND)
        await settle()
    assert rings.keys == ["c1", "c1"]
    assert await bench.stored() == []


async def test_an_item_of_a_queue_without_handler_stays_stored(bench: Bench):
    rings = Rings()
    async with bench.running(rings):
        await bench.submit("c1", queue="later release", item_id="keep")
        await bench.submit("c2")
        await eventually(lambda: rings.keys == ["c2"])
    assert await bench.stored() == ["keep"]


async def test_a_transaction_of_another_store_is_refused(bench: Bench):
    class Stranger:
        def after_commit(self, callback: Callable[[], None]) -> None:
            raise AssertionError

    with pytest.raises(InvalidInput):
        bench.engine.submit(Stranger(), WorkItem(id="a", queue=QUEUE, key="c1", due_at=bench.clock.now()))
    assert await bench.stored() == []


async def test_stored_items_load_in_order_of_their_time(bench: Bench):
    for seconds in (3, 1, 2):
        await bench.submit("c", item_id=f"in {seconds}", after=seconds * SECOND)
    assert await bench.stored() == ["in 1", "in 2", "in 3"]
    await bench.work_items.remove(("in 2", "unknown"))
    await bench.work_items.remove(())
    assert await bench.stored() == ["in 1", "in 3"]
