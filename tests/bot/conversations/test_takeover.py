"""Turns that another worker or another host takes up: nothing is lost, nothing is said or done twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from bot.conversations.outbox import ELSEWHERE
from bot.conversations.worker import ConversationWorker
from channels.fake import FakeChannel
from core.contracts.addresses import MessageBody
from core.contracts.agents import PermissionMode
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE
from core.contracts.errors import StoreUnavailable
from core.contracts.runs import TurnOutcome, TurnState
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from core.turns.loop import TurnLoop
from tests.bot.conversations.hosting import HERE, hosting

MADE = {"make x": FakeOutcome(output=b"made"), "make y": FakeOutcome(output=b"made")}


def shell(call_id: str, command: str = "make x"):
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *steps, outcomes=MADE, **more)

    return open_host


async def dies_in_step(host, number: int) -> None:
    """Let a message of a person be worked on until the model has been asked so often, and end that worker."""
    await host.settle(INBOX_QUEUE)
    dying = asyncio.create_task(host.settle(CONVERSATION_QUEUE))
    await host.until(lambda: len(host.model.requests) == number)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


async def test_a_turn_of_a_channel_that_this_host_has_not_waits_for_one_that_has(tmp_path):
    """`lodger run` beside a stopped host takes up no turn that it cannot answer, and gives none up."""
    database = Database.open(":memory:")
    model = ScriptedModel([ScriptedStep(pieces=("a", "b"), gate=asyncio.Event()), says("The answer.")])
    async with hosting(tmp_path, database=database, model=model) as first:
        await first.arrives(MessageBody(text="tell me"))
        await dies_in_step(first, 1)
        conversation_id = await first.conversation_id()
    more = {"database": database, "memory": first.memory, "clock": first.clock, "model": model}
    async with hosting(tmp_path, channel=FakeChannel("other", clock=first.clock), **more) as without:
        assert await without.ring(CONVERSATION_QUEUE, conversation_id) == ELSEWHERE
        assert (await without.open_turn()).state is TurnState.RUNNING
        assert len(model.requests) == 1
    async with hosting(tmp_path, channel=first.channel, **more) as back:
        await back.ring(CONVERSATION_QUEUE, conversation_id)
        await back.settle()
        assert back.texts() == ["The answer."]
    await database.close()


async def test_what_waits_for_a_channel_that_this_host_has_not_is_left_alone(tmp_path):
    """New events and queued messages alike."""
    database, model = Database.open(":memory:"), ScriptedModel([says("one"), says("two")])
    async with hosting(tmp_path, database=database, model=model) as first:
        await first.says("first")
        await first.arrives(MessageBody(text="second"))
        await first.arrives(MessageBody(text="/help"))
        conversation_id = await first.conversation_id()
    more = {"database": database, "memory": first.memory, "clock": first.clock, "model": model}
    async with hosting(tmp_path, channel=FakeChannel("other", clock=first.clock), **more) as without:
        assert await without.ring(CONVERSATION_QUEUE, conversation_id) == ELSEWHERE
        assert await without.ring(INBOX_QUEUE, HERE.key) == ELSEWHERE
        assert len(await without.stores.delivery.queued(conversation_id)) == 1
        assert len(await without.stores.delivery.new_events(HERE.key)) == 1
    async with hosting(tmp_path, channel=first.channel, **more) as back:
        await back.ring(CONVERSATION_QUEUE, conversation_id)
        await back.ring(INBOX_QUEUE, HERE.key)
        await back.settle()
        assert back.texts()[:2] == ["one", "two"]
        assert len(back.texts()) == 3
    await database.close()


class DyingLedger:
    """A ledger that cannot be written any more where `name` is called."""

    def __init__(self, inner, name: str) -> None:
        self._inner = inner
        self._name = name

    def __getattr__(self, name):
        if name == self._name:
            return self._fail
        return getattr(self._inner, name)

    async def _fail(self, *args, **more):
        raise StoreUnavailable("killed")


def dying_worker(host, where: str) -> ConversationWorker:
    """Return a worker that dies where it writes this to the ledger."""
    ports = host.app.worker._ports
    ledger = DyingLedger(ports.ledger, where)
    loop = TurnLoop(replace(ports.loop._services, ledger=ledger))
    return ConversationWorker(replace(ports, ledger=ledger, loop=loop))


async def test_text_of_steps_before_a_crash_is_part_of_the_answer(tmp_path):
    database = Database.open(":memory:")
    hanging = ScriptedStep(pieces=("It", " is"), gate=asyncio.Event())
    model = ScriptedModel([asks(shell("a"), text="The capital is Paris."), hanging, says("It is Monday.")])
    more = {"database": database, "model": model, "outcomes": MADE, "mode": PermissionMode.UNRESTRICTED}
    async with hosting(tmp_path, **more) as first:
        await first.arrives(MessageBody(text="capital and day?"))
        await dies_in_step(first, 2)
        conversation_id = await first.conversation_id()
    more |= {"memory": first.memory, "clock": first.clock, "channel": first.channel}
    async with hosting(tmp_path, **more) as second:
        await second.ring(CONVERSATION_QUEUE, conversation_id)
        await second.settle()
        assert second.texts() == ["The capital is Paris.\n\nIt is Monday."]
    await database.close()


@pytest.mark.parametrize("where", ["add_progress", "finish_turn"])
async def test_a_step_that_is_told_again_after_a_crash_is_said_once(opened, where):
    script = (asks(shell("a"), text="The capital is Paris."), says("It is Monday."))
    async with opened(*script, mode=PermissionMode.UNRESTRICTED) as host:
        await host.arrives(MessageBody(text="capital and day?"))
        await host.settle(INBOX_QUEUE)
        conversation_id = await host.conversation_id()
        with pytest.RaisesGroup(StoreUnavailable, allow_unwrapped=True, flatten_subgroups=True):
            await dying_worker(host, where).advance(conversation_id)
        assert host.texts() == []
        await host.settle()
        assert host.texts() == ["The capital is Paris.\n\nIt is Monday."]
        assert host.commands == ["make x"]
        assert len(host.model.requests) == 2


@pytest.mark.parametrize("where", ["add_progress", "open_approvals", "park_turn", "resume_turn", "finish_turn"])
async def test_no_text_around_questions_is_lost_or_doubled_by_a_crash(opened, where):
    """The worker dies again and again at the same kind of moment; each time another one goes on."""
    script = (
        asks(shell("a"), text="Let me make x."),
        asks(tool_call("b", "memory_read", "{}"), text="I look."),
        asks(shell("c", "make y"), text="Let me make y."),
        asks(tool_call("d", "memory_read", "{}"), text="I look again."),
        says("Made."),
    )
    async with opened(*script) as host:
        await host.arrives(MessageBody(text="do it"))
        await host.settle(INBOX_QUEUE)
        conversation_id = await host.conversation_id()
        for _ in range(9):
            with suppress(StoreUnavailable, ExceptionGroup):
                await dying_worker(host, where).advance(conversation_id)
            await host.settle()
            for approval in await host.open_approvals():
                await host.app.api.decide(approval.id, "approve", by="Alice")
        await host.settle()
        assert (await host.latest_turn()).outcome is TurnOutcome.COMPLETED
        told = "\n\n".join(host.texts())
        said = ("Let me make x.", "I look.", "Let me make y.", "I look again.", "Made.")
        assert {text: told.count(text) for text in said} == dict.fromkeys(said, 1)
        assert told.index("Let me make x.") < told.index("I look.") < told.index("Let me make y.") < told.index("Made.")
        assert len([message for message in host.seen() if message.text.startswith("Approved")]) == 2
        assert host.commands == ["make x", "make y"]
        assert len(host.model.requests) == len(script)
