"""Where things are in a memory: which paths exist, what each one is, who may see it.

MEMORY.md persona.md human.md ...   core: compiled into the system prompt
people/<person>.md                  core, where that person is the audience
<directory>/MEMORY.md, *.md         deferred: only the index description is in the prompt
archive/                            a deferred directory for what should stop loading
skills/<name>/SKILL.md, ...         name and description in the prompt; companions on request
.memory.json                        the policy
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache

from core.contracts.agents import EVERYONE
from core.contracts.memory import MemoryFile
from core.memory.frontmatter import Document

INDEX = "MEMORY.md"
PERSONA = "persona.md"
SKILL = "SKILL.md"
SKILLS = "skills"
PEOPLE = "people"
ARCHIVE = "archive"
POLICY = ".memory.json"
FILE_CHARS = 20_000
SEGMENT_BYTES = 100
COMPANION_SEGMENTS = 8

_AUDIENCE = re.compile(r"everyone|person:\S{1,200}|address:[^\s/]{1,50}/\S{1,200}")


class Place(StrEnum):
    """What a path is by where it stands."""

    CORE = "core"
    DEFERRED = "deferred"
    PERSON = "person"
    SKILL = "skill"
    COMPANION = "companion"
    POLICY = "policy"
    STRAY = "stray"
    """Neither Markdown nor inside a skill: nothing reads it."""


@lru_cache(maxsize=8_192)
def place_of(path: str) -> Place:
    """Return what `path` is."""
    segments = path.split("/")
    if path == POLICY:
        return Place.POLICY
    if segments[0] == SKILLS:
        return _place_in_skills(segments)
    if not path.endswith(".md"):
        return Place.STRAY
    if len(segments) == 1:
        return Place.CORE
    if segments[0] == PEOPLE and len(segments) == 2 and segments[1] != INDEX:  # noqa: PLR2004 - people/<person>.md
        return Place.PERSON
    return Place.DEFERRED


def _place_in_skills(segments: list[str]) -> Place:
    match segments:
        case [_, _, last] if last == SKILL:
            return Place.SKILL
        case [_, _, _, *_]:
            return Place.COMPANION
        case _:
            return Place.STRAY


def index_of(path: str) -> str | None:
    """Return the file that says what a deferred file's directory holds, or None at the root."""
    directory, _, name = path.rpartition("/")
    return f"{directory}/{INDEX}" if directory and name else None


def skill_of(path: str) -> str:
    """Return the SKILL.md that a path under `skills/` belongs to."""
    return "/".join([*path.split("/")[:2], SKILL])


def path_fault(path: str) -> str | None:
    """Return what is wrong with a path that somebody wants to write, or None.

    Refused is what another system, git or a reader's eye could take for a different path.
    """
    if not path or path.startswith("/") or "\\" in path:
        return "the path is not relative with / between its parts"
    if unicodedata.normalize("NFC", path) != path or not path.isprintable():
        return "the path holds characters that cannot be told apart or seen"
    if any(character in path for character in ':*?"<>|'):
        return 'the path holds one of : * ? " < > |'
    return next((fault for segment in path.split("/") if (fault := _segment_fault(segment, path))), None)


def _segment_fault(segment: str, path: str) -> str | None:
    if segment in {"", ".", ".."}:
        return "the path has an empty, . or .. part"
    if segment.startswith(".") and path != POLICY:
        return "a part of the path begins with a dot"
    if segment != segment.strip() or segment.endswith("."):
        return "a part of the path ends in a dot or has blanks at its ends"
    if re.fullmatch(r"(?i)git~\d+|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", segment):
        return "a part of the path is reserved on some systems"
    if len(segment.encode("utf-8", "replace")) > SEGMENT_BYTES:
        return f"a part of the path is longer than {SEGMENT_BYTES} bytes"
    return None


def declared_audience(path: str, document: Document) -> str:
    """Return the audience word of a file; a malformed one is returned as it is: nobody matches it."""
    word = document.word("audience").strip()
    if word:
        return word
    if place_of(path) is Place.PERSON:
        return f"person:{path.removeprefix(PEOPLE + '/').removesuffix('.md')}"
    return "nobody" if document.fields.get("audience") else EVERYONE


def is_audience(word: str) -> bool:
    """Return whether `word` is an audience that somebody can belong to."""
    return _AUDIENCE.fullmatch(word) is not None


def to_file(path: str, document: Document, *, audience: str, file_chars: int) -> MemoryFile:
    """Return the file as readers get it."""
    limit = document.number("limit")
    place = place_of(path)
    return MemoryFile(
        path=path,
        body=document.body,
        description=document.word("description"),
        limit_chars=file_chars if limit is None else min(limit, file_chars),
        read_only=document.flag("read_only"),
        audience=audience,
        hidden=document.flag("hidden"),
        core=place is Place.CORE or (place is Place.PERSON and audience.startswith("person:")),
    )
