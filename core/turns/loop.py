"""The one turn loop: a step, the answers to its calls, the next step, until the model stops.

Every host uses it: chats, page, terminal, command line, jobs and children differ in their
observer. The database alone says where a turn stands, so a worker may pick it up at any run
boundary: request ids are numbered by step, and asking for a known one returns the run of old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from core.contracts.events import MessageStored, RunFinished
from core.contracts.messages import (
    Message,
    ReturnOutcome,
    Role,
    ToolCall,
    ToolReturn,
    tool_calls,
    visible_text,
)
from core.contracts.runs import ApprovalInput, Run, RunInput, StopReason, TurnOutcome, UserInput
from core.turns.answers import CallDesk
from core.turns.outcomes import outcome_of
from core.turns.requests import request_id, step_of
from core.turns.services import Parked, TurnResult, TurnServices, TurnWork

SILENCE_TOOL = "stay_silent"
INTERRUPTED = "interrupted"
"""The error of a run that a newer claim found active."""
_AGAIN = UserInput(parts=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepSeen:
    """What the loop keeps of one run."""

    stop_reason: StopReason
    error: str
    message: Message | None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tool_calls(self.message.parts) if self.message is not None else ()

    @property
    def was_interrupted(self) -> bool:
        """Whether nobody saw the step end: its worker lost the conversation or died."""
        return self.stop_reason is StopReason.ERROR and self.error == INTERRUPTED


class TurnLoop:
    """Runs turns; one instance serves all conversations."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services

    async def run(self, work: TurnWork) -> TurnResult | Parked:
        """Advance a turn until it ends or has to wait for people.

        Safe to call again for the same turn after a park, a crash or a cancelled worker.

        Raises:
            StaleClaim: A newer worker has the conversation; this one stops without a trace.
            asyncio.CancelledError: The worker was stopped; what is known is stored.
        """
        work.started = work.counted_until = self._services.clock.monotonic()
        ended = await self._ended_already(work)
        if ended is not None:
            return ended
        run_input = await self._entry(work)
        while True:
            if run_input is not None:
                seen = await self._step(work, run_input)
                ended = self._ending(work, seen)
                if ended is not None:
                    return ended
                await self._count_step(work)
            answers = await self._answer(work)
            if isinstance(answers, Parked):
                return answers
            following = await self._at_boundary(work, answers)
            if isinstance(following, TurnResult):
                return following
            run_input = following

    async def _ended_already(self, work: TurnWork) -> TurnResult | None:
        """Return the end that an earlier worker had reached and could not store any more."""
        if work.turn.steps == 0 or await self._services.backend.pending_calls(work.conversation.id):
            return None
        if work.cancel.is_set():
            return TurnResult(outcome=TurnOutcome.CANCELLED, text=work.text)
        if _ends_in_silence(await self._last_messages(work)):
            return TurnResult(outcome=TurnOutcome.SILENT, text=work.text)
        if work.turn.steps >= self._services.limits.steps:
            return TurnResult(outcome=TurnOutcome.LIMIT, text=work.text)
        return None

    async def _last_messages(self, work: TurnWork) -> Sequence[Message]:
        """Return the conversation from its last assistant message on."""
        tail: list[Message] = []
        after = 0
        while page := await self._services.backend.list_messages(work.conversation.id, after_seq=after):
            after = page[-1].seq
            for message in page:
                if message.role is Role.ASSISTANT:
                    tail.clear()
                tail.append(message)
        return tail

    async def _entry(self, work: TurnWork) -> RunInput | None:
        """Return what to start with: the opening, a step to be found or repeated, or None when calls are pending."""
        if work.turn.steps == 0:
            return work.opening
        pending = await self._services.ledger.unanswered_calls(work.conversation.id)
        if not pending:
            return _AGAIN
        run = await self._services.backend.get_run(pending[0].run_id)
        # Calls of a step that ended and was not counted: it is found by its request, and as its input
        # is stored, nothing more can enter with it.
        return _AGAIN if step_of(work.turn.id, run.request_id) == work.next_step else None

    async def _step(self, work: TurnWork, run_input: RunInput) -> _StepSeen:
        step = work.next_step
        seen = await self._follow(work, await self._start(work, run_input, request_id(work.turn.id, step)))
        attempt = 1
        while seen.was_interrupted and not work.cancel.is_set():
            # Its worker died inside the step: the input is stored, so the step is taken again. Numbered
            # by attempt, so that whoever comes next finds what an earlier worker finished.
            attempt += 1
            again = request_id(work.turn.id, step, attempt)
            seen = await self._follow(work, await self._start(work, _AGAIN, again))
        if seen.message is not None:
            work.texts.append(visible_text(seen.message.parts))
        return seen

    async def _start(self, work: TurnWork, run_input: RunInput, requested: str) -> Run:
        return await self._services.backend.start_run(
            work.claim, run_input, tools=work.toolset.schemas, request_id=requested
        )

    async def _follow(self, work: TurnWork, run: Run) -> _StepSeen:
        message: Message | None = None
        finished = RunFinished(stop_reason=StopReason.ERROR, error=INTERRUPTED)
        async with asyncio.TaskGroup() as group:
            stopper = group.create_task(self._cancel_when_asked(work, run))
            async for event in self._services.backend.events(run.id):
                await work.observer.observe(work.turn, event)
                match event.body:
                    case MessageStored(message=stored) if stored.role is Role.ASSISTANT:
                        message = stored
                    case RunFinished():
                        finished = event.body
                    case _:
                        pass
            stopper.cancel()
        return _StepSeen(stop_reason=finished.stop_reason, error=finished.error, message=message)

    async def _cancel_when_asked(self, work: TurnWork, run: Run) -> None:
        await work.cancel.wait()
        await self._services.backend.cancel_run(run.id)

    def _ending(self, work: TurnWork, seen: _StepSeen) -> TurnResult | None:
        outcome = outcome_of(seen.stop_reason)
        if outcome is None:
            faulty = bool(seen.calls) and all(call.fault is not None for call in seen.calls)
            work.faulty_steps = work.faulty_steps + 1 if faulty else 0
            return None
        if outcome is TurnOutcome.COMPLETED and not work.text.strip():
            outcome = TurnOutcome.EMPTY
        if seen.was_interrupted and work.cancel.is_set():
            outcome = TurnOutcome.CANCELLED
        return TurnResult(outcome=outcome, text=work.text, error=seen.error)

    async def _count_step(self, work: TurnWork) -> None:
        now = self._services.clock.monotonic()
        await self._services.ledger.add_progress(
            work.claim, work.turn.id, steps=1, active_seconds=now - work.counted_until
        )
        work.steps += 1
        work.counted_until = now

    async def _answer(self, work: TurnWork) -> tuple[ToolReturn, ...] | Parked:
        """Settle the pending calls; a person's wish to stop cancels those that have not ended."""
        # Read anew for every step: a stricter mode set meanwhile holds from here on.
        conversation = await self._services.backend.get_conversation(work.conversation.id)
        subject = await self._services.host.subject(work.turn, work.agent, conversation)
        desk = CallDesk(self._services, work, subject)
        settling = asyncio.ensure_future(desk.settle())
        stop = asyncio.ensure_future(work.cancel.wait())
        try:
            await asyncio.wait({settling, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (settling, stop):
                task.cancel()
            await asyncio.gather(settling, stop, return_exceptions=True)
        if work.cancel.is_set():
            return await desk.cancel_rest()
        answers = settling.result()
        if answers is not None:
            return answers
        if await self._services.ledger.park_turn(work.claim, work.turn.id):
            return Parked()
        return await self._answer(work)

    async def _at_boundary(self, work: TurnWork, answers: tuple[ToolReturn, ...]) -> ApprovalInput | TurnResult:
        """Return what the next step starts with, or the end of the turn, with the results stored."""
        step = work.next_step
        # What an earlier worker let in goes in, whatever else would end the turn here: no message is lost.
        ended = None if await work.steering.has_entered(step) else await self._end_here(work, answers)
        if ended is not None:
            await self._services.backend.settle(work.claim, answers)
            return ended
        parts = await work.steering.take(step, more=not work.cancel.is_set())
        return ApprovalInput(returns=answers, parts=parts)

    async def _end_here(self, work: TurnWork, answers: Sequence[ToolReturn]) -> TurnResult | None:
        """Return how the turn ends where a person, the answers or the limits say so."""
        limits = self._services.limits
        used = work.turn.active_seconds + self._services.clock.monotonic() - work.started
        if work.cancel.is_set():
            return TurnResult(outcome=TurnOutcome.CANCELLED, text=work.text)
        if _is_silence(answers, await self._services.backend.pending_calls(work.conversation.id)):
            return TurnResult(outcome=TurnOutcome.SILENT, text=work.text)
        if work.faulty_steps >= limits.faulty_steps:
            return TurnResult(outcome=TurnOutcome.ERROR, text=work.text, error="the model's tool calls stay unusable")
        if work.next_step > limits.steps or used >= limits.active.total_seconds():
            return TurnResult(outcome=TurnOutcome.LIMIT, text=work.text)
        return None


def _ends_in_silence(messages: Sequence[Message]) -> bool:
    """Whether the last assistant message asked for silence and got it."""
    calls = [call for message in messages[:1] for call in tool_calls(message.parts)]
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturn)]
    return _is_silence(returns, calls)


def _is_silence(answers: Sequence[ToolReturn], calls: Sequence[ToolCall]) -> bool:
    """Whether the model ended its turn on purpose without words, and that call went through."""
    silent = {call.id for call in calls if call.name == SILENCE_TOOL}
    return any(answer.call_id in silent and answer.outcome is ReturnOutcome.OK for answer in answers)
