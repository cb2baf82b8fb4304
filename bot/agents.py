"""From the configuration to the agents, and to who may talk to them where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bot.config.model import AgentSection, Settings
from bot.conversations.access import AccessRules
from bot.conversations.turn_opening import HEADLESS
from bot.folders import usable
from core.contracts.agents import AgentSpec, ModelSettings
from core.contracts.backend import Backend
from core.contracts.errors import MemoryRefused
from core.contracts.ids import AgentId


async def ensure_agents(settings: Settings, backend: Backend, make_workspace: Callable[[Path], None]) -> None:
    """Create the configured agents, then bring those that exist up to the configuration.

    What fails has changed no agent that there was.

    Raises:
        UnusableFolder: A workspace cannot be created.
        MemoryRefused: The initial files of a new agent break the rules.
    """
    known: list[tuple[AgentId, AgentSpec]] = []
    for name, configured in settings.agents.items():
        with usable(f"[agents.{name}] workspace", configured.workspace):
            await asyncio.to_thread(make_workspace, configured.workspace)
        spec = AgentSpec(
            name=name,
            model=agent_model(settings, configured),
            permission_mode=configured.permission_mode,
            workspace=str(configured.workspace),
            queue_mode=configured.queue_mode,
        )
        found = await backend.find_agent(name)
        if found is not None:
            known.append((found.id, spec))
        else:
            files = await asyncio.to_thread(_initial_memory, configured.memory) if configured.memory else ()
            await backend.create_agent(replace(spec, memory_files=files))
    for agent_id, spec in known:
        await backend.update_agent(agent_id, spec)


def _initial_memory(folder: Path) -> tuple[tuple[str, str], ...]:
    """Return the files an agent is born with.

    Raises:
        MemoryRefused: The folder holds no file, or one that is not text.
    """
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if not found:
        raise MemoryRefused(path=str(folder), rule="there is no file in it", fix="Name a folder of memory files.")
    return tuple((path.relative_to(folder).as_posix(), _text(path)) for path in found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MemoryRefused(path=str(path), rule="it is not UTF-8 text", fix="Convert it or take it out.") from error


def agent_model(settings: Settings, agent: AgentSection) -> ModelSettings:
    """Return the model an agent thinks with, as the core takes it."""
    return settings.models[agent.model].settings(agent.model)


def agents_of_channels(settings: Settings) -> dict[str, str]:
    """Return which agent answers on which channel; local channels talk to the first one."""
    first = next(iter(settings.agents))
    channels = settings.channels
    platforms = {"telegram": channels.telegram, "slack": channels.slack, "discord": channels.discord}
    named = {name: platform.agent for name, platform in platforms.items() if platform is not None}
    return {**dict.fromkeys(("web", "terminal", HEADLESS), first), **named}


def access_rules(settings: Settings) -> AccessRules:
    """Return who may talk, steer and administer, as the configuration says."""
    access = settings.access
    return AccessRules(
        owners=frozenset(access.owners),
        operators=frozenset(access.operators),
        allow=frozenset(access.allow),
        direct_messages=access.direct_messages,
        groups=access.groups,
        bots=frozenset(access.bots),
        guests=access.guests,
    )
