"""What is particular to the embedded engine: commits come from another thread, loops end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.contracts.clock import FakeClock, SystemClock
from core.contracts.engine import Again, WorkItem, WorkItems
from core.contracts.errors import StoreUnavailable
from core.engines.embedded import EmbeddedEngine
from core.engines.inmemory import InMemoryWorkItems

NOW = FakeClock().now()


async def give_up(queue: str, key: str, error: Exception) -> None:
    raise AssertionError


async def ignore(key: str) -> None:
    """Answer a doorbell by doing nothing."""


def commit(items: InMemoryWorkItems, engine: EmbeddedEngine, *keys: str) -> None:
    for key in keys:
        with items.transaction() as tx:
            engine.submit(tx, WorkItem(id=key, queue="q", key=key, due_at=NOW))


async def test_a_commit_in_another_thread_wakes_the_loop():
    items = InMemoryWorkItems()
    engine = EmbeddedEngine(items, SystemClock())
    rung = asyncio.Event()

    async def handler(key: str) -> None:
        rung.set()

    run = asyncio.create_task(engine.run({"q": handler}, give_up))
    await asyncio.sleep(0)
    await asyncio.to_thread(commit, items, engine, "a")
    async with asyncio.timeout(60):
        await rung.wait()
    run.cancel()
    await asyncio.wait([run])


def test_a_commit_without_a_running_loop_is_kept_for_the_next_start():
    items = InMemoryWorkItems()
    engine = EmbeddedEngine(items, SystemClock())
    rung: list[str] = []

    async def handler(key: str) -> None:
        rung.append(key)

    async def run_once() -> None:
        run = asyncio.create_task(engine.run({"q": handler}, give_up))
        for _ in range(5):
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(run_once())
    commit(items, engine, "a")
    assert rung == []
    asyncio.run(run_once())
    assert rung == ["a"]


async def test_what_arrives_while_the_engine_ends_starts_no_handler():
    items = InMemoryWorkItems()
    engine = EmbeddedEngine(items, FakeClock())
    entered: list[str] = []

    async def handler(key: str) -> None:
        entered.append(key)
        try:
            await asyncio.Event().wait()
        finally:
            commit(items, engine, "late")
            await asyncio.sleep(0)

    commit(items, engine, "early")
    run = asyncio.create_task(engine.run({"q": handler}, give_up))
    for _ in range(5):
        await asyncio.sleep(0)
    run.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([run])
    assert entered == ["early"]
    assert {item.id for item in await items.load()} == {"early", "late"}


async def test_an_engine_that_cannot_load_says_so_and_ends():
    class UnreadableWorkItems(InMemoryWorkItems):
        async def load(self) -> tuple[WorkItem, ...]:
            raise StoreUnavailable("locked")

    items: WorkItems = UnreadableWorkItems()
    with pytest.raises(ExceptionGroup) as ended:
        await EmbeddedEngine(items, FakeClock()).run({"q": ignore}, give_up)
    assert ended.group_contains(StoreUnavailable)


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("wish", "at_the_start"),
    [
        (Again(wait=HOUR), []),
        (Again(wait=timedelta(seconds=1)), ["a"]),
        (Again(wait=HOUR, over_restart=False), ["a"]),
    ],
)
async def test_a_key_that_wished_to_rest_for_long_sleeps_through_the_next_start(wish, at_the_start):
    """Thousands may wait for people; what rests for a moment, or for another process, is looked at again."""
    items, clock = InMemoryWorkItems(), FakeClock()
    rung: list[str] = []

    async def handler(key: str) -> Again:
        rung.append(key)
        return wish

    async def run_for(duration: timedelta) -> list[str]:
        rung.clear()
        engine = EmbeddedEngine(items, clock)
        run = asyncio.create_task(engine.run({"q": handler}, give_up))
        await settle()
        await clock.advance(duration)
        await settle()
        run.cancel()
        await asyncio.wait([run])
        return list(rung)

    commit(items, EmbeddedEngine(items, clock), "a")
    assert await run_for(timedelta(0)) == ["a"]
    assert await run_for(timedelta(0)) == at_the_start
    assert (await run_for(timedelta(hours=2)))[:1] == ["a"]


async def test_a_new_ring_wakes_a_key_that_rests_in_any_process():
    items, clock = InMemoryWorkItems(), FakeClock()
    rung: list[str] = []

    async def handler(key: str) -> Again | None:
        rung.append(key)
        return Again(wait=timedelta(hours=1)) if len(rung) == 1 else None

    engine = EmbeddedEngine(items, clock)
    for keys in (("a",), ()):
        run = asyncio.create_task(engine.run({"q": handler}, give_up))
        await settle()
        commit(items, engine, *keys)
        await settle()
        run.cancel()
        await asyncio.wait([run])
    with items.transaction() as tx:
        engine.submit(tx, WorkItem(id="b", queue="q", key="a", due_at=clock.now()))
    run = asyncio.create_task(engine.run({"q": handler}, give_up))
    await settle()
    assert rung == ["a", "a"]
    await clock.advance(timedelta(hours=1))
    await settle()
    run.cancel()
    await asyncio.wait([run])
    assert await items.load() == ()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
