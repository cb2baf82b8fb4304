"""What a start does: it wakes who can move, and lets those sleep who wait for people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from core.contracts.delivery import CONVERSATION_QUEUE, OUTBOX_QUEUE
from core.contracts.permissions import ApprovalState, Decision
from core.contracts.runs import TurnState
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from core.stores.sql import sql_stores
from core.stores.work_items import SqlWorkItems
from tests.bot.conversations.engine_host import Running, World, multiply, running
from tests.bot.conversations.hosting import chat

MADE = {"make x": FakeOutcome(output=b"made")}
PLACE = chat("7700077")
HOUR = timedelta(hours=1)


@pytest.fixture
async def world(tmp_path) -> AsyncIterator[World]:
    database = Database.open(":memory:")
    shell = tool_call("sh", "shell", '{"command":"make x"}')
    yield World(tmp_path, database, ScriptedModel([asks(shell), says("Made.")]))
    await database.close()


async def parks(host: Running) -> None:
    """Let a conversation wait for a decision."""
    await host.says("do it", key="event 7700077", where=PLACE)
    await host.until(host.is_quiet)
    assert len(await host.stores.ledger.open_approvals_of()) == 1


async def decides(world: World, number: int) -> str:
    """Decide one question in a process that dies before it can act on it; return the conversation."""
    items = SqlWorkItems(world.database)
    stores = sql_stores(world.database, submit=items.insert, clock=world.clock)
    approval = (await stores.ledger.open_approvals_of())[number]
    yes = Decision(approve=True, by=None, by_name="Alice")
    await stores.ledger.decide(approval.id, yes, ApprovalState.APPROVED, hash_shown=approval.hash, grant=None)
    return approval.conversation_id


async def test_a_thousand_conversations_that_wait_for_people_sleep_through_a_start(world):
    async with running(world) as first:
        await parks(first)
    await multiply(world.database, PLACE.chat, 1_000)
    async with running(world) as second:
        await second.until(second.is_quiet)
        await world.clock.advance(timedelta(minutes=5))
        await second.until(second.is_quiet)
        assert len(await second.stores.ledger.open_approvals_of()) == 1_001
        assert second.calls == {}


async def test_a_decision_made_just_before_a_crash_is_acted_on_among_a_thousand_that_wait(world):
    async with running(world) as first:
        await parks(first)
    await multiply(world.database, PLACE.chat, 1_000)
    conversation_id = await decides(world, 500)
    async with running(world, outcomes=MADE) as second:
        await second.until(second.is_quiet)
        assert (await second.stores.ledger.latest_turn(conversation_id)).state is TurnState.FINISHED
        assert second.app.sandbox.commands[0].argv[-1] == "make x"
        assert second.calls[CONVERSATION_QUEUE] <= 2
        assert world.channel.deliveries[-1].content.markdown == "Made."


async def test_a_reminder_that_fell_due_while_the_host_was_down_is_sent_at_the_start(world):
    async with running(world) as first:
        await parks(first)
    await world.clock.advance(2 * HOUR)
    async with running(world) as second:
        await second.until(second.is_quiet)
        assert "still waiting" in world.channel.deliveries[-1].content.text
        assert second.calls == {CONVERSATION_QUEUE: 1, OUTBOX_QUEUE: 1}


async def test_a_question_that_expired_while_the_host_was_down_is_denied_at_the_start(world):
    async with running(world) as first:
        await parks(first)
    await world.clock.advance(25 * HOUR)
    async with running(world) as second:
        await second.until(second.is_quiet)
        assert await second.stores.ledger.open_approvals_of() == ()
        texts = [message.text for message in world.channel.messages.values()]
        assert any(text.startswith("Expired") for text in texts)
        assert "Made." in texts
        assert second.app.sandbox.commands == []
