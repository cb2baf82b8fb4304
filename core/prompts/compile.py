"""The system prompt, compiled from one memory revision for one audience.

Equal inputs give equal bytes, and what all audiences share comes first, so that conversations
of one agent have a common beginning which a provider can cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files as resource_files

from core.contracts.agents import EVERYONE, Audience
from core.contracts.memory import MemoryFile, MemorySnapshot
from core.prompts.escaping import one_line
from core.prompts.sections import (
    PERSONA,
    core_files,
    directory_pointers,
    render_file,
    render_pointer,
    shares,
    skill_pointers,
)

_NAME = "{{agent_name}}"
_NAME_CHARS = 80
_OWN_SHARE = 5
"""One part in so many of the core budget is kept for files that only this audience sees."""


def compile_prompt(*, agent_name: str, snapshot: MemorySnapshot, audience: Audience, core_budget_chars: int) -> str:
    """Return the system prompt.

    Order: base template, persona, core files, directories, skills; then the same for what only
    this audience sees. Core memory beyond `core_budget_chars` (characters of bodies) is cut to
    fit, each cut marked. How the shared part is cut does not depend on the audience.
    """
    visible = tuple(file for file in snapshot.files if audience.sees(file.audience))
    shared = tuple(file for file in visible if file.audience == EVERYONE)
    own = tuple(file for file in visible if file.audience != EVERYONE)
    shared_budget = core_budget_chars - core_budget_chars // _OWN_SHARE
    shared_core = core_files(shared)
    allotted = shares(shared_core, shared_budget)
    sections = [
        base_template().replace(_NAME, one_line(agent_name, _NAME_CHARS)),
        *_persona(shared_core, allotted),
        *_memory(shared_core, allotted),
        *_pointers(shared),
        *_own(own, core_budget_chars - sum(allotted)),
    ]
    return "\n\n".join(sections) + "\n"


@cache
def base_template() -> str:
    """Return the base prompt as it is shipped."""
    template = resource_files("core.prompts").joinpath("templates", "base.md")
    return template.read_text(encoding="utf-8").strip()


@cache
def template_hash() -> str:
    """Return a hash of the base prompt."""
    return hashlib.sha256(base_template().encode()).hexdigest()[:16]


def stamp(*, agent_name: str, model: str, tools_json: str, audience: Audience, persona_source: str = "") -> str:
    """Return a hash of everything besides memory that a compiled prompt depends on.

    A stored prompt whose stamp differs is compiled afresh at the next turn.
    """
    parts = [template_hash(), agent_name, persona_source, model, tools_json, audience.key]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _persona(core: Sequence[MemoryFile], allotted: Sequence[int]) -> Iterable[str]:
    for file, shown_chars in zip(core, allotted, strict=True):
        if file.path == PERSONA:
            yield render_file(file, shown_chars=shown_chars, element="self")


def _memory(core: Sequence[MemoryFile], allotted: Sequence[int]) -> Iterable[str]:
    parts = zip(core, allotted, strict=True)
    rendered = [render_file(file, shown_chars=shown_chars) for file, shown_chars in parts if file.path != PERSONA]
    if rendered:
        yield "\n".join(["<memory>", *rendered, "</memory>"])


def _pointers(files: Sequence[MemoryFile]) -> Iterable[str]:
    if directories := directory_pointers(files):
        lines = (render_pointer(path, file) for path, file in directories.items())
        yield "\n".join(["<memory_directories>", *lines, "</memory_directories>"])
    if skills := skill_pointers(files):
        lines = (render_pointer(name, file) for name, file in skills.items())
        yield "\n".join(["<skills>", *lines, "</skills>"])


def _own(files: Sequence[MemoryFile], budget_chars: int) -> Iterable[str]:
    core = core_files(files)
    sections = [*_memory_of_audience(core, shares(core, budget_chars)), *_pointers(files)]
    if sections:
        yield "Only the people of this conversation may know what follows."
        yield from sections


def _memory_of_audience(core: Sequence[MemoryFile], allotted: Sequence[int]) -> Iterable[str]:
    rendered = [render_file(file, shown_chars=chars) for file, chars in zip(core, allotted, strict=True)]
    if rendered:
        yield "\n".join(["<memory>", *rendered, "</memory>"])
