"""One run of the embedded engine: its bells, who answers them, and what follows from each answer."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from core.contracts.clock import Clock
from core.contracts.engine import Again, GaveUp, Handler, WorkItem
from core.engines.agenda import Agenda, Entry
from core.engines.removals import LazyRemovals

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_FAILURES: Final = 5
FIRST_BACK_OFF: Final = timedelta(seconds=1)
WORTH_A_COMMIT: Final = timedelta(minutes=2)
"""A handler's wish for so long a rest holds over a restart, too: until then a start leaves its key asleep."""


@dataclass(slots=True)
class Bell:
    """What is known of one key; it exists while something of it is unanswered."""

    queue: str
    key: str
    ids: set[str] = field(default_factory=set)
    """Stored items that no handler has answered."""
    rung: bool = False
    """Something arrived, and no handler has started since."""
    served: bool = False
    """A task answers it: the only one."""
    resting: bool = False
    """A handler failed: until the back-off is over, rings are noted and not answered."""
    failures: int = 0
    again: Entry | None = None
    """When a handler wished to be rung again."""

    @property
    def quiet(self) -> bool:
        """Return whether nothing is left to do for the key."""
        return not (self.ids or self.rung or self.served or self.resting or self.again)


class Rounds:
    """Answers bells with handlers, one at a time for each key. Of the event loop's thread."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        handlers: Mapping[str, Handler],
        gave_up: GaveUp,
        *,
        clock: Clock,
        slots: AbstractAsyncContextManager[object],
        removals: LazyRemovals,
    ) -> None:
        """Take a group that owns the handlers' tasks, and slots that bound how many run at once."""
        self._group = group
        self._handlers = handlers
        self._gave_up = gave_up
        self._clock = clock
        self._slots = slots
        self._removals = removals
        self._agenda = Agenda(clock)
        self._planned: set[str] = set()
        self._bells: dict[tuple[str, str], Bell] = {}
        self._closed = False

    async def keep_time(self) -> None:
        """Ring what falls due, until cancelled; from then on nothing more is answered."""
        try:
            await self._agenda.run()
        finally:
            self._closed = True

    def arrive(self, item: WorkItem) -> None:
        """Ring an item now, or plan it for its time; of a queue without a handler it stays stored."""
        if self._closed or item.id in self._planned:
            return
        if item.queue not in self._handlers:
            logger.warning("doorbell_without_handler", extra={"queue": item.queue})
        elif item.due_at <= self._clock.now():
            self._ring(item)
        else:
            self._planned.add(item.id)
            self._agenda.at(item.due_at, functools.partial(self._fall_due, item))

    def _fall_due(self, item: WorkItem) -> None:
        self._planned.discard(item.id)
        self._ring(item)

    def _ring(self, item: WorkItem) -> None:
        bell = self._bells.setdefault((item.queue, item.key), Bell(queue=item.queue, key=item.key))
        bell.ids.add(item.id)
        self._have_answered(bell)

    def _have_answered(self, bell: Bell) -> None:
        bell.rung = True
        if not (bell.served or bell.resting):
            bell.served = True
            self._group.create_task(self._serve(bell), name=f"{bell.queue}:{bell.key}")

    async def _serve(self, bell: Bell) -> None:
        while bell.rung and not bell.resting:
            await self._answer(bell)
        bell.served = False
        if bell.quiet:
            del self._bells[bell.queue, bell.key]

    async def _answer(self, bell: Bell) -> None:
        async with self._slots:
            # From here on, whatever arrives may come too late for this handler and rings once more.
            bell.rung = False
            answered = frozenset(bell.ids)
            self._forget_wish(bell)
            outcome = await _outcome(self._handlers[bell.queue](bell.key))
        match outcome:
            case None:
                self._settle(bell, answered)
            case Again(wait=wait, over_restart=holds):
                bell.failures = 0
                bell.again = self._agenda.after(wait, functools.partial(self._grant_wish, bell))
                if holds and wait >= WORTH_A_COMMIT:
                    self._removals.postpone(answered, self._clock.now() + wait)
            case error:
                await self._fail(bell, answered, error)

    def _settle(self, bell: Bell, answered: frozenset[str]) -> None:
        bell.failures = 0
        bell.ids -= answered
        self._removals.add(answered)

    async def _fail(self, bell: Bell, answered: frozenset[str], error: Exception) -> None:
        bell.failures += 1
        facts = {"queue": bell.queue, "key": bell.key, "failures": bell.failures}
        logger.warning("doorbell_failed", exc_info=error, extra=facts)
        if bell.failures < MAX_FAILURES:
            self._rest(bell)
            return
        told = await _outcome(self._gave_up(bell.queue, bell.key, error))
        if told is None:
            self._settle(bell, answered)
        else:
            logger.error("giving_up_failed", exc_info=told, extra=facts)
            bell.failures -= 1  # one more failure tells it again
            self._rest(bell)

    def _rest(self, bell: Bell) -> None:
        bell.resting = True
        wait = FIRST_BACK_OFF * 2 ** (bell.failures - 1)
        self._agenda.after(wait, functools.partial(self._end_rest, bell))

    def _end_rest(self, bell: Bell) -> None:
        bell.resting = False
        self._have_answered(bell)

    def _grant_wish(self, bell: Bell) -> None:
        bell.again = None
        self._have_answered(bell)

    def _forget_wish(self, bell: Bell) -> None:
        if bell.again is not None:
            bell.again.cancel()
            bell.again = None


async def _outcome(job: Awaitable[T]) -> T | Exception:
    """Return what a job returns, or the exception it ends in.

    Raises:
        asyncio.CancelledError: The caller is being cancelled. A cancellation that a job made
            for itself is a failure like any other and must not silence its key for ever.
    """
    try:
        return await job
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return RuntimeError("the job was cancelled from its inside")
    except Exception as error:  # noqa: BLE001 - a job run: its failure is backed off and told, the engine goes on
        return error
