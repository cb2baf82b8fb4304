"""A host that is told to stop: what can end ends, and the rest is left as rows that the next start takes up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.messages import ReturnOutcome, ToolReturn, visible_text
from core.contracts.runs import TurnState
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from core.turns.answers import INTERRUPTED
from tests.bot.conversations.engine_host import Running, World, running
from tests.bot.conversations.hosting import HERE

SHELL = tool_call("sh", "shell", '{"command":"make x"}')
SLOW = {"make x": FakeOutcome(output=b"made", takes=timedelta(seconds=100))}
SHORTLY = timedelta(milliseconds=5)


@pytest.fixture
async def opened(tmp_path) -> AsyncIterator[Callable[..., World]]:
    database = Database.open(":memory:")
    yield lambda *steps: World(tmp_path, database, ScriptedModel(steps))
    await database.close()


def texts(world: World) -> list[str]:
    return [message.text for message in world.channel.messages.values()]


async def ended(host: Running) -> bool:
    turn = await host.stores.ledger.latest_turn((await host.stores.delivery.binding(HERE.key)).conversation_id)
    return turn is not None and turn.state is TurnState.FINISHED and await host.is_quiet()


async def transcript(host: Running):
    return await host.backend.list_messages((await host.stores.delivery.binding(HERE.key)).conversation_id)


async def test_a_command_that_runs_when_patience_ends_is_ended_told_as_unknown_and_never_run_again(opened):
    """C23: nobody cancelled it, and nobody saw whether it took effect."""
    world = opened(asks(SHELL), says("It may have been made."))
    async with running(world, outcomes=SLOW, mode=PermissionMode.UNRESTRICTED) as first:
        await first.says("make x", key="1", where=HERE)
        async with asyncio.timeout(60):
            while not first.app.sandbox.running:
                await asyncio.sleep(0.001)
        assert not await first.app.worker.drain(SHORTLY)
    assert first.app.sandbox.running == []
    async with running(world, outcomes=SLOW, mode=PermissionMode.UNRESTRICTED) as second:
        await second.until(lambda: ended(second))
        returns = [p for m in await transcript(second) for p in m.parts if isinstance(p, ToolReturn)]
        assert [(found.outcome, found.parts[0].text) for found in returns] == [(ReturnOutcome.UNKNOWN, INTERRUPTED)]
        assert second.app.sandbox.commands == []
    assert texts(world) == ["It may have been made."]


async def test_a_step_that_is_under_way_when_patience_ends_is_taken_again_by_the_next_start(opened):
    world = opened(ScriptedStep(pieces=("Hel", "!"), gate=asyncio.Event()), says("Hello!"))
    async with running(world) as first:
        await first.says("hi", key="1", where=HERE)
        async with asyncio.timeout(60):
            while not world.model.requests:
                await asyncio.sleep(0.001)
        assert not await first.app.worker.drain(SHORTLY)
    async with running(world) as second:
        await second.until(lambda: ended(second))
        said = [visible_text(message.parts) for message in await transcript(second)]
        assert [text for text in said if text] == ["hi", "Hello!"]
    assert texts(world) == ["Hello!"]


async def test_a_message_that_comes_while_the_host_drains_is_answered_after_the_next_start(opened):
    """Invariant 11: it is committed, so that its platform may be told so."""
    gate = asyncio.Event()
    world = opened(ScriptedStep(pieces=("O", "ne."), gate=gate), says("Two."))
    async with running(world) as first:
        await first.says("first", key="1", where=HERE)
        async with asyncio.timeout(60):
            while not world.model.requests:
                await asyncio.sleep(0.001)
        draining = asyncio.create_task(first.app.worker.drain(timedelta(seconds=20)))
        await asyncio.sleep(0)
        await first.says("second", key="2", where=HERE)
        gate.set()
        assert await draining
        await first.until(first.is_quiet)
        assert texts(world) == ["One."]
        assert len(world.model.requests) == 1
    async with running(world) as second:
        await second.until(lambda: ended(second))
        await second.until(second.is_quiet)
    assert texts(world) == ["One.", "Two."]


async def test_a_message_for_a_turn_that_is_left_at_a_boundary_enters_it_after_the_next_start(opened):
    world = opened(asks(SHELL), says("Both."))
    async with running(world, outcomes=SLOW, mode=PermissionMode.UNRESTRICTED) as first:
        await first.says("make x", key="1", where=HERE)
        async with asyncio.timeout(60):
            while not first.app.sandbox.running:
                await asyncio.sleep(0.001)
        await first.says("and y", key="2", where=HERE)
        assert not await first.app.worker.drain(SHORTLY)
    async with running(world, mode=PermissionMode.UNRESTRICTED) as second:
        await second.until(lambda: ended(second))
        people = [visible_text(m.parts) for m in await transcript(second) if m.role == "user"]
        assert people == ["make x", "and y"]
    assert texts(world) == ["Both."]
