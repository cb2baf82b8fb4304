"""A model that plays a script: for tests, benchmarks and the demo."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from core.contracts.agents import ModelSettings
from core.contracts.errors import ModelError
from core.contracts.events import ReasoningDelta, TextDelta
from core.contracts.ids import CallId
from core.contracts.messages import AssistantPart, ReasoningPart, TextPart, ToolCall
from core.contracts.models import FinishReason, ModelClient, ModelEvent, ModelFacts, ModelRequest, StepFinished
from core.contracts.runs import Usage
from core.models.fragments import UsageFragment
from core.models.profiles import SCRIPTED, model_facts
from core.models.usage import step_usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedStep:
    """One answer. `pieces` become one delta each; `gate` is awaited behind the first of them.

    Left out, `finish` follows from the calls and `usage` is estimated.
    """

    pieces: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish: FinishReason | None = None
    usage: Usage | None = None
    gate: asyncio.Event | None = None


Outcome: TypeAlias = ScriptedStep | ModelError
Step: TypeAlias = Outcome | Callable[[ModelRequest], Outcome]
"""A callable looks at the request first."""


def says(*pieces: str) -> ScriptedStep:
    """Return a step that says the pieces, one delta each, and stops."""
    return ScriptedStep(pieces=pieces)


def asks(*calls: ToolCall, text: str = "") -> ScriptedStep:
    """Return a step that asks for tool calls."""
    return ScriptedStep(pieces=(text,) if text else (), calls=calls)


def tool_call(call_id: str, name: str, arguments: str = "{}") -> ToolCall:
    """Return a call with usable arguments."""
    return ToolCall(id=CallId(call_id), name=name, arguments=arguments)


class ScriptedModel:
    """Takes one step of its script for each request, and keeps every request in `requests`.

    Args:
        steps: Played in order. A request beyond the last one is a mistake of the script's author.
        facts: What it says of itself, instead of the facts of the asked model.
    """

    def __init__(self, steps: Iterable[Step], *, facts: ModelFacts | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._steps: Iterator[Step] = iter(steps)
        self._facts = facts

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        step = next(self._steps, None)
        if step is None:
            raise AssertionError(f"the script has no step for request {len(self.requests)}")
        outcome = step(request) if callable(step) else step
        if isinstance(outcome, ModelError):
            raise outcome
        async with aclosing(play(outcome, request, self.facts(request.settings))) as events:
            async for event in events:
                yield event

    def facts(self, settings: ModelSettings) -> ModelFacts:
        return self._facts or model_facts(settings)


async def play(step: ScriptedStep, request: ModelRequest, facts: ModelFacts) -> AsyncGenerator[ModelEvent]:
    """Yield the events of one step; the loop gets a turn behind every delta, as on a network."""
    if step.reasoning:
        yield ReasoningDelta(text=step.reasoning)
    for number, piece in enumerate(step.pieces):
        yield TextDelta(text=piece)
        if number == 0 and step.gate is not None:
            await step.gate.wait()
        await asyncio.sleep(0)
    parts = _parts(step)
    finish = step.finish or (FinishReason.TOOL_CALLS if step.calls else FinishReason.STOP)
    usage = step.usage or step_usage(UsageFragment(), request=request, parts=parts, facts=facts)
    yield StepFinished(parts=parts, finish=finish, usage=usage)


def _parts(step: ScriptedStep) -> tuple[AssistantPart, ...]:
    reasoning = (ReasoningPart(text=step.reasoning, form=SCRIPTED),) if step.reasoning else ()
    text = "".join(step.pieces)
    return (*reasoning, *((TextPart(text=text),) if text else ()), *step.calls)


if TYPE_CHECKING:
    _conforms: type[ModelClient] = ScriptedModel
