"""Agents as the configuration wants them: born once with their files, then kept up to date."""

from __future__ import annotations

import pytest

from bot.agents import ensure_agents
from bot.config.load import load_settings
from core.backends.local.backend import LocalBackend
from core.contracts.agents import Audience, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.errors import MemoryRefused
from core.memory.fake import FakeMemoryStore
from core.models.scripted import ScriptedModel
from core.stores.inmemory import open_in_memory

PERSONA = "---\ndescription: Who I am\n---\nI am Ada.\n"
INDEX = "---\ndescription: The index\n---\nNothing yet.\n"


@pytest.fixture
async def backend():
    clock = FakeClock()
    stores = open_in_memory(clock)
    async with LocalBackend(
        store=stores.transcripts, memory=FakeMemoryStore(clock), model=ScriptedModel([]), clock=clock, mask=str
    ) as opened:
        yield opened
    await stores.database.close()


def settings(tmp_path, more: str = ""):
    config = tmp_path / "config.toml"
    config.write_text(
        f'[host]\ndata_dir = "{tmp_path}/data"\n[agents.ada]\nworkspace = "{tmp_path}/ws"\n{more}', encoding="utf-8"
    )
    return load_settings(config, environ={"HOME": str(tmp_path)})


async def born(backend, tmp_path, more: str = ""):
    await ensure_agents(settings(tmp_path, more), backend, lambda path: path.mkdir(exist_ok=True))
    return await backend.find_agent("ada")


async def test_a_new_agent_is_born_with_the_files_of_its_folder(backend, tmp_path):
    folder = tmp_path / "birth"
    folder.mkdir()
    (folder / "persona.md").write_text(PERSONA, encoding="utf-8")
    (folder / "MEMORY.md").write_text(INDEX, encoding="utf-8")

    agent = await born(backend, tmp_path, f'memory = "{folder}"\n')

    conversation = await backend.create_conversation(agent.id, Audience())
    file = await backend._memory.read(agent.memory_id, "persona.md", conversation.audience)
    assert file.body.strip() == "I am Ada."


async def test_an_agent_that_exists_is_brought_up_to_the_configuration_and_keeps_its_memory(backend, tmp_path):
    first = await born(backend, tmp_path)
    again = await born(backend, tmp_path, 'permission_mode = "strict"\nmemory = "/gone"\n')

    assert (again.id, again.memory_id) == (first.id, first.memory_id)
    assert again.permission_mode is PermissionMode.STRICT


@pytest.mark.parametrize(("content", "rule"), [(None, "no file"), (b"\xff\xfe\x00", "not UTF-8")])
async def test_initial_files_that_cannot_be_used_are_named_and_no_agent_is_born(backend, tmp_path, content, rule):
    folder = tmp_path / "birth"
    folder.mkdir()
    if content is not None:
        (folder / "persona.md").write_bytes(content)

    with pytest.raises(MemoryRefused, match=rule):
        await born(backend, tmp_path, f'memory = "{folder}"\n')
    assert await backend.find_agent("ada") is None
