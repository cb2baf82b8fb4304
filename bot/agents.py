"""From the configuration to the agents, and to who may talk to them where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from bot.config.model import AgentSection, Settings
from bot.conversations.access import AccessRules
from bot.conversations.worker import HEADLESS
from bot.folders import usable
from core.contracts.agents import AgentSpec, ModelSettings
from core.contracts.backend import Backend


async def ensure_agents(settings: Settings, backend: Backend, make_workspace: Callable[[Path], None]) -> None:
    """Create the configured agents, and bring those that exist up to the configuration.

    Raises:
        UnusableFolder: A workspace cannot be created.
    """
    for name, configured in settings.agents.items():
        with usable(f"[agents.{name}] workspace", configured.workspace):
            await asyncio.to_thread(make_workspace, configured.workspace)
        spec = AgentSpec(
            name=name,
            model=agent_model(settings, configured),
            permission_mode=configured.permission_mode,
            workspace=str(configured.workspace),
            memory_files=await asyncio.to_thread(_initial_memory, configured),
        )
        known = await backend.find_agent(name)
        if known is None:
            await backend.create_agent(spec)
        else:
            await backend.update_agent(known.id, spec)


def _initial_memory(configured: AgentSection) -> tuple[tuple[str, str], ...]:
    """Return the files an agent is born with; none: the default ones."""
    if configured.memory is None:
        return ()
    found = sorted(path for path in configured.memory.rglob("*") if path.is_file())
    return tuple((path.relative_to(configured.memory).as_posix(), path.read_text(encoding="utf-8")) for path in found)


def agent_model(settings: Settings, agent: AgentSection) -> ModelSettings:
    """Return the model an agent thinks with, as the core takes it."""
    return settings.models[agent.model].settings(agent.model)


def agents_of_channels(settings: Settings) -> dict[str, str]:
    """Return which agent answers on which channel; local channels talk to the first one."""
    first = next(iter(settings.agents))
    agents = dict.fromkeys(("web", "terminal", HEADLESS), first)
    if settings.channels.telegram is not None:
        agents["telegram"] = settings.channels.telegram.agent
    return agents


def access_rules(settings: Settings) -> AccessRules:
    """Return who may talk, steer and administer, as the configuration says."""
    access = settings.access
    return AccessRules(
        owners=frozenset(access.owners),
        operators=frozenset(access.operators),
        allow=frozenset(access.allow),
        direct_messages=access.direct_messages,
    )
