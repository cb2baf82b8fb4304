"""Tool requests: answered, late, or left behind by a client that went away."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bot.conversations.sessions.clients import Clients, ToolAnswer
from bot.conversations.sessions.protocol import CLIENT_GRACE, TOOL_PATIENCE, Withdrawal
from core.contracts.clock import FakeClock
from core.contracts.errors import InvalidInput
from core.contracts.ids import CallId

BOUND_SECONDS = 60
CALL = CallId("call-1")
SUNNY = ToolAnswer(text="sunny", is_error=False)
MOMENT = timedelta(seconds=1)


class Asking:
    """A request on its way; `told` is set when a client can see it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.clients = Clients(self.clock)
        self.told = asyncio.Event()
        self.task: asyncio.Task

    async def tell(self) -> None:
        self.told.set()

    async def passes(self, duration: timedelta) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        await self.clock.advance(duration)
        for _ in range(10):
            await asyncio.sleep(0)


@asynccontextmanager
async def asking():
    asked = Asking()
    asked.task = asyncio.create_task(asked.clients.ask(CALL, asked.tell))
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            yield asked
    finally:
        asked.task.cancel()
        await asyncio.gather(asked.task, return_exceptions=True)
        assert asked.clock.sleeping == 0, "nothing waits behind the end"


async def test_a_connected_client_is_asked_and_its_answer_returned():
    async with asking() as asked:
        with asked.clients.connected():
            await asked.told.wait()
            assert asked.clients.open_requests == {CALL}
            asked.clients.answer(CALL, SUNNY)
            assert await asked.task == SUNNY
        assert asked.clients.open_requests == frozenset()


async def test_an_answer_nobody_waits_for_is_refused():
    async with asking() as asked:
        with pytest.raises(InvalidInput, match="no tool request 'call-1' is open"):
            asked.clients.answer(CALL, SUNNY)
        with asked.clients.connected():
            await asked.told.wait()
            asked.clients.answer(CALL, SUNNY)
            with pytest.raises(InvalidInput):
                asked.clients.answer(CALL, SUNNY)


async def test_a_request_waits_for_a_client_that_comes_within_the_grace():
    async with asking() as asked:
        await asked.passes(CLIENT_GRACE - MOMENT)
        assert not asked.told.is_set()
        with asked.clients.connected():
            await asked.told.wait()


async def test_where_no_client_comes_nobody_is_asked():
    async with asking() as asked:
        await asked.passes(CLIENT_GRACE)
        assert await asked.task is None
        assert not asked.told.is_set()


async def test_a_client_that_takes_too_long_is_not_waited_for():
    async with asking() as asked:
        with asked.clients.connected():
            await asked.told.wait()
            await asked.passes(TOOL_PATIENCE)
            assert await asked.task is Withdrawal.TIMEOUT


async def test_a_client_that_goes_away_is_waited_for_as_long_as_the_grace_lasts():
    async with asking() as asked:
        with asked.clients.connected():
            await asked.told.wait()
        await asked.passes(CLIENT_GRACE)
        assert await asked.task is Withdrawal.DISCONNECTED


async def test_a_client_that_comes_back_may_still_answer():
    async with asking() as asked:
        with asked.clients.connected():
            await asked.told.wait()
        await asked.passes(CLIENT_GRACE - MOMENT)
        with asked.clients.connected():
            await asked.passes(CLIENT_GRACE)
            assert not asked.task.done()
        await asked.passes(CLIENT_GRACE - MOMENT)
        asked.clients.answer(CALL, SUNNY)
        assert await asked.task == SUNNY


async def test_as_long_as_one_of_several_clients_is_there_none_is_missed():
    async with asking() as asked:
        with asked.clients.connected():
            with asked.clients.connected():
                await asked.told.wait()
            await asked.passes(CLIENT_GRACE)
            assert not asked.task.done()


async def test_a_request_that_is_cancelled_is_forgotten():
    async with asking() as asked:
        with asked.clients.connected():
            await asked.told.wait()
            asked.task.cancel()
            await asyncio.gather(asked.task, return_exceptions=True)
            assert asked.task.cancelled()
            assert asked.clients.open_requests == frozenset()
