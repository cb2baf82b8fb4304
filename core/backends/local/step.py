"""One model step: stream it, retry it while that may help, and store how it ended."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from core.backends.local.images import BREAKS, Removal, removal_after, without_images
from core.backends.local.retry import MAX_RETRIES, retry_wait
from core.backends.local.run_log import RunLog
from core.contracts.attachments import ImageShelf
from core.contracts.clock import Clock
from core.contracts.errors import ModelError, ModelOverflow, ModelUnreachable, StaleClaim, StoreError
from core.contracts.events import (
    ApprovalRequested,
    CallRequested,
    MessageStored,
    PromptRecompiled,
    ReasoningDelta,
    RetryNotice,
    RunEvent,
    RunFinished,
    TextDelta,
    UsageReported,
)
from core.contracts.ids import CallId, ConversationId, MessageId, RunId, new_id
from core.contracts.messages import AssistantPart, Message, Role, TextPart, ToolCall, tool_calls
from core.contracts.models import FinishReason, ModelClient, ModelRequest, StepFinished
from core.contracts.runs import Claim, StopReason, Usage
from core.contracts.store import NewMessage, RunEnd, TranscriptStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """How a step ended, before it is stored."""

    parts: tuple[AssistantPart, ...]
    stop_reason: StopReason
    usage: Usage = Usage()
    error: str = ""
    cut: bool = False


class Step:
    """Takes one step of one run. `cancel` may be set by anybody at any time.

    `gone` are images that the request does without for the first time.
    """

    def __init__(
        self,
        *,
        claim: Claim,
        run_id: RunId,
        request: ModelRequest,
        taken_ids: frozenset[str],
        model: ModelClient,
        images: ImageShelf,
        gone: Removal,
        store: TranscriptStore,
        clock: Clock,
        log: RunLog,
        mask: Callable[[str], str],
    ) -> None:
        self._claim = claim
        self._run_id = run_id
        self._request = request
        self._taken_ids = taken_ids
        self._model = model
        self._images = images
        self._gone = gone
        self._store = store
        self._clock = clock
        self._log = log
        self._mask = mask
        self._shown: list[str] = []
        self.cancel = asyncio.Event()

    @property
    def conversation_id(self) -> ConversationId:
        """Whose step it is."""
        return self._claim.conversation_id

    async def take(self) -> None:
        """Run to the stored end. Readers of the log always see a `RunFinished`."""
        try:
            async with asyncio.TaskGroup() as group:
                flusher = group.create_task(self._log.flush_in_time())
                end = await self._until_end_or_cancel()
                await self._finish(end)
                flusher.cancel()
        except* StaleClaim:
            logger.info("run_lost_its_claim", extra={"run_id": self._run_id})
        except* StoreError as errors:
            logger.exception("run_not_stored", extra={"run_id": self._run_id})
            self._log.abandon(str(errors.exceptions[0]))
        finally:
            self._log.abandon("interrupted")

    async def _until_end_or_cancel(self) -> StepEnd:
        work = asyncio.ensure_future(self._attempts())
        stop = asyncio.ensure_future(self.cancel.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            return StepEnd(parts=self._text_so_far(), stop_reason=StopReason.CANCELLED, cut=True)
        finally:
            # A flush that is under way ends first: cancelled, its events would be stored and never shown.
            async with self._log.writing:
                for task in (work, stop):
                    task.cancel()
                await asyncio.gather(work, stop, return_exceptions=True)

    async def _attempts(self) -> StepEnd:
        attempt = removals = 0
        if self._gone.image_ids:
            await self._record(self._gone)
        while True:
            started_at = self._log.last_seq
            self._shown.clear()
            try:
                return _conclude(await self._stream(), self._taken_ids)
            except ModelError as error:
                # Jitter spreads retries; it guards nothing.
                wait = retry_wait(error, attempt, random.random())  # noqa: S311
                removal = self._removal_after(error, removals) if attempt < MAX_RETRIES else None
                if wait is None and removal is None:
                    return self._given_up(error)
                attempt += 1
                wait = wait or timedelta(0)
                logger.info("model_step_retried", extra={"run_id": self._run_id, "attempt": attempt})
                reason = self._mask(str(error))
                self._log.add(RetryNotice(reason=reason, wait=wait, attempt=attempt, discard_after=started_at))
                if removal is not None:
                    removals += 1
                    await self._remove(removal)
                await self._log.flush()
                await self._clock.sleep(wait)

    def _given_up(self, error: ModelError) -> StepEnd:
        text = self._mask(str(error))
        if isinstance(error, ModelOverflow):
            return StepEnd(parts=(), stop_reason=StopReason.CONTEXT_OVERFLOW, error=text)
        return StepEnd(parts=self._text_so_far(), stop_reason=StopReason.ERROR, error=text, cut=True)

    def _removal_after(self, error: ModelError, removals: int) -> Removal | None:
        """Return the images to do without; none where the model is given none anyway."""
        if not self._model.facts(self._request.settings).sees_images:
            return None
        return removal_after(error, self._request.messages, removals=removals)

    async def _remove(self, removal: Removal) -> None:
        """Have the next try, and every later request of the conversation, do without images."""
        await self._record(removal)
        left_out = dict.fromkeys(removal.image_ids, removal.why)
        self._request = replace(self._request, messages=without_images(self._request.messages, left_out))

    async def _record(self, removal: Removal) -> None:
        """Record a break of the prefix before it is made: a crash in between has it recorded again."""
        self._log.add(PromptRecompiled(reason=BREAKS[removal.why]))
        await self._log.flush()
        await self._images.leave_out(removal.image_ids, removal.why)

    async def _stream(self) -> StepFinished:
        async for event in self._model.stream(self._request):
            match event:
                case TextDelta(text=text):
                    self._shown.append(text)
                    self._log.add(event)
                case ReasoningDelta():
                    self._log.add(event)
                case StepFinished():
                    return event
            if self._log.is_flooded:
                await self._log.flush()
        raise ModelUnreachable("the stream ended without a finish")

    def _text_so_far(self) -> tuple[AssistantPart, ...]:
        text = "".join(self._shown)
        return (TextPart(text=text),) if text.strip() else ()

    async def _finish(self, end: StepEnd) -> None:
        message = None
        if end.parts:
            message = NewMessage(id=MessageId(new_id("msg")), role=Role.ASSISTANT, parts=end.parts, cut=end.cut)
        async with self._log.writing:
            self._announce(end, message)
            events = self._log.take_pending()
            run_end = RunEnd(
                run_id=self._run_id,
                message=message,
                stop_reason=end.stop_reason,
                error=end.error,
                usage=end.usage,
                events=events,
            )
            _, stored = await self._store.finish_run(self._claim, run_end)
            self._log.close(tuple(_with_stored(event, stored) for event in events))

    def _announce(self, end: StepEnd, message: NewMessage | None) -> None:
        calls = tool_calls(end.parts)
        for call in calls:
            self._log.add(CallRequested(call=call))
        if message is not None:
            self._log.add(MessageStored(message=self._as_message(message)))
        if end.stop_reason is StopReason.REQUIRES_APPROVAL:
            self._log.add(ApprovalRequested(calls=calls))
        self._log.add(UsageReported(usage=end.usage))
        self._log.add(RunFinished(stop_reason=end.stop_reason, error=end.error))

    def _as_message(self, message: NewMessage) -> Message:
        return Message(
            id=message.id,
            conversation_id=self._claim.conversation_id,
            seq=0,
            role=message.role,
            parts=message.parts,
            created_at=self._clock.now(),
            run_id=self._run_id,
            cut=message.cut,
        )


def _with_stored(event: RunEvent, stored: Message | None) -> RunEvent:
    """Return the event with the message as the store numbered it."""
    if isinstance(event.body, MessageStored) and stored is not None and event.body.message.id == stored.id:
        return replace(event, body=MessageStored(message=stored))
    return event


def _conclude(finished: StepFinished, taken_ids: frozenset[str]) -> StepEnd:
    """Translate a finished stream into the end of the run."""
    parts = _unique_ids(finished.parts, taken_ids)
    calls = tool_calls(parts)
    has_text = any(isinstance(part, TextPart) and part.text.strip() for part in parts)
    if calls:
        stop = StopReason.REQUIRES_APPROVAL
    elif finished.finish is FinishReason.LENGTH:
        stop = StopReason.MAX_TOKENS
    elif finished.finish is FinishReason.REFUSAL:
        stop = StopReason.REFUSAL
    else:
        stop = StopReason.END_TURN
    # An assistant message without text or calls is refused by providers: nothing is kept of it.
    kept = parts if calls or has_text else ()
    return StepEnd(parts=kept, stop_reason=stop, usage=finished.usage, cut=stop is StopReason.MAX_TOKENS)


def _unique_ids(parts: tuple[AssistantPart, ...], taken: frozenset[str]) -> tuple[AssistantPart, ...]:
    """Give calls whose id was used earlier in the conversation a new one: some models count from 0."""
    return tuple(
        replace(part, id=CallId(new_id("call"))) if isinstance(part, ToolCall) and part.id in taken else part
        for part in parts
    )
