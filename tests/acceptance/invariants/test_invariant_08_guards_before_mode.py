"""Invariant 8: guards stand before the permission mode, hold again at execution, and the default is to ask."""

import asyncio
from pathlib import Path

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.messages import ReturnOutcome
from core.contracts.permissions import Action
from core.contracts.tools import Access
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.permissions.rules import make_rule
from tests.acceptance.invariants.chat_host import chat_host
from tests.core.turns.workbench import RecordingTool

EVERY_MODE = list(PermissionMode)


def writer() -> RecordingTool:
    return RecordingTool(name="write", reach=lambda arguments: Access(writes=(Path(arguments["path"]),)))


def write(path) -> ScriptedModel:
    return ScriptedModel([asks(tool_call("a", "write", f'{{"path":"{path}"}}')), says("ok")])


@pytest.mark.parametrize("mode", EVERY_MODE)
@pytest.mark.parametrize("where", ["outside", "data/memory", "workspace/../outside"])
async def test_no_mode_and_no_rule_lets_a_call_out_of_the_workspace(tmp_path, mode, where):
    tool, model = writer(), write(tmp_path / where / "x.md")
    allow_all = (make_rule(tool="write", action=Action.ALLOW),)
    async with chat_host(tmp_path, model, tool, mode=mode, rules=allow_all) as host:
        await host.says("write it")

        (answer,) = await host.returns()
        assert answer.outcome is ReturnOutcome.DENIED
        assert "guard: workspace" in answer.parts[0].text
        assert await host.stores.ledger.open_approvals_of() == ()
    assert tool.calls == []


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_no_mode_lets_a_denied_call_run(tmp_path, mode):
    tool, model = writer(), write(tmp_path / "workspace" / "x.md")
    deny = (make_rule(tool="write", action=Action.DENY),)
    async with chat_host(tmp_path, model, tool, mode=mode, rules=deny) as host:
        await host.says("write it")
        assert [answer.outcome for answer in await host.returns()] == [ReturnOutcome.DENIED]
    assert tool.calls == []


async def test_a_link_that_is_put_in_the_way_while_a_call_waits_stops_it_at_execution(tmp_path):
    target = tmp_path / "workspace" / "notes" / "x.md"
    tool, model = writer(), write(target)
    async with chat_host(tmp_path, model, tool) as host:
        await asyncio.to_thread(target.parent.mkdir)
        await host.says("write it")
        assert tool.calls == []
        await asyncio.to_thread(target.parent.rmdir)
        await asyncio.to_thread((tmp_path / "outside").mkdir)
        await asyncio.to_thread(target.parent.symlink_to, tmp_path / "outside")
        await host.presses("Approve")

        (answer,) = await host.returns()
        assert answer.outcome is ReturnOutcome.DENIED
        assert "guard: workspace" in answer.parts[0].text
    assert tool.calls == []


async def test_a_call_that_is_approved_and_still_inside_runs(tmp_path):
    """What the test above would otherwise pass without."""
    tool, model = writer(), write(tmp_path / "workspace" / "x.md")
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("write it")
        await host.presses("Approve")
    assert tool.calls == ["a"]


@pytest.mark.parametrize("reach", [None, Access(network=("example.org",)), Access(command="make")])
async def test_what_nothing_speaks_of_is_asked_about(tmp_path, reach):
    tool = RecordingTool(name="unheard_of", reach=lambda arguments: reach)
    model = ScriptedModel([asks(tool_call("a", "unheard_of")), says("ok")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("do it")
        assert [approval.tool for approval in await host.stores.ledger.open_approvals_of()] == ["unheard_of"]
    assert tool.calls == []
