"""Blocking work that is always awaited to its end."""

import asyncio
import threading

import pytest

from core.tools.threads import StopFlag, run_to_end


async def test_the_result_and_the_error_of_the_thread_come_out():
    def broken():
        raise KeyError("x")

    assert await run_to_end(lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(KeyError):
        await run_to_end(broken)


async def test_a_caller_cancelled_twice_still_waits_for_the_thread():
    leave, ended, stop = threading.Event(), [], StopFlag()

    def work():
        leave.wait(5)
        ended.append(stop.is_set)
        raise RuntimeError

    task = asyncio.ensure_future(run_to_end(work, on_cancel=stop.set))
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
