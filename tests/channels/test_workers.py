"""Tasks that are stopped between two calls."""

from __future__ import annotations

import asyncio

import pytest

from channels.workers import Beside, Worker, outlast


async def test_a_worker_that_waits_ends_at_once():
    async def work(worker: Worker) -> None:
        del worker
        await asyncio.get_running_loop().create_future()

    worker = Worker(work)
    await asyncio.sleep(0)
    worker.stop()
    await outlast(worker.task)
    assert worker.task.cancelled()


async def test_a_call_that_is_under_way_is_ended_and_no_other_begun():
    calls: list[str] = []
    answered, begun = asyncio.Event(), asyncio.Event()

    async def work(worker: Worker) -> None:
        while True:
            with worker.calling():
                calls.append("begun")
                begun.set()
                await answered.wait()
                calls.append("ended")

    worker = Worker(work)
    await begun.wait()
    worker.stop()
    ended = asyncio.create_task(outlast(worker.task))
    await asyncio.sleep(0)
    assert not ended.done()
    answered.set()
    await ended
    assert calls == ["begun", "ended"]


async def test_whoever_waits_for_the_end_and_is_cancelled_waits_all_the_same():
    answered, begun = asyncio.Event(), asyncio.Event()

    async def work(worker: Worker) -> None:
        with worker.calling():
            begun.set()
            await answered.wait()

    worker = Worker(work)
    await begun.wait()
    worker.stop()
    waiting = asyncio.create_task(outlast(worker.task))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert worker.task.done()


async def test_what_broke_a_worker_is_raised():
    async def work(worker: Worker) -> None:
        raise RuntimeError(f"{type(worker).__name__} broke")

    with pytest.raises(RuntimeError, match="Worker broke"):
        await outlast(Worker(work).task)


async def test_what_goes_on_beside_is_kept_until_it_ends_and_stopped_at_the_end():
    beside, ended = Beside(), asyncio.Event()

    async def quick() -> str:
        return "done"

    async def endless() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    beside.begin(endless(), name="endless")
    assert await beside.begin(quick()) == "done"
    await beside.aclose()
    assert ended.is_set()
