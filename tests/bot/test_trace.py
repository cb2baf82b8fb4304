"""Everything that is stored about a turn can be read back, without secrets."""

from __future__ import annotations

import json

import pytest

from bot.trace import Tracer, trace_lines
from core.contracts.errors import NotFound
from core.contracts.ids import TurnId
from core.models.scripted import asks, says, tool_call
from tests.bot.conversations.hosting import SECRET, hosting


def tracer(host) -> Tracer:
    return Tracer(
        transcripts=host.stores.transcripts,
        ledger=host.stores.ledger,
        delivery=host.stores.delivery,
        mask=lambda text: text.replace(SECRET, "***"),
    )


async def test_a_turn_is_told_from_its_message_to_what_it_sent(tmp_path):
    async with hosting(tmp_path, asks(tool_call("c1", "shell", '{"command": "make"}')), says("It is built.")) as host:
        await host.says("build it")
        await host.presses("Approve")
        turn = await host.latest_turn()
        trace = await tracer(host).trace(turn.id)
    assert [row["body"]["text"] for row in trace["inbox"]] == ["build it"]
    assert [run["stop_reason"] for run in trace["runs"]] == ["requires_approval", "end_turn"]
    assert [(call["name"], call["state"]) for call in trace["calls"]] == [("shell", "done")]
    assert [approval["state"] for approval in trace["approvals"]] == ["approved"]
    assert any(row["content"].get("markdown") == "It is built." for row in trace["outbox"])
    lines = "\n".join(trace_lines(trace))
    assert "approved by Alice" in lines
    assert "completed" in lines.splitlines()[0]


async def test_no_secret_stands_in_a_trace(tmp_path):
    async with hosting(tmp_path, says(f"The word is {SECRET}.")) as host:
        await host.says("hello")
        trace = await tracer(host).trace((await host.latest_turn()).id)
    assert SECRET not in json.dumps(trace)
    assert "***" in json.dumps(trace)


async def test_an_unknown_turn_is_named(tmp_path):
    async with hosting(tmp_path) as host:
        with pytest.raises(NotFound, match="turn-9"):
            await tracer(host).trace(TurnId("turn-9"))
