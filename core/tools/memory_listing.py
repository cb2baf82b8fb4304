"""Directory listings of a memory: what lies in it, what for, latest edit first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.contracts.memory import MemoryFile
from core.tools.output import clean_text

SHOWN_ENTRIES = 200
INDEX_NAME = "MEMORY.md"
"""The file whose description speaks for its directory."""

_DESCRIPTION_CHARS = 120
_NAME_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One file or directory directly in the listed one; `rank` is 0 for the latest edit."""

    name: str
    rank: int
    text: str


def listing(files: Sequence[MemoryFile], directory: str, edited: Sequence[str]) -> str | None:
    """Return the entries of `directory` with sizes and descriptions; None where there is no such directory.

    Args:
        files: All files of the snapshot.
        directory: A path without slashes at its ends; empty for the root.
        edited: Paths from latest to earliest edit; may repeat, may lack some.
    """
    prefix = f"{directory}/" if directory else ""
    inside = [file for file in files if file.path.startswith(prefix)]
    if not inside:
        return None if directory else "(the memory is empty)"
    ranks = _ranks(edited)
    grouped: dict[str, list[MemoryFile]] = {}
    for file in inside:
        name, slash, _ = file.path.removeprefix(prefix).partition("/")
        grouped.setdefault(name + slash, []).append(file)
    entries = sorted(
        (_entry(prefix, name, members, ranks) for name, members in grouped.items()),
        key=lambda entry: (entry.rank, entry.name),
    )
    lines = [entry.text for entry in entries[:SHOWN_ENTRIES]]
    if len(entries) > SHOWN_ENTRIES:
        lines.append(f"[{SHOWN_ENTRIES} of {len(entries):,} entries, latest edits first; name a path to read the rest]")
    return "\n".join(lines)


def _ranks(edited: Sequence[str]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for path in edited:
        ranks.setdefault(path, len(ranks))
    return ranks


def _entry(prefix: str, name: str, members: Sequence[MemoryFile], ranks: dict[str, int]) -> _Entry:
    rank = min(ranks.get(file.path, len(ranks)) for file in members)
    if name.endswith("/"):
        index = next((file for file in members if file.path == f"{prefix}{name}{INDEX_NAME}"), None)
        facts, description = f"{len(members):,} files", index.description if index else ""
    else:
        facts, description = f"{len(members[0].body):,} characters", members[0].description
    about = f": {clean_text(description)[:_DESCRIPTION_CHARS]}" if description else ""
    return _Entry(name=name, rank=rank, text=f"{(prefix + name)[:_NAME_CHARS]} ({facts}){about}")
