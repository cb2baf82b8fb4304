"""A database of the first release is brought to this one, with everything in it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from core.contracts.agents import QueueMode
from core.contracts.delivery import InboxState, OutboxState
from core.contracts.ids import ConversationId
from core.stores import schema
from tests.core.stores.first_release import make_first_release
from tests.core.stores.samples import ADDRESS, AGENT, CHAT, agent, inbound, open_world, text_item


@pytest.fixture
def first_release(tmp_path):
    path = tmp_path / "host.db"
    make_first_release(path)
    return path


async def test_everything_of_the_first_release_is_there_after_the_migration(first_release):
    async with open_world(first_release) as world:
        (stored,) = await world.stores.transcripts.agents()
        assert (stored.id, stored.name, stored.queue_mode) == (AGENT, "lodger", QueueMode.STEER)
        conversation = await world.stores.transcripts.conversation(ConversationId("conv-1"))
        assert (conversation.epoch, conversation.queue_mode, conversation.paused) == (3, None, False)
        (row,) = await world.stores.delivery.queued(conversation.id)
        assert (row.event, row.state, row.step) == (inbound("e1"), InboxState.QUEUED, 0)
        (outgoing,) = await world.stores.delivery.outgoing(CHAT)
        assert (outgoing.item.external_id, outgoing.state) == ("m1", OutboxState.PENDING)


async def test_a_migrated_database_works_as_a_new_one_does(first_release):
    async with open_world(first_release) as world:
        await world.stores.transcripts.insert_agent(replace(agent("second", "agent-2"), queue_mode=QueueMode.INTERRUPT))
        await world.stores.delivery.post([text_item("o2")])
        assert [row.item.id for row in await world.stores.delivery.outgoing(CHAT)] == ["o1", "o2"]
        assert await world.stores.delivery.count_unknown("o1") == 1
        assert await world.stores.delivery.withdraw(ADDRESS, "e1") is InboxState.QUEUED


async def test_a_migration_that_is_cut_off_changes_nothing(first_release):
    """The process dies inside it: the whole migration is one transaction."""
    before = first_release.read_bytes()
    connection = sqlite3.connect(first_release, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ALTER TABLE inbox ADD COLUMN step INTEGER DEFAULT '0' NOT NULL")
    connection.close()  # a dead process's open transaction is rolled back
    assert first_release.read_bytes() == before
    async with open_world(first_release) as world:
        assert len(await world.stores.transcripts.agents()) == 1
    check = sqlite3.connect(first_release)
    assert check.execute("SELECT version_num FROM alembic_version").fetchone() == (schema.HEAD,)
    check.close()
