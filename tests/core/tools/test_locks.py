"""The lock of a workspace: who runs together, who waits, in which order."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.contracts.tools import Access
from core.tools.access import conflicts
from core.tools.locks import WorkspaceLocks

WS = Path("/ws")
COMMAND = Access(command="make")
READ = Access(reads=(WS / "a",))
WRITE = Access(writes=(WS / "a",))


class Holder:
    """A call that enters when it is let in and leaves when told to."""

    def __init__(self, locks, access, workspace=WS):
        self.entered, self.leave = asyncio.Event(), asyncio.Event()
        self.task = asyncio.ensure_future(self._run(locks, access, workspace))

    async def _run(self, locks, access, workspace):
        async with locks.hold(workspace, access):
            self.entered.set()
            await self.leave.wait()

    async def end(self):
        self.leave.set()
        await self.task


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


async def started(locks, *accesses, workspace=WS):
    holders = [Holder(locks, access, workspace) for access in accesses]
    await settle()
    return holders


def inside(*holders):
    return [holder.entered.is_set() for holder in holders]


async def end_all(*holders):
    for holder in holders:
        await holder.end()


async def test_two_reads_run_together():
    first, second = await started(WorkspaceLocks(), READ, READ)
    assert inside(first, second) == [True, True]
    await end_all(first, second)


async def test_two_commands_never_overlap():
    first, second = await started(WorkspaceLocks(), COMMAND, COMMAND)
    assert inside(first, second) == [True, False]
    await first.end()
    await settle()
    assert inside(second) == [True]
    await second.end()


async def test_a_call_that_declares_nothing_waits_for_reads_and_keeps_them_out():
    locks = WorkspaceLocks()
    read, unknown, late_read = await started(locks, READ, None, READ)
    assert inside(read, unknown, late_read) == [True, False, False]
    await read.end()
    await settle()
    assert inside(unknown, late_read) == [True, False]
    await end_all(unknown, late_read)
    assert locks.waiting == 0


async def test_a_stream_of_reads_does_not_starve_a_command():
    first, command, *reads = await started(WorkspaceLocks(), READ, COMMAND, READ, READ)
    await first.end()
    await settle()
    assert inside(command, *reads) == [True, False, False]
    await end_all(command, *reads)


async def test_writes_of_different_files_run_together_and_of_one_file_in_order():
    other = Access(writes=(WS / "b",))
    first, elsewhere, second = await started(WorkspaceLocks(), WRITE, other, WRITE)
    assert inside(first, elsewhere, second) == [True, True, False]
    await first.end()
    await settle()
    assert inside(second) == [True]
    await end_all(elsewhere, second)


async def test_different_workspaces_do_not_wait_for_each_other_but_nested_ones_do():
    locks = WorkspaceLocks()
    (outer,) = await started(locks, COMMAND)
    (apart,) = await started(locks, COMMAND, workspace=Path("/ws2"))
    (nested,) = await started(locks, COMMAND, workspace=WS / "inner")
    assert inside(outer, apart, nested) == [True, True, False]
    await end_all(outer, apart, nested)


async def test_a_cancelled_waiter_leaves_and_those_behind_it_move_up():
    locks = WorkspaceLocks()
    read, command, late_read = await started(locks, READ, COMMAND, READ)
    command.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command.task
    await settle()
    assert inside(late_read) == [True]
    await end_all(read, late_read)
    assert locks._line == []


async def test_a_call_cancelled_in_the_moment_it_is_let_in_gives_its_place_back():
    locks = WorkspaceLocks()
    async with locks.hold(WS, COMMAND):
        second, third = await started(locks, COMMAND, COMMAND)
    second.task.cancel()  # let in by the line above, not resumed yet
    await settle()
    assert second.task.cancelled()
    assert inside(second, third) == [False, True]
    await third.end()


async def test_a_call_that_fails_gives_its_place_back():
    locks = WorkspaceLocks()
    with pytest.raises(RuntimeError):
        async with locks.hold(WS, COMMAND):
            raise RuntimeError
    (following,) = await started(locks, COMMAND)
    assert inside(following) == [True]
    await following.end()


accesses = st.sampled_from(
    [None, COMMAND, READ, WRITE, Access(writes=(WS / "b",)), Access(reads=(WS,)), Access(free=True)]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(accesses, st.integers(0, 4), st.booleans()), max_size=12))
def test_no_conflicting_calls_overlap_and_every_call_gets_its_turn(plan):
    running, finished = [], []

    async def one(locks, number, access, steps):
        async with locks.hold(WS, access):
            assert not any(conflicts(access, other, WS) for other in running)
            running.append(access)
            try:
                for _ in range(steps):
                    await asyncio.sleep(0)
            finally:
                running.remove(access)
        finished.append(number)

    async def scenario():
        locks = WorkspaceLocks()
        tasks = [asyncio.ensure_future(one(locks, n, access, steps)) for n, (access, steps, _) in enumerate(plan)]
        await asyncio.sleep(0)
        for task, (_, _, cancel) in zip(tasks, plan, strict=True):
            if cancel:
                task.cancel()
        outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        assert all(outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        assert locks._line == []

    asyncio.run(scenario())
    assert set(finished) >= {n for n, (_, _, cancel) in enumerate(plan) if not cancel}
