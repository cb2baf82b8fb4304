"""A client that fails on purpose, in front of one that works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.contracts.agents import ModelSettings
from core.contracts.errors import ModelError, ModelUnreachable
from core.contracts.models import ModelClient, ModelEvent, ModelFacts, ModelRequest, StepFinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong behind the first `after` deltas: `error` is raised, or without one it hangs.

    A hanging stream stays silent until its reader is cancelled or closes it.
    """

    error: ModelError | None
    after: int = 0


def cut(after: int) -> Fault:
    """Return the fault of a connection that breaks behind `after` deltas."""
    return Fault(error=ModelUnreachable("the model's stream ended without a finish"), after=after)


def hang(after: int = 0) -> Fault:
    """Return the fault of a provider that goes silent."""
    return Fault(error=None, after=after)


class FaultyModel:
    """Passes streams through, but for the faults: one for each stream, None leaves it whole.

    When the faults are used up everything works.
    """

    def __init__(self, inner: ModelClient, faults: Iterable[Fault | None]) -> None:
        self._inner = inner
        self._faults: Iterator[Fault | None] = iter(faults)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        fault = next(self._faults, None)
        seen = 0
        if fault is not None and fault.after == 0:
            await _fail(fault)
        async with _closing(self._inner.stream(request)) as events:
            async for event in events:
                if fault is not None and (seen == fault.after or isinstance(event, StepFinished)):
                    await _fail(fault)
                seen += 1
                yield event

    def facts(self, settings: ModelSettings) -> ModelFacts:
        return self._inner.facts(settings)


async def _fail(fault: Fault) -> None:
    if fault.error is not None:
        raise fault.error
    await asyncio.Event().wait()


@asynccontextmanager
async def _closing(events: AsyncIterator[ModelEvent]) -> AsyncIterator[AsyncIterator[ModelEvent]]:
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


if TYPE_CHECKING:
    _conforms: type[ModelClient] = FaultyModel
