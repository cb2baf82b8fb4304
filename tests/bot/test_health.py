"""Readiness, asked anew every time."""

from __future__ import annotations

import asyncio

import pytest

from core.contracts.errors import ChannelDown, StoreUnavailable
from core.models.scripted import says
from tests.bot.conversations.hosting import HERE, hosting
from tests.bot.conversations.test_sink import FullStore
from tests.core.stores.samples import inbound


@pytest.fixture
def opened(tmp_path):
    return lambda: hosting(tmp_path, says("ok"))


async def checks(host) -> dict:
    return {check.name: check for check in await host.app.health.checks()}


async def test_every_part_has_its_check(opened):
    async with opened() as host:
        found = await checks(host)
        assert set(found) == {"intake", "database", "sandbox", "telegram", "web", "terminal", "headless", "session"}
        assert found["database"].ok
        assert found["intake"].ok
        assert not found["sandbox"].required


async def test_a_channel_is_well_only_while_it_runs(opened):
    async with opened() as host:
        assert not (await checks(host))["telegram"].ok
        running = asyncio.create_task(host.channel.run(host.app.sink))
        await asyncio.sleep(0)
        assert (await checks(host))["telegram"].ok
        running.cancel()
        await asyncio.wait({running})
        assert not (await checks(host))["telegram"].ok


async def test_a_channel_that_was_refused_for_good_stays_red_and_says_why(opened):
    async with opened() as host:
        host.app.health.channel_ended("telegram", ChannelDown("the token is refused"))
        found = (await checks(host))["telegram"]
        assert (found.ok, found.detail) == (False, "the token is refused")


async def test_a_host_that_stops_takes_nothing_in(opened):
    async with opened() as host:
        host.app.health.start_draining()
        found = (await checks(host))["intake"]
        assert (found.ok, found.required) == (False, True)


async def test_a_database_that_is_gone_is_told(opened):
    async with opened() as host:
        await host.stores.database.close()
        found = (await checks(host))["database"]
        assert not found.ok
        assert found.detail


async def test_a_database_that_takes_nothing_is_red_until_it_does(opened):
    async with opened() as host:
        store = host.app.health._sink._delivery = FullStore(host.stores.delivery)
        with pytest.raises(StoreUnavailable):
            await host.app.sink.accept(inbound("e1", address=HERE))
        assert not (await checks(host))["database"].ok
        store.full = False
        await host.app.sink.accept(inbound("e1", address=HERE))
        assert (await checks(host))["database"].ok
