"""Every part is proven by use; what fails is named with its fix, and stops nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.doctor import Doctor, DoctorPorts
from channels.contract import Diagnosable, Finding
from core.contracts.errors import ModelRejected, ModelUnreachable
from core.models.faulty import Fault, FaultyModel
from core.models.scripted import ScriptedModel, says
from core.sandbox.fake import FakeSandbox
from tests.bot.conversations.hosting import SECRET, hosting, make_settings


class Platform:
    """A platform that found out what a test says."""

    def __init__(self, *findings: Finding) -> None:
        self._findings = findings

    async def diagnose(self) -> tuple[Finding, ...]:
        return self._findings


def platforms(found: Mapping[str, Diagnosable]):
    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, Diagnosable]]:
        yield found

    return opened


@asynccontextmanager
async def doctor(tmp_path: Path, *, close_database: bool = False, **changes) -> AsyncIterator[Doctor]:
    async with hosting(tmp_path) as host:
        (tmp_path / "data").mkdir(exist_ok=True)

        async def no_problem(workspace: Path) -> str:
            del workspace
            return ""

        ports = DoctorPorts(
            settings=make_settings(tmp_path),
            transcripts=host.stores.transcripts,
            people=host.stores.people,
            memory=host.memory,
            model=ScriptedModel([says("ready")]),
            sandbox=FakeSandbox({}, clock=host.clock),
            workspace_problem=no_problem,
            platforms=platforms({}),
            clock=host.clock,
            mask=lambda text: text.replace(SECRET, "***"),
        )
        if close_database:
            await host.stores.database.close()
        yield Doctor(replace(ports, **changes))


async def findings(doctor: Doctor) -> dict[str, Finding]:
    return {finding.name: finding async for finding in doctor.examine()}


async def test_every_part_of_a_sound_host_is_proven_by_use(tmp_path):
    async with doctor(tmp_path) as sound:
        found = await findings(sound)
    assert [name for name, finding in found.items() if not finding.ok] == []
    assert {"configuration", "database", "disk", "memory of lodger", "sandbox", "workspace of lodger"} <= set(found)
    assert "'ready'" in found["model of lodger"].detail


@pytest.mark.parametrize(
    ("error", "fix"),
    [(ModelRejected("401 no such key"), "api_key"), (ModelUnreachable("connection refused"), "network")],
)
async def test_a_model_that_does_not_answer_is_named_with_its_fix(tmp_path, error, fix):
    model = FaultyModel(ScriptedModel([says("ready")]), [Fault(error=error)])
    async with doctor(tmp_path, model=model) as sick:
        found = (await findings(sick))["model of lodger"]
    assert not found.ok
    assert str(error) in found.detail
    assert fix in found.fix


async def test_a_database_that_takes_nothing_is_told_and_the_rest_is_tried_all_the_same(tmp_path):
    async with doctor(tmp_path, close_database=True) as sick:
        found = await findings(sick)
    assert not found["database"].ok
    assert "host.data_dir" in found["database"].fix
    assert {"disk", "sandbox", "channels"} <= set(found)


async def test_a_workspace_where_no_command_runs_is_named(tmp_path):
    async def problem(workspace: Path) -> str:
        return f"{workspace} cannot be entered"

    async with doctor(tmp_path, workspace_problem=problem) as sick:
        found = (await findings(sick))["workspace of lodger"]
    assert (found.ok, "cannot be entered" in found.detail) == (False, True)


async def test_what_a_platform_finds_out_carries_its_name_and_no_secret(tmp_path):
    trouble = Finding(name="token", ok=False, detail=f"refused: {SECRET}", fix="Ask @BotFather for a new one.")
    async with doctor(tmp_path, platforms=platforms({"telegram": Platform(trouble)})) as sick:
        found = (await findings(sick))["telegram: token"]
    assert found == Finding(name="telegram: token", ok=False, detail="refused: ***", fix=trouble.fix)


async def test_advice_of_the_configuration_is_passed_on(tmp_path):
    settings = replace(make_settings(tmp_path), warnings=("channels.telegram.token stands in the file",))
    async with doctor(tmp_path, settings=settings) as host:
        found = [finding async for finding in host.examine() if finding.fix]
    assert [finding.detail for finding in found] == ["channels.telegram.token stands in the file"]
