"""How turns end in their chats: in place of what they showed, or as a message that people notice."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.conversations.turn_ending import LATE_FINAL
from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import MessageBody, Privacy, Removal, TextContent
from core.contracts.agents import PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE
from core.contracts.errors import StoreUnavailable
from core.contracts.runs import TurnOutcome
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from core.turns.outcomes import OUTCOMES
from tests.bot.conversations.hosting import BOUND_SECONDS, CHANNEL, Hosted, hosting
from tests.bot.conversations.queueing import fresh_worker, looks, queue
from tests.core.turns.dying import Dying

LONG = LATE_FINAL + timedelta(seconds=1)


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *steps, **more)

    return open_host


@asynccontextmanager
async def showing(host, text: str):
    """Let a turn run until this preview is visible, and go on to its end behind the block."""
    async with asyncio.TaskGroup() as group:
        passing = group.create_task(host.time_passes())
        running = group.create_task(host.settle())
        await host.until(lambda: host.texts() == [text])
        passing.cancel()
        await asyncio.gather(passing, return_exceptions=True)
        yield
        await running


def growing(gate: asyncio.Event, *pieces: str) -> ScriptedStep:
    return ScriptedStep(pieces=pieces, gate=gate)


async def test_an_answer_that_comes_soon_takes_the_place_of_its_preview(opened):
    gate = asyncio.Event()
    async with opened(growing(gate, "Once upon", " a time.")) as host:
        await host.arrives(MessageBody(text="tell me"))
        async with showing(host, "Once upon"):
            await host.clock.advance(timedelta(seconds=55))
            gate.set()
        assert host.texts() == ["Once upon a time."]
        assert [item.external_id for item in host.channel.deliveries] == ["1"]


async def test_an_answer_that_comes_late_is_a_new_message_and_the_progress_goes_away_behind_it(opened):
    """Edits do not notify; nobody would look again at a message of a minute ago."""
    gate = asyncio.Event()
    async with opened(growing(gate, "Once upon", " a time.")) as host:
        await host.arrives(MessageBody(text="tell me"))
        async with showing(host, "Once upon"):
            await host.clock.advance(LONG)
            gate.set()
        assert host.texts() == ["Once upon a time."]
        final, removal = host.channel.deliveries
        assert (final.external_id, final.content) == (None, TextContent(markdown="Once upon a time."))
        assert (removal.external_id, removal.content) == ("1", Removal())
        assert final.id == f"{(await host.latest_turn()).id}/end"


async def test_where_nothing_can_be_removed_the_answer_takes_the_place_of_its_preview(opened):
    gate, clock = asyncio.Event(), FakeClock()
    channel = FakeChannel(CHANNEL, capabilities=replace(FAKE_CAPABILITIES, removals=False), clock=clock)
    async with opened(growing(gate, "Once upon", " a time."), channel=channel, clock=clock) as host:
        await host.arrives(MessageBody(text="tell me"))
        async with showing(host, "Once upon"):
            await host.clock.advance(LONG)
            gate.set()
        assert host.texts() == ["Once upon a time."]
        assert [item.external_id for item in host.channel.deliveries] == ["1"]


async def test_a_long_answer_that_comes_late_is_all_there(opened):
    gate, words = asyncio.Event(), " ".join(f"word{number}" for number in range(700))
    async with opened(growing(gate, "Once upon ", words)) as host:
        await host.arrives(MessageBody(text="tell me"))
        async with showing(host, "Once upon "):
            await host.clock.advance(LONG)
            gate.set()
        assert len(host.texts()) == 3
        assert "".join(host.texts()).replace(" ", "") == f"Once upon {words}".replace(" ", "")


async def test_text_of_every_step_is_part_of_an_answer_that_comes_late(opened):
    gate = asyncio.Event()
    script = (asks(looks("a"), text="Let me look."), growing(gate, "It is", " tea."))
    async with opened(*script, mode=PermissionMode.UNRESTRICTED) as host:
        await host.arrives(MessageBody(text="what is it?"))
        async with showing(host, "Let me look.\n\nIt is"):
            await host.clock.advance(LONG)
            gate.set()
        assert host.texts() == ["Let me look.\n\nIt is tea."]


async def test_silence_notifies_nobody_however_late_it_comes(opened):
    gate = asyncio.Event()
    silence = tool_call("s", "stay_silent", '{"reason":"not for me"}')
    async with opened(ScriptedStep(pieces=("Let me", " see."), calls=(silence,), gate=gate)) as host:
        await host.arrives(MessageBody(text="hm"))
        async with showing(host, "Let me"):
            await host.clock.advance(LONG)
            gate.set()
        assert host.texts() == ["Let me see."]
        assert [item.external_id for item in host.channel.deliveries] == ["1"]


async def preview_on_record(host: Hosted) -> None:
    """Wait until the host has stored which message is its preview: before that a crash leaves it standing."""
    async with asyncio.timeout(BOUND_SECONDS):
        turn = await host.open_turn()
        while (await host.stores.delivery.outbox_row(turn.outbox_id)).shown_at is None:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("away", [timedelta(seconds=1), timedelta(hours=1)])
async def test_the_answer_of_a_turn_that_was_taken_up_is_there_once_and_whole(tmp_path, away):
    """The preview was posted and the process died: how long ago decides whether people notice the answer."""
    database = Database.open(":memory:")
    hanging = ScriptedStep(pieces=("Once upon", "!"), gate=asyncio.Event())
    model = ScriptedModel([hanging, says("Once upon a time.")])
    async with hosting(tmp_path, database=database, model=model) as first:
        await first.arrives(MessageBody(text="tell me"))
        async with asyncio.TaskGroup() as group:
            passing = group.create_task(first.time_passes())
            dying = group.create_task(first.settle())
            await first.until(lambda: first.texts() == ["Once upon"])
            await preview_on_record(first)
            passing.cancel()
            dying.cancel()
        conversation_id = await first.conversation_id()
    await first.clock.advance(away)
    more = {"memory": first.memory, "clock": first.clock, "channel": first.channel, "model": model}
    async with hosting(tmp_path, database=database, **more) as second:
        await second.ring(CONVERSATION_QUEUE, conversation_id)
        await second.settle()
        assert second.texts() == ["Once upon a time."]
        assert ("1" in second.channel.messages) is (away < LATE_FINAL)
    await database.close()


async def test_a_crash_at_the_end_of_a_turn_changes_nothing_about_a_late_answer(opened):
    gate = asyncio.Event()
    async with opened(growing(gate, "Once upon", " a time.")) as host:
        await host.arrives(MessageBody(text="tell me"))
        await host.settle(INBOX_QUEUE)
        conversation_id = await host.conversation_id()
        worker = fresh_worker(host, ledger=Dying(host.stores.ledger, "finish_turn"))
        async with asyncio.TaskGroup() as group:
            passing = group.create_task(host.time_passes())
            dying = group.create_task(advance(worker, conversation_id))
            await host.until(lambda: host.texts() == ["Once upon"])
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
            await host.clock.advance(LONG)
            gate.set()
            await dying
        assert host.channel.deliveries == []
        await host.settle()
        assert host.texts() == ["Once upon a time."]
        assert "1" not in host.channel.messages


async def advance(worker, conversation_id) -> None:
    with suppress(StoreUnavailable, ExceptionGroup):
        await worker.advance(conversation_id)


@pytest.mark.parametrize("privacy", [Privacy.PRIVATE_GROUP, Privacy.PUBLIC])
async def test_in_a_group_there_is_a_status_and_no_preview(opened, privacy):
    gate = asyncio.Event()
    script = (asks(looks("a"), text="Let me look."), growing(gate, "It is", " tea."))
    async with opened(*script) as host:
        await queue(host, "what is it?", privacy=privacy)
        async with asyncio.TaskGroup() as group:
            passing = group.create_task(host.time_passes())
            running = group.create_task(host.settle())
            await host.until(lambda: len(host.model.requests) == 2)
            began = host.clock.monotonic()
            await host.until(lambda: host.clock.monotonic() > began + 120)
            gate.set()
            await running
            passing.cancel()
        assert host.channel.previews == []
        assert host.texts() == ["Let me look.\n\nIt is tea."]
        assert "running memory_read" in host.channel.statuses


async def test_an_error_behind_text_never_takes_the_place_of_the_text(opened):
    """C16 E: a turn that is given up after a step keeps what the step said."""
    script = (asks(looks("a"), text="The capital is Paris."), ScriptedStep(pieces=("a", "b"), gate=asyncio.Event()))
    async with opened(*script) as host:
        await host.arrives(MessageBody(text="capital?"))
        await host.settle(INBOX_QUEUE)
        dying = asyncio.create_task(host.settle(CONVERSATION_QUEUE))
        await host.until(lambda: len(host.model.requests) == 2)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await host.app.worker.give_up(await host.conversation_id(), "KeyError: internal")
        await host.settle()
        assert host.texts() == [f"The capital is Paris.\n\n{OUTCOMES[TurnOutcome.ERROR].notice}"]


async def test_a_tool_that_fails_behind_shown_text_leaves_the_answer_alone(opened):
    """C16 E."""
    gate, shell = asyncio.Event(), tool_call("sh", "shell", '{"command":"make x"}')
    failing = {"make x": FakeOutcome(output=b"boom", exit_code=1)}
    script = (asks(shell, text="Let me try."), growing(gate, "It did", " not work."))
    async with opened(*script, mode=PermissionMode.UNRESTRICTED, outcomes=failing) as host:
        await host.arrives(MessageBody(text="make x"))
        async with showing(host, "Let me try.\n\nIt did"):
            gate.set()
        assert host.texts() == ["Let me try.\n\nIt did not work."]
