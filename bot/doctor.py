"""Proves every part of a host by using it, and names the fix for what fails."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from bot.config.model import Settings
from channels.contract import Diagnosable, Finding
from core.contracts.agents import Agent, Audience
from core.contracts.clock import Clock
from core.contracts.errors import LodgerError, ModelBusy, ModelError, ModelRejected
from core.contracts.ids import ConversationId, MessageId
from core.contracts.memory import MemoryStore
from core.contracts.messages import Message, Role, TextPart
from core.contracts.models import ModelClient, ModelRequest, StepFinished
from core.contracts.people import AuditEntry, PeopleStore
from core.contracts.sandbox import Sandbox
from core.contracts.store import TranscriptStore

MODEL_PATIENCE = timedelta(seconds=60)
CHANNEL_PATIENCE = timedelta(seconds=60)
_LITTLE_SPACE_BYTES = 500_000_000
_ANSWER_TOKENS = 64

Platforms = Callable[[], AbstractAsyncContextManager[Mapping[str, Diagnosable]]]
"""Opens the configured platforms, or gives those that run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPorts:
    """What is proven. `workspace_problem` runs a command in a workspace and says what went wrong."""

    settings: Settings
    transcripts: TranscriptStore
    people: PeopleStore
    memory: MemoryStore
    model: ModelClient
    sandbox: Sandbox
    workspace_problem: Callable[[Path], Awaitable[str]]
    platforms: Platforms
    clock: Clock
    mask: Callable[[str], str]


class Doctor:
    """Examines one part after the other; every part is tried, whatever the others say."""

    def __init__(self, ports: DoctorPorts) -> None:
        self._ports = ports

    async def examine(self) -> AsyncIterator[Finding]:
        """Yield a finding for each thing that was tried; a fix on a good one is advice."""
        for finding in self._configuration():
            yield self._masked(finding)
        yield self._masked(await self._database())
        yield self._masked(await self._space())
        agents = await self._agents()
        for agent in agents:
            yield self._masked(await self._memory(agent))
        yield self._masked(self._isolation())
        for agent in agents:
            yield self._masked(await self._workspace(agent))
        for agent in agents:
            yield self._masked(await self._model(agent))
        async for finding in self._channels():
            yield self._masked(finding)

    def _configuration(self) -> list[Finding]:
        source = self._ports.settings.source
        detail = f"read from {source}" if source is not None else "no file: everything has its default"
        findings = [Finding(name="configuration", ok=True, detail=detail)]
        findings += [
            Finding(name="configuration", ok=True, detail=warning, fix="Change it, or leave it if you mean it.")
            for warning in self._ports.settings.warnings
        ]
        return findings

    async def _database(self) -> Finding:
        entry = AuditEntry(at=self._ports.clock.now(), who="host", what="doctor", detail={})
        try:
            await self._ports.people.record(entry)
            newest = await self._ports.people.audit(limit=1)
        except LodgerError as error:
            fix = "Look at the disk of host.data_dir: is it full, read-only or gone?"
            return Finding(name="database", ok=False, detail=str(error), fix=fix)
        works = bool(newest) and newest[0].what == entry.what
        return Finding(name="database", ok=works, detail="a row was written and read back")

    async def _space(self) -> Finding:
        data_dir = self._ports.settings.host.data_dir
        usage = await asyncio.to_thread(shutil.disk_usage, data_dir)
        megabytes = usage.free // 1_000_000
        fix = f"Free some space for {data_dir}." if usage.free < _LITTLE_SPACE_BYTES else ""
        return Finding(name="disk", ok=usage.free > 0, detail=f"{megabytes:,} MB free in {data_dir}", fix=fix)

    async def _agents(self) -> tuple[Agent, ...]:
        try:
            return await self._ports.transcripts.agents()
        except LodgerError:
            return ()  # the database's own finding says why

    async def _memory(self, agent: Agent) -> Finding:
        name = f"memory of {agent.name}"
        try:
            snapshot = await self._ports.memory.snapshot(agent.memory_id, Audience())
        except LodgerError as error:
            fix = f"Restore {self._ports.settings.host.data_dir / 'memory'} from a backup."
            return Finding(name=name, ok=False, detail=str(error), fix=fix)
        return Finding(name=name, ok=True, detail=f"{len(snapshot.files)} files read at {snapshot.revision[:10]}")

    def _isolation(self) -> Finding:
        report = self._ports.sandbox.report
        detail = "; ".join((f"{report.kind}: {report.detail}", *report.limits))
        fix = "" if report.works else "Install bubblewrap; until then the shell tool is off and all else works."
        return Finding(name="sandbox", ok=report.works, detail=detail, fix=fix)

    async def _workspace(self, agent: Agent) -> Finding:
        name = f"workspace of {agent.name}"
        if not self._ports.sandbox.report.works:
            return Finding(name=name, ok=True, detail="not tried: there is no sandbox", fix="See sandbox.")
        problem = await self._ports.workspace_problem(Path(agent.workspace))
        fix = f"Let the host's user own {agent.workspace} and every folder above it be entered." if problem else ""
        return Finding(name=name, ok=not problem, detail=problem or f"a command ran in {agent.workspace}", fix=fix)

    async def _model(self, agent: Agent) -> Finding:
        name = f"model of {agent.name}"
        started = self._ports.clock.monotonic()
        try:
            async with asyncio.timeout(MODEL_PATIENCE.total_seconds()):
                said = await self._ask(agent)
        except (ModelError, TimeoutError) as error:
            return Finding(name=name, ok=False, detail=f"{agent.model.model}: {_reason(error)}", fix=_model_fix(error))
        seconds = self._ports.clock.monotonic() - started
        known = self._ports.model.facts(agent.model).known
        fix = "" if known else "Its limits are guesses: set window_tokens and max_output_tokens."
        return Finding(name=name, ok=True, detail=f"{agent.model.model} said {said!r} in {seconds:.1f} s", fix=fix)

    async def _ask(self, agent: Agent) -> str:
        """Return what the model answers to the shortest of questions."""
        question = Message(
            id=MessageId("doctor"),
            conversation_id=ConversationId("doctor"),
            seq=1,
            role=Role.USER,
            parts=(TextPart(text="Answer with the one word: ready"),),
            created_at=self._ports.clock.now(),
        )
        limit = self._ports.model.facts(agent.model).max_output_tokens
        request = ModelRequest(
            settings=agent.model,
            system="You are being tested.",
            messages=(question,),
            tools=(),
            max_output_tokens=min(limit, _ANSWER_TOKENS),
        )
        said = ""
        async for event in self._ports.model.stream(request):
            if isinstance(event, StepFinished):
                said = " ".join(part.text for part in event.parts if isinstance(part, TextPart))
        return " ".join(said.split())[:40]

    async def _channels(self) -> AsyncIterator[Finding]:
        async with self._ports.platforms() as platforms:
            if not platforms:
                yield Finding(name="channels", ok=True, detail="no platform is configured: page and terminal work")
            for name, channel in platforms.items():
                try:
                    async with asyncio.timeout(CHANNEL_PATIENCE.total_seconds()):
                        found = await channel.diagnose()
                except TimeoutError:
                    found = (Finding(name="reach", ok=False, detail="no answer in time", fix="Look at the network."),)
                for finding in found:
                    yield replace(finding, name=f"{name}: {finding.name}")

    def _masked(self, finding: Finding) -> Finding:
        return replace(finding, detail=self._ports.mask(finding.detail), fix=self._ports.mask(finding.fix))


def _reason(error: ModelError | TimeoutError) -> str:
    return str(error) or f"no answer within {MODEL_PATIENCE.seconds} s"


def _model_fix(error: ModelError | TimeoutError) -> str:
    match error:
        case ModelRejected():
            return "Check the model's name, its api_key and its api_base."
        case ModelBusy():
            return "Wait, or raise the limits at the provider."
        case _:
            return "Check the network, the api_base, and the provider's status page."
