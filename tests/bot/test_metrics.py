"""What the host counts, as Prometheus reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.host_api import Check
from bot.metrics import CountingSink, HostMetrics
from core.contracts.clock import FakeClock
from core.contracts.errors import StoreUnavailable
from core.contracts.events import RetryNotice, RunEvent, RunFinished, UsageReported
from core.contracts.ids import RunId
from core.contracts.runs import StopReason, TurnOutcome, Usage
from core.turns.observer import CallFinished, CallStarted
from tests.core.stores.samples import ADDRESS, START, call, inbound, tool_return, turn

TURN = replace(turn(), origin=ADDRESS)
SECRET_NAMES = ("Alice", "111", "hello")


def read(metrics: HostMetrics, *checks: Check) -> dict[str, float]:
    """Return every sample of the host's own metrics, by name and labels."""
    text = metrics.exposition(checks, open_approvals=2).decode()
    return {
        f"{sample.name}{sorted(sample.labels.values()) or ''}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("lodger_")
    }


def run_event(body) -> RunEvent:
    return RunEvent(run_id=RunId("run-1"), seq=1, body=body)


@pytest.fixture
def metrics() -> HostMetrics:
    return HostMetrics(FakeClock(START), {"shell"})


def test_turns_are_counted_by_channel_and_outcome(metrics: HostMetrics):
    for outcome in (TurnOutcome.COMPLETED, TurnOutcome.COMPLETED, TurnOutcome.ERROR):
        metrics.heard(replace(TURN, outcome=outcome), None)
    found = read(metrics)
    assert found["lodger_turns_total['completed', 'telegram']"] == 2
    assert found["lodger_turns_total['error', 'telegram']"] == 1


def test_a_turn_that_began_in_the_future_took_no_time(metrics: HostMetrics):
    """The wall clock was put back while it ran."""
    metrics.heard(replace(TURN, started_at=START + timedelta(hours=1)), None)
    assert read(metrics)["lodger_turn_seconds_sum['telegram']"] == 0


def test_tokens_costs_retries_and_stop_reasons_are_counted(metrics: HostMetrics):
    usage = Usage(input_tokens=100, output_tokens=7, cached_tokens=90, cost_usd=0.25)
    bodies = (
        UsageReported(usage=usage),
        UsageReported(usage=Usage(input_tokens=1)),
        RetryNotice(reason="busy", wait=timedelta(seconds=1), attempt=1, discard_after=0),
        RunFinished(stop_reason=StopReason.END_TURN),
    )
    for body in bodies:
        metrics.heard(TURN, run_event(body))
    found = read(metrics)
    assert found["lodger_tokens_total['input']"] == 101
    assert found["lodger_tokens_total['cached']"] == 90
    assert found["lodger_cost_usd_total"] == 0.25
    assert found["lodger_run_retries_total"] == 1
    assert found["lodger_runs_total['end_turn']"] == 1


def test_calls_are_counted_by_tool_and_foreign_names_become_one(metrics: HostMetrics):
    for number, name in enumerate(("shell", "made-up-1", "made-up-2")):
        metrics.heard(TURN, CallStarted(call=call(f"c{number}", name)))
        metrics.heard(TURN, CallFinished(result=tool_return(f"c{number}")))
    found = read(metrics)
    assert found["lodger_tool_calls_total['ok', 'shell']"] == 1
    assert found["lodger_tool_calls_total['ok', 'other']"] == 2


async def test_an_event_is_counted_once_it_is_stored(metrics: HostMetrics):
    class Store:
        is_full = True

        async def accept(self, event) -> None:
            if self.is_full:
                raise StoreUnavailable("full")

    store = Store()
    sink = CountingSink(store, metrics)
    with pytest.raises(StoreUnavailable):
        await sink.accept(inbound("e1"))
    store.is_full = False
    await sink.accept(inbound("e1"))
    assert read(metrics)["lodger_events_total['message', 'telegram']"] == 1


def test_checks_say_what_is_well_and_readiness_counts_required_ones(metrics: HostMetrics):
    sandbox = Check(name="sandbox", ok=False, detail="", required=False)
    found = read(metrics, Check(name="database", ok=True, detail=""), sandbox)
    assert (found["lodger_check_ok['database']"], found["lodger_check_ok['sandbox']"]) == (1, 0)
    assert found["lodger_ready"] == 1
    assert read(metrics, Check(name="database", ok=False, detail=""))["lodger_ready"] == 0
    assert found["lodger_approvals_open"] == 2


def test_no_label_names_a_person_a_chat_or_a_text(metrics: HostMetrics):
    metrics.accepted(inbound("e1", "hello"))
    metrics.heard(replace(TURN, outcome=TurnOutcome.COMPLETED), None)
    own = [line for line in metrics.exposition((), open_approvals=0).decode().splitlines() if "lodger_" in line]
    assert any("telegram" in line for line in own)
    assert not [line for line in own for name in SECRET_NAMES if f'"{name}"' in line]
