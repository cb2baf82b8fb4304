"""Invariant 11: durable before acknowledged; sent once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import MessageBody
from core.contracts.errors import StoreUnavailable
from core.models.scripted import says
from tests.bot.conversations.hosting import HERE, hosting


async def test_an_event_that_could_not_be_stored_is_not_acknowledged(tmp_path):
    async with hosting(tmp_path, says("hi")) as host:
        await host.stores.database.close()
        with pytest.raises(StoreUnavailable):
            await host.arrives(MessageBody(text="hello"))


async def test_the_same_event_again_is_answered_once(tmp_path):
    async with hosting(tmp_path, says("hi")) as host:
        for _ in range(3):
            await host.arrives(MessageBody(text="hello"), key="event-twin")
            await host.settle()
        assert host.texts() == ["hi"]
        assert len(host.model.requests) == 1


async def test_an_answer_whose_outcome_is_unknown_is_looked_for_before_it_is_sent_again(tmp_path):
    channel = FakeChannel("telegram", capabilities=replace(FAKE_CAPABILITIES, lookup=True))
    async with hosting(tmp_path, says("hi"), channel=channel) as host:
        host.channel.lose_next_answer()
        await host.says("hello")
        assert host.texts() == ["hi"]


async def test_an_answer_waits_in_the_outbox_before_anybody_sees_it(tmp_path):
    async with hosting(tmp_path, says("hi")) as host:
        await host.arrives(MessageBody(text="hello"))
        await host.settle("inbox", "conversations")
        assert host.texts() == []
        (row,) = await host.stores.delivery.outgoing("telegram/bot/111")
        assert row.item.address == HERE
        await host.settle()
        assert host.texts() == ["hi"]
