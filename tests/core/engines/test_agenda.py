"""One timer for everything that waits for its time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from core.contracts.clock import FakeClock
from core.engines.agenda import LONGEST_SLEEP, Agenda

SECOND = timedelta(seconds=1)


class SteppedClock(FakeClock):
    """A clock whose wall time somebody can set."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = timedelta(0)
        self.slept: list[timedelta] = []

    def now(self) -> datetime:
        return super().now() + self.offset

    async def sleep(self, duration: timedelta) -> None:
        self.slept.append(duration)
        await super().sleep(duration)


@asynccontextmanager
async def running(agenda: Agenda):
    task = asyncio.create_task(agenda.run())
    await settle()
    yield
    task.cancel()
    await asyncio.wait([task])


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_actions_run_in_the_order_of_their_time():
    clock, ran = SteppedClock(), []
    agenda = Agenda(clock)
    async with running(agenda):
        agenda.at(clock.now() + 3 * SECOND, lambda: ran.append("at 3"))
        agenda.after(2 * SECOND, lambda: ran.append("after 2"))
        agenda.at(clock.now() + SECOND, lambda: ran.append("at 1"))
        await settle()
        for _ in range(3):
            await clock.advance(SECOND)
            await settle()
    assert ran == ["at 1", "after 2", "at 3"]


async def test_nothing_sleeps_while_nothing_waits():
    clock = SteppedClock()
    async with running(Agenda(clock)):
        assert clock.sleeping == 0


async def test_there_is_one_timer_however_much_waits():
    clock = SteppedClock()
    agenda = Agenda(clock)
    async with running(agenda):
        for seconds in (20, 10, 5, 15):
            agenda.after(seconds * SECOND, lambda: None)
            await settle()
        assert clock.sleeping == 1
        assert clock.slept[-1] == 5 * SECOND


async def test_no_timer_sleeps_longer_than_half_a_minute():
    clock = SteppedClock()
    agenda = Agenda(clock)
    async with running(agenda):
        agenda.at(clock.now() + timedelta(days=1), lambda: None)
        await settle()
    assert clock.slept == [LONGEST_SLEEP]


async def test_a_clock_set_forward_is_noticed_at_the_next_wake():
    clock, ran = SteppedClock(), []
    agenda = Agenda(clock)
    async with running(agenda):
        agenda.at(clock.now() + timedelta(hours=1), lambda: ran.append("due"))
        await settle()
        clock.offset = timedelta(hours=2)
        await clock.advance(LONGEST_SLEEP)
        await settle()
    assert ran == ["due"]


async def test_a_clock_set_back_does_not_lengthen_a_wait():
    clock, ran = SteppedClock(), []
    agenda = Agenda(clock)
    async with running(agenda):
        agenda.after(SECOND, lambda: ran.append("retried"))
        clock.offset = -timedelta(hours=5)
        await settle()
        await clock.advance(SECOND)
        await settle()
    assert ran == ["retried"]


async def test_a_cancelled_entry_never_runs():
    clock, ran = SteppedClock(), []
    agenda = Agenda(clock)
    async with running(agenda):
        agenda.after(SECOND, lambda: ran.append(1)).cancel()
        await settle()
        await clock.advance(SECOND)
        await settle()
    assert ran == []
