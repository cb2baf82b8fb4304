"""What a chat shows while a turn runs, and who else may follow."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from bot.conversations.observer import PREVIEW_AFTER, ReplyObserver, TurnBus
from core.contracts.clock import FakeClock
from core.contracts.events import MessageStored, RetryNotice, RunEvent, RunFinished, TextDelta, UsageReported
from core.contracts.ids import CallId, ConversationId, MessageId, RunId, TurnId
from core.contracts.messages import Message, ReturnOutcome, Role, TextPart, text_return
from core.contracts.runs import StopReason, Usage
from core.models.scripted import tool_call
from core.turns.observer import CallFinished, CallStarted
from tests.core.stores.samples import START, turn

RUN = RunId("run-1")
CALL = tool_call("a", "shell", '{"command":"ls"}')


class Screen:
    """A reply that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.statuses: list[str] = []

    async def show(self, text: str) -> None:
        self.shown.append(text)

    async def set_status(self, status: str) -> None:
        self.statuses.append(status)


class Showing:
    """An observer at work, with numbered events and a clock."""

    def __init__(self, *, previews: bool = True, conceal=str) -> None:
        self.screen, self.clock = Screen(), FakeClock()
        self.tapped: list = []
        self.ended: list = []
        self._seq = 0
        self.observer = ReplyObserver(
            self.screen,
            self.clock,
            previews=previews,
            call_ended=self._call_ended,
            tap=self._tap,
            conceal=conceal,
        )

    async def _tap(self, of, event) -> None:
        self.tapped.append(event)

    async def _call_ended(self, of, call, result) -> None:
        self.ended.append((call, result))

    async def hears(self, *bodies) -> None:
        """Let the run say something, and the screen follow."""
        for body in bodies:
            self._seq += 1
            await self.observer.observe(turn(), RunEvent(run_id=RUN, seq=self._seq, body=body))
        await self.draws()

    async def draws(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def waits(self, duration: timedelta = PREVIEW_AFTER) -> None:
        await self.clock.advance(duration)
        await self.draws()


@asynccontextmanager
async def showing(**more):
    found = Showing(**more)
    async with found.observer.showing():
        await found.draws()
        yield found


def stored(text: str, role: Role = Role.ASSISTANT) -> MessageStored:
    message = Message(
        id=MessageId("msg-1"),
        conversation_id=ConversationId("conv-1"),
        seq=1,
        role=role,
        parts=(TextPart(text=text),),
        created_at=START,
    )
    return MessageStored(message=message)


def retry(discard_after: int) -> RetryNotice:
    return RetryNotice(reason="reset", wait=timedelta(seconds=1), attempt=1, discard_after=discard_after)


async def test_an_answer_that_is_complete_quickly_has_no_preview():
    async with showing() as found:
        await found.hears(TextDelta(text="Hel"), TextDelta(text="lo"), stored("Hello"))
        await found.waits(PREVIEW_AFTER - timedelta(milliseconds=1))
    assert found.screen.shown == []


async def test_a_longer_answer_grows():
    async with showing() as found:
        await found.hears(TextDelta(text="Once"))
        await found.waits()
        await found.hears(TextDelta(text=" upon"))
        await found.hears(TextDelta(text=" a time"))
    assert found.screen.shown == ["Once", "Once upon", "Once upon a time"]


async def test_the_first_preview_comes_so_long_after_the_first_text_and_not_before():
    async with showing() as found:
        await found.waits(timedelta(minutes=1))
        await found.hears(TextDelta(text="Once"))
        assert found.screen.shown == []
        await found.waits()
    assert found.screen.shown == ["Once"]


async def test_texts_of_steps_stand_below_each_other():
    async with showing() as found:
        await found.hears(TextDelta(text="Let me look."), stored("Let me look."), RunFinished(stop_reason="x"))
        await found.waits()
        await found.hears(TextDelta(text="Done."))
    assert found.screen.shown[-1] == "Let me look.\n\nDone."


async def test_text_of_a_try_that_failed_is_taken_back():
    async with showing() as found:
        await found.hears(TextDelta(text="Once upon a"))
        await found.waits()
        await found.hears(retry(discard_after=0))
        await found.hears(TextDelta(text="Once upon a time"))
    assert found.screen.shown == ["Once upon a", "Once upon a time"]


async def test_what_was_said_before_the_try_that_failed_stays():
    async with showing() as found:
        await found.hears(TextDelta(text="one "), UsageReported(usage=Usage()), TextDelta(text="two"), retry(1))
        await found.waits()
        await found.hears(TextDelta(text="three"))
    assert found.screen.shown[-1] == "one three"


async def test_a_tool_that_fails_behind_the_text_replaces_nothing():
    """C16 E."""
    failed = text_return(CallId("a"), "Traceback: boom", ReturnOutcome.ERROR)
    async with showing() as found:
        await found.hears(TextDelta(text="Let me look."), stored("Let me look."))
        await found.waits()
        await found.observer.observe(turn(), CallStarted(call=CALL))
        await found.observer.observe(turn(), CallFinished(result=failed))
        await found.hears(TextDelta(text="The answer is 42."))
    assert found.screen.shown[-1] == "Let me look.\n\nThe answer is 42."
    assert not any("boom" in text for text in found.screen.shown)
    assert found.ended == []


async def test_a_step_that_fails_leaves_its_shown_text_alone():
    async with showing() as found:
        await found.hears(TextDelta(text="Once upon"))
        await found.waits()
        await found.hears(RunFinished(stop_reason=StopReason.ERROR, error="internal"))
    assert found.screen.shown == ["Once upon"]


async def test_the_status_says_what_runs():
    async with showing() as found:
        await found.observer.observe(turn(), CallStarted(call=CALL))
        await found.observer.observe(turn(), CallFinished(result=text_return(CallId("a"), "ok", ReturnOutcome.OK)))
    assert found.screen.statuses == ["running shell", "thinking"]
    assert [call for call, _ in found.ended] == [CALL]


async def test_without_previews_the_status_is_shown_and_no_text():
    async with showing(previews=False) as found:
        await found.hears(TextDelta(text="Once upon"))
        await found.waits(timedelta(minutes=1))
        await found.observer.observe(turn(), CallStarted(call=CALL))
    assert found.screen.shown == []
    assert found.screen.statuses == ["running shell"]


async def test_an_end_that_may_begin_a_secret_is_held_back():
    async with showing(conceal=lambda text: text.removesuffix("hun")) as found:
        await found.hears(TextDelta(text="it is hun"))
        await found.waits()
    assert found.screen.shown == ["it is "]


async def test_blank_text_is_no_preview():
    async with showing() as found:
        await found.hears(TextDelta(text=" \n "))
        await found.waits()
    assert found.screen.shown == []


async def test_everything_is_passed_on_in_order():
    async with showing() as found:
        await found.hears(TextDelta(text="a"), stored("a"))
        await found.observer.observe(turn(), CallStarted(call=CALL))
    assert [type(event) for event in found.tapped] == [RunEvent, RunEvent, CallStarted]


async def test_an_observer_without_a_chat_listens_all_the_same():
    heard = []

    async def nothing(of, call, result) -> None:
        pass

    async def hear(of, event) -> None:
        heard.append(event)

    observer = ReplyObserver(None, FakeClock(), previews=True, call_ended=nothing, tap=hear, conceal=str)
    async with observer.showing():
        await observer.observe(turn(), CallStarted(call=CALL))
    assert heard == [CallStarted(call=CALL)]


async def test_an_event_is_recorded_before_anybody_hears_of_it():
    told: list[str] = []

    async def record(of, event) -> None:
        assert queue.empty()
        told.append("recorded")

    bus = TurnBus(record=record, count=lambda of, event: told.append("counted"))
    async with bus.follow("conv-1") as queue:
        await bus.publish(turn(), CallStarted(call=CALL))
        assert told == ["recorded", "counted"]
        assert queue.get_nowait() == (turn(), CallStarted(call=CALL))


async def test_followers_hear_their_conversation_alone_and_where_a_turn_ends():
    async def record(of, event) -> None:
        pass

    bus, event = TurnBus(record=record, count=lambda of, event: None), CallStarted(call=CALL)
    other = replace(turn(), id=TurnId("turn-2"), conversation_id=ConversationId("conv-2"))
    async with bus.follow("conv-1") as one, bus.follow("conv-1") as two:
        await bus.publish(turn(), event)
        await bus.publish(other, event)
        await bus.turn_ended(turn())
        for queue in (one, two):
            assert [queue.get_nowait() for _ in range(2)] == [(turn(), event), (turn(), None)]
            assert queue.empty()
    await bus.publish(turn(), event)
    assert bus._followers == {}
