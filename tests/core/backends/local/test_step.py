"""One step: streamed, retried, cancelled, stored, and what readers see of all that."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.backends.local.backend import LocalBackend
from core.contracts.errors import (
    ModelBusy,
    ModelOverflow,
    ModelRejected,
    ModelUnreachable,
    StorageFull,
    StoreUnavailable,
)
from core.contracts.events import CallRequested, ReasoningDelta, RetryNotice, RunFinished, TextDelta
from core.contracts.messages import Role, ToolCall, visible_text
from core.contracts.models import FinishReason
from core.contracts.runs import StopReason
from core.models.faulty import FaultyModel, cut, hang
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from tests.contracts.backend_harnesses import BOUND_SECONDS, BackendWorld, local_in_memory, say

LS = tool_call("a", "shell", '{"command":"ls"}')


def opened(*steps, model=None):
    return local_in_memory(None, model or ScriptedModel(steps))


async def events_in_time(world: BackendWorld, text: str = "hi"):
    """Take one step while time passes and return its events."""
    run = await world.start(say(text))
    async with asyncio.TaskGroup() as group:
        passing = group.create_task(world.time_passes())
        events = await world.events(run.id)
        passing.cancel()
    return events


def shown_text(events) -> str:
    """Return what a person sees at the end: text of tries that failed is discarded."""
    pieces = []
    for event in events:
        match event.body:
            case TextDelta(text=text):
                pieces.append((event.seq, text))
            case RetryNotice(discard_after=seq):
                pieces = [piece for piece in pieces if piece[0] <= seq]
            case _:
                pass
    return "".join(text for _, text in pieces)


def notices(events):
    return [event.body for event in events if isinstance(event.body, RetryNotice)]


async def last_message(world: BackendWorld):
    return (await world.backend.list_messages(world.conversation_id))[-1]


async def test_a_stream_that_just_ends_is_no_answer_and_is_tried_again():
    """C34 A: "The first step" | " is to" | end of file."""
    model = FaultyModel(ScriptedModel([says("The first step", " is to"), says("The first step is to plan.")]), [cut(2)])
    async with opened(model=model) as world:
        events = await events_in_time(world)
        assert events[-1].body == RunFinished(stop_reason=StopReason.END_TURN)
        assert visible_text((await last_message(world)).parts) == "The first step is to plan."
        assert await world.roles() == [Role.USER, Role.ASSISTANT]


async def test_text_of_a_failed_try_is_discarded_and_never_repeated():
    model = FaultyModel(ScriptedModel([says("Once upon", " a"), says("Once upon a time.")]), [cut(1)])
    async with opened(model=model) as world:
        events = await events_in_time(world)
        (notice,) = notices(events)
        assert notice.attempt == 1
        assert "without a finish" in notice.reason
        assert shown_text(events) == "Once upon a time."


async def test_a_cut_stream_that_is_never_whole_ends_as_an_error_with_a_marked_text():
    model = FaultyModel(ScriptedModel([says("The first step", " is to")] * 4), [cut(1)] * 4)
    async with opened(model=model) as world:
        events = await events_in_time(world)
        assert len(notices(events)) == 3
        assert events[-1].body.stop_reason is StopReason.ERROR
        message = await last_message(world)
        assert (visible_text(message.parts), message.cut) == ("The first step", True)


async def test_a_call_of_a_stream_that_was_cut_never_becomes_one():
    """C34 B."""
    step = asks(LS, text="Let me look.")
    model = FaultyModel(ScriptedModel([step] * 4), [cut(1)] * 4)
    async with opened(model=model) as world:
        events = await events_in_time(world)
        assert not any(isinstance(event.body, CallRequested) for event in events)
        assert await world.backend.pending_calls(world.conversation_id) == ()


async def test_a_silent_stream_can_be_cancelled_and_the_next_message_is_taken():
    """C34 H at this level: the client ends it by its idle time; a person need not wait for that."""
    model = FaultyModel(ScriptedModel([says("never"), says("Here.")]), [hang()])
    async with opened(model=model) as world:
        run = await world.start(say("hi"))
        await world.backend.cancel_run(run.id)
        assert (await world.events(run.id))[-1].body.stop_reason is StopReason.CANCELLED
        assert await world.roles() == [Role.USER]
        events = await world.step(say("again"))
        assert events[-1].body.stop_reason is StopReason.END_TURN


async def test_a_busy_provider_is_waited_for_as_long_as_it_asked():
    """C37 B."""
    async with opened(ModelBusy("slow down", retry_after=timedelta(seconds=7)), says("Here.")) as world:
        began = world.clock.monotonic()
        events = await events_in_time(world)
        (notice,) = notices(events)
        assert notice.wait == timedelta(seconds=7)
        assert world.clock.monotonic() - began >= 7
        assert shown_text(events) == "Here."


async def test_a_provider_that_is_busy_for_ever_is_given_up_with_its_error():
    """C37 G."""
    async with opened(*[ModelBusy("overloaded", status=529)] * 4) as world:
        events = await events_in_time(world)
        assert events[-1].body == RunFinished(stop_reason=StopReason.ERROR, error="overloaded")
        assert len(world.model.requests) == 4


@pytest.mark.parametrize("status", [401, 402])
async def test_a_refusal_is_asked_for_once(status):
    """C37 F."""
    async with opened(ModelRejected("no", status=status)) as world:
        events = await world.step(say("hi"))
        assert events[-1].body.stop_reason is StopReason.ERROR
        assert len(world.model.requests) == 1


async def test_every_try_sends_the_same_request():
    async with opened(ModelUnreachable("reset"), ModelUnreachable("reset"), says("Here.")) as world:
        await events_in_time(world)
        first, *others = world.model.requests
        assert len(others) == 2
        assert all(other == first for other in others)


async def test_an_overflow_is_no_error_to_retry():
    async with opened(ModelOverflow("too long")) as world:
        events = await world.step(say("hi"))
        assert events[-1].body == RunFinished(stop_reason=StopReason.CONTEXT_OVERFLOW, error="too long")


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        (FinishReason.STOP, StopReason.END_TURN),
        (FinishReason.LENGTH, StopReason.MAX_TOKENS),
        (FinishReason.REFUSAL, StopReason.REFUSAL),
    ],
)
async def test_how_a_stream_finished_is_why_the_run_stopped(finish, stop):
    async with opened(ScriptedStep(pieces=("Well",), finish=finish)) as world:
        events = await world.step(say("hi"))
        assert events[-1].body.stop_reason is stop
        assert (await last_message(world)).cut is (stop is StopReason.MAX_TOKENS)


async def test_calls_of_an_answer_that_was_cut_at_its_length_are_answered_not_lost():
    """C33: they carry a fault, so the run asks for their answers."""
    faulty = ToolCall(id=LS.id, name="shell", arguments="{}", fault="output limit reached")
    async with opened(ScriptedStep(calls=(faulty,), finish=FinishReason.LENGTH)) as world:
        events = await world.step(say("hi"))
        assert events[-1].body.stop_reason is StopReason.REQUIRES_APPROVAL
        assert await world.backend.pending_calls(world.conversation_id) == (faulty,)


@pytest.mark.parametrize("step", [says(), says("  \n"), ScriptedStep(reasoning="hm")])
async def test_an_answer_without_words_or_calls_is_not_stored(step):
    """Providers refuse an empty assistant message in the next request."""
    async with opened(step, says("ok")) as world:
        await world.step(say("hi"))
        assert await world.roles() == [Role.USER]
        await world.step(say("and?"))


async def test_long_text_is_flushed_while_it_still_comes():
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("x" * 3_000, "y"), gate=gate)) as world:
        run = await world.start(say("hi"))
        async with asyncio.timeout(BOUND_SECONDS):
            async for event in world.backend.events(run.id):
                if isinstance(event.body, TextDelta):
                    break
        assert event.body.text == "x" * 3_000
        gate.set()
        assert shown_text(await world.events(run.id)) == "x" * 3_000 + "y"


async def test_reasoning_is_told_and_is_no_answer_text():
    async with opened(ScriptedStep(reasoning="hm", pieces=("Yes.",))) as world:
        events = await world.step(say("hi"))
        assert [e.body.text for e in events if isinstance(e.body, ReasoningDelta)] == ["hm"]
        assert shown_text(events) == "Yes."


async def test_what_a_provider_says_is_masked_before_anybody_reads_it():
    """Invariant 10."""
    secret = "sk-" + "a" * 20
    errors = [ModelUnreachable(f"bad gateway for {secret}"), ModelRejected(f"key {secret} is refused")]
    async with opened(*errors) as world:
        masking = LocalBackend(
            store=world.stores.transcripts,
            memory=world.memory,
            model=world.model,
            clock=world.clock,
            mask=lambda text: text.replace(secret, "[secret key]"),
        )
        async with masking:
            world.backend = masking
            events = await events_in_time(world)
    assert secret not in repr(events)
    assert events[-1].body.error == "key [secret key] is refused"


class GatedStore:
    """Passes on to a store; writes of events are held by `gate` or fail as told."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.fails_at: dict[str, Exception] = {}

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def append_events(self, claim, events) -> None:
        self.entered.set()
        await self.gate.wait()
        self._fail("append_events")
        await self._inner.append_events(claim, events)

    async def finish_run(self, claim, end):
        self._fail("finish_run")
        return await self._inner.finish_run(claim, end)

    def _fail(self, operation: str) -> None:
        if operation in self.fails_at:
            raise self.fails_at.pop(operation)


async def with_gated_store(world: BackendWorld) -> GatedStore:
    store = GatedStore(world.stores.transcripts)
    world.backend = LocalBackend(store=store, memory=world.memory, model=world.model, clock=world.clock, mask=str)
    return store


@pytest.mark.parametrize("length", [3_000, 70_000], ids=["flushed beside the stream", "flushed by the stream"])
async def test_a_cancel_during_a_flush_waits_for_it_and_loses_no_event(length):
    """A flush that is torn would be stored and never shown, or leave a gap in the sequence."""
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("x" * length, "y"), gate=gate)) as world:
        store = await with_gated_store(world)
        store.gate.clear()
        async with world.backend:
            run = await world.start(say("hi"))
            async with asyncio.timeout(BOUND_SECONDS):
                await store.entered.wait()
                cancelling = asyncio.create_task(world.backend.cancel_run(run.id))
                for _ in range(20):
                    await asyncio.sleep(0)
                store.gate.set()
                await cancelling
            live = await world.events(run.id)
            assert [event.seq for event in live] == list(range(1, len(live) + 1))
            assert live[-1].body.stop_reason is StopReason.CANCELLED
            assert await world.events(run.id) == live
            message = await last_message(world)
            assert (visible_text(message.parts), message.cut) == ("x" * length, True)


class WatchedModel(ScriptedModel):
    """Counts the events that were taken from it."""

    taken = 0

    async def stream(self, request):
        async for event in super().stream(request):
            yield event
            self.taken += 1


async def test_reading_goes_on_while_text_is_being_stored():
    model = WatchedModel([says("x" * 3_000, *"yz")])
    async with opened(model=model) as world:
        store = await with_gated_store(world)
        store.gate.clear()
        async with world.backend, asyncio.timeout(BOUND_SECONDS):
            run = await world.start(say("hi"))
            await store.entered.wait()
            while model.taken < 3:
                await asyncio.sleep(0)
            assert not store.gate.is_set()
            store.gate.set()
            events = await world.events(run.id)
            assert shown_text(events) == "x" * 3_000 + "yz"
            assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_reading_waits_for_a_slow_disk_before_memory_fills():
    model = WatchedModel([says(*["x" * 3_000] * 40)])
    async with opened(model=model) as world:
        store = await with_gated_store(world)
        store.gate.clear()
        async with world.backend, asyncio.timeout(BOUND_SECONDS):
            run = await world.start(say("hi"))
            await store.entered.wait()
            for _ in range(1_000):
                await asyncio.sleep(0)
            assert 0 < model.taken < 30
            store.gate.set()
            assert shown_text(await world.events(run.id)) == "x" * 120_000


@pytest.mark.parametrize("operation", ["append_events", "finish_run"])
@pytest.mark.parametrize("error", [StorageFull("no space left"), StoreUnavailable("gone")])
async def test_a_run_that_cannot_be_stored_ends_visibly(operation, error):
    async with opened(says("x" * 3_000, "y"), says("Later.")) as world:
        store = await with_gated_store(world)
        store.fails_at[operation] = error
        async with world.backend:
            run = await world.start(say("hi"))
            events = await world.events(run.id)
            assert events[-1].body == RunFinished(stop_reason=StopReason.ERROR, error=str(error))
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            later = await world.step(say("again"))
            assert later[-1].body.stop_reason is StopReason.END_TURN
            assert await world.roles() == [Role.USER, Role.USER, Role.ASSISTANT]


async def test_closing_the_backend_ends_its_steps_and_their_readers():
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "two"), gate=gate)) as world:
        run = await world.start(say("hi"))
        reader = asyncio.create_task(world.events(run.id))
        await asyncio.sleep(0)
        async with asyncio.timeout(BOUND_SECONDS):
            await world.backend.__aexit__(None, None, None)
            finished = (await reader)[-1].body
        assert (finished.stop_reason, finished.error) == (StopReason.ERROR, "interrupted")
