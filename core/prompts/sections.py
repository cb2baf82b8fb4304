"""Memory as a model reads it: one element per core file, pointers for everything else."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from core.contracts.agents import EVERYONE
from core.contracts.memory import MemoryFile
from core.prompts.escaping import escape_attribute, escape_body, one_line

PERSONA = "persona.md"
_INDEX = "MEMORY.md"
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
"""Joiners, variation selectors, the keycap and skin tones: they belong to the character before."""
_POINTER_CHARS = 500


def core_files(files: Iterable[MemoryFile]) -> tuple[MemoryFile, ...]:
    """Return the files that are compiled whole: the index first, then by path."""
    return tuple(sorted((file for file in files if file.core), key=lambda file: (file.path != _INDEX, file.path)))


def directory_pointers(files: Iterable[MemoryFile]) -> Mapping[str, MemoryFile]:
    """Return the index of each deferred directory, by the directory's path."""
    found = {file.path.removesuffix(_INDEX): file for file in files if file.path.endswith(f"/{_INDEX}")}
    return {path: file for path, file in sorted(found.items()) if not path.startswith("skills/")}


def skill_pointers(files: Iterable[MemoryFile]) -> Mapping[str, MemoryFile]:
    """Return the SKILL.md of each skill, by the skill's name."""
    parts = ((file.path.split("/"), file) for file in files)
    return {path[1]: file for path, file in sorted(parts, key=lambda part: part[0]) if _is_skill(path)}


def _is_skill(path: Sequence[str]) -> bool:
    match path:
        case ["skills", _, "SKILL.md"]:
            return True
        case _:
            return False


def render_file(file: MemoryFile, *, shown_chars: int | None = None, element: str = "memory_file") -> str:
    """Return a core file as an element; cut to `shown_chars` with a mark that says how to read on."""
    body = file.body if shown_chars is None else cut(file.body, shown_chars)
    mark = "" if len(body) == len(file.body) else cut_mark(len(body), len(file.body))
    return f"<{element} {attributes_of(file)}>\n{escape_body(body.rstrip())}{mark}\n</{element}>"


def attributes_of(file: MemoryFile) -> str:
    """Return what is told of a core file beside its body."""
    audience = "" if file.audience == EVERYONE else f' audience="{escape_attribute(file.audience)}"'
    return (
        f'path="{escape_attribute(file.path)}" description="{escape_attribute(file.description)}" '
        f'chars="{len(file.body)}/{file.limit_chars}" read_only="{str(file.read_only).lower()}"{audience}'
    )


def cut_mark(shown_chars: int, total_chars: int) -> str:
    """Return the line behind a text that was cut."""
    return f"\n[{shown_chars} of {total_chars} characters, read the rest with memory_read]"


def cut(text: str, limit_chars: int) -> str:
    """Return at most the first `limit_chars` characters, never parting what is one character to the eye."""
    if len(text) <= limit_chars:
        return text
    end = max(limit_chars, 0)
    while end > 0 and (_extends(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end]


def _extends(character: str) -> bool:
    return character in _JOINERS or unicodedata.combining(character) > 0


def render_pointer(name: str, file: MemoryFile) -> str:
    """Return one line for what is not loaded."""
    return f"- {one_line(name)}: {escape_body(one_line(file.description, _POINTER_CHARS))}"


def shares(files: Sequence[MemoryFile], budget_chars: int) -> tuple[int, ...]:
    """Divide a budget: no file gets more than it needs or its own limit, and small files stay whole.

    Files over the fair share give way first; what the small ones leave goes to the large ones.
    """
    needs = [min(len(file.body), file.limit_chars) for file in files]
    given = [0] * len(files)
    left = max(budget_chars, 0)
    for place, index in enumerate(sorted(range(len(files)), key=lambda index: (needs[index], index))):
        given[index] = min(needs[index], left // (len(files) - place))
        left -= given[index]
    return tuple(given)
