"""Stores that end with the process."""

from __future__ import annotations

from core.contracts.clock import FakeClock
from core.stores.inmemory import open_in_memory
from tests.core.stores.samples import CONVERSATION, START, agent, inbound


async def test_two_stores_in_memory_share_nothing():
    one, two = open_in_memory(FakeClock(START)), open_in_memory(FakeClock(START))
    await one.transcripts.insert_agent(agent())
    assert await one.transcripts.agents() == (agent(),)
    assert await two.transcripts.agents() == ()
    await one.database.close()
    await two.database.close()


async def test_they_ring_whom_they_are_given():
    rung = []
    stores = open_in_memory(FakeClock(START), lambda tx, item: rung.append(item.key))
    await stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION)
    assert rung == [CONVERSATION]
    await stores.database.close()


async def test_without_an_engine_the_rows_are_there_all_the_same():
    stores = open_in_memory(FakeClock(START))
    await stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION)
    assert len(await stores.delivery.queued(CONVERSATION)) == 1
    await stores.database.close()
