"""What the host counts, in the words of Prometheus. No label names a person, a chat or a text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from bot.host_api import Check
from channels.contract import Mark, Sink
from core.contracts.addresses import InboundEvent
from core.contracts.clock import Clock
from core.contracts.events import RetryNotice, RunEvent, RunFinished, UsageReported
from core.contracts.ids import TurnId
from core.contracts.runs import Turn
from core.turns.observer import ApprovalsOpened, CallFinished, CallStarted, TurnEvent

OTHER_TOOL = "other"
"""Stands for tools that are not built in: their names come from outside and could be any number."""
_TURN_SECONDS = (0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)


class HostMetrics:
    """Counts since the start of the process; everything that can be read when asked is read then."""

    def __init__(self, clock: Clock, tools: Collection[str]) -> None:
        """Take `tools`, the names that may stand as labels."""
        self._clock = clock
        self._tools = frozenset(tools)
        self._started: dict[TurnId, dict[str, str]] = {}
        """Tools of the calls under way, by turn and call."""
        self._registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self._events = Counter("lodger_events", "Events taken in.", ["channel", "kind"], registry=registry)
        self._turns = Counter("lodger_turns", "Turns that ended.", ["channel", "outcome"], registry=registry)
        self._turn_time = Histogram(
            "lodger_turn_seconds",
            "From the begin of a turn to its end, waiting for people included.",
            ["channel"],
            buckets=_TURN_SECONDS,
            registry=registry,
        )
        self._runs = Counter("lodger_runs", "Model steps that ended.", ["stop_reason"], registry=registry)
        self._retries = Counter("lodger_run_retries", "Model steps tried again.", registry=registry)
        self._tokens = Counter("lodger_tokens", "Tokens of models.", ["kind"], registry=registry)
        self._cost = Counter("lodger_cost_usd", "What priced models cost, in US dollars.", registry=registry)
        self._tool_calls = Counter("lodger_tool_calls", "Calls that ended.", ["tool", "outcome"], registry=registry)
        self._asked = Counter("lodger_approvals_opened", "Calls put to people.", registry=registry)
        self._given_up = Counter(
            "lodger_work_given_up", "Work that failed again and again.", ["queue"], registry=registry
        )
        self._checks = Gauge("lodger_check_ok", "Whether a part of the host is well.", ["check"], registry=registry)
        self._ready = Gauge("lodger_ready", "Whether all required parts are well.", registry=registry)
        self._open_approvals = Gauge("lodger_approvals_open", "Calls that wait for people.", registry=registry)

    def accepted(self, event: InboundEvent) -> None:
        """Count an event that was taken in."""
        kind = type(event.body).__name__.removesuffix("Body").lower()
        self._events.labels(event.address.channel, kind).inc()

    def heard(self, turn: Turn, event: TurnEvent | None) -> None:
        """Count what a turn tells; None is its end."""
        match event:
            case None:
                self._ended(turn)
            case RunEvent():
                self._run_told(event)
            case CallStarted(call=call):
                name = call.name if call.name in self._tools else OTHER_TOOL
                self._started.setdefault(turn.id, {})[call.id] = name
            case CallFinished(result=result):
                tool = self._started.get(turn.id, {}).pop(result.call_id, OTHER_TOOL)
                self._tool_calls.labels(tool, result.outcome.value).inc()
            case ApprovalsOpened(approvals=approvals):
                self._asked.inc(len(approvals))

    def gave_up(self, queue: str) -> None:
        """Count work that was given up."""
        self._given_up.labels(queue).inc()

    def exposition(self, checks: Collection[Check], *, open_approvals: int) -> bytes:
        """Return everything in Prometheus's text format."""
        for check in checks:
            self._checks.labels(check.name).set(check.ok)
        self._ready.set(all(check.ok for check in checks if check.required))
        self._open_approvals.set(open_approvals)
        return generate_latest(self._registry)

    def _ended(self, turn: Turn) -> None:
        self._started.pop(turn.id, None)
        channel = "none" if turn.origin is None else turn.origin.channel
        self._turns.labels(channel, "unknown" if turn.outcome is None else turn.outcome.value).inc()
        self._turn_time.labels(channel).observe(_seconds_between(turn.started_at, self._clock.now()))

    def _run_told(self, event: RunEvent) -> None:
        match event.body:
            case RunFinished(stop_reason=reason):
                self._runs.labels(reason.value).inc()
            case RetryNotice():
                self._retries.inc()
            case UsageReported(usage=usage):
                kinds: Mapping[str, int] = {
                    "input": usage.input_tokens,
                    "output": usage.output_tokens,
                    "cached": usage.cached_tokens,
                    "cache_write": usage.cache_write_tokens,
                }
                for kind, number in kinds.items():
                    self._tokens.labels(kind).inc(number)
                self._cost.inc(usage.cost_usd or 0)
            case _:
                pass


def _seconds_between(start: datetime, end: datetime) -> float:
    """Return how long something took; a clock that was put back makes it nothing, never less."""
    return max(0.0, (end - start).total_seconds())


class CountingSink:
    """Counts events on their way into the host, once they are stored."""

    def __init__(self, sink: Sink, metrics: HostMetrics) -> None:
        self._sink = sink
        self._metrics = metrics

    async def accept(self, event: InboundEvent) -> None:
        await self._sink.accept(event)
        self._metrics.accepted(event)

    async def marks(self, channel: str, account: str) -> tuple[Mark, ...]:
        return await self._sink.marks(channel, account)


if TYPE_CHECKING:
    _conforms: type[Sink] = CountingSink
