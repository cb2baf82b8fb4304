"""How an open conversation learns of a new memory revision: as a reminder, once, in its transcript."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from core.contracts.memory import MemoryCommit, MemoryFile, MemorySnapshot
from core.contracts.messages import ReminderPart
from core.prompts.escaping import escape_body, one_line
from core.prompts.reminders import ReminderKind
from core.prompts.sections import (
    attributes_of,
    core_files,
    directory_pointers,
    render_file,
    render_pointer,
    skill_pointers,
)

WHOLE_TEXT_CHARS = 2_000
_SHORT_REVISION = 12


def memory_update_reminder(
    before: MemorySnapshot, after: MemorySnapshot, commits: Sequence[MemoryCommit]
) -> ReminderPart | None:
    """Return what changed in the prompt between two snapshots of one audience, or None.

    Each changed core file comes whole, over 2,000 characters as a unified diff; a file that is
    gone by its name; directories and skills by their pointers. Of `commits` only those that
    touched something told here are named.
    """
    told = list(_core_changes(before, after))
    told += _pointer_changes("Directory", directory_pointers(before.files), directory_pointers(after.files))
    told += _pointer_changes("Skill", skill_pointers(before.files), skill_pointers(after.files))
    if not told:
        return None
    touched = {path for path, _ in told}
    names = [_name(commit) for commit in commits if touched.intersection(commit.paths)]
    head = f"Memory is now at revision {one_line(after.revision)[:_SHORT_REVISION]}. This replaces what you saw before."
    return ReminderPart(kind=ReminderKind.MEMORY_UPDATE, text="\n".join([head, *names, *(text for _, text in told)]))


def _name(commit: MemoryCommit) -> str:
    return f"- {commit.revision[:_SHORT_REVISION]} by {one_line(commit.author)}: {one_line(commit.message)}"


def _core_changes(before: MemorySnapshot, after: MemorySnapshot) -> Iterator[tuple[str, str]]:
    old = {file.path: file for file in core_files(before.files)}
    new = {file.path: file for file in core_files(after.files)}
    for path in sorted(old.keys() | new.keys()):
        if path not in new:
            yield path, f"Deleted: {one_line(path)}"
        elif path not in old:
            yield path, render_file(new[path])
        elif _rendered_fields(old[path]) != _rendered_fields(new[path]):
            yield path, _changed(old[path], new[path])


def _rendered_fields(file: MemoryFile) -> tuple[object, ...]:
    """Return everything of a file that the prompt shows; nothing else is worth an update."""
    return file.body, file.description, file.limit_chars, file.read_only, file.audience


def _changed(old: MemoryFile, new: MemoryFile) -> str:
    if len(new.body) <= WHOLE_TEXT_CHARS:
        return render_file(new)
    lines = difflib.unified_diff(old.body.splitlines(), new.body.splitlines(), lineterm="", n=2)
    diff = "\n".join(lines)
    if len(diff) > len(new.body):
        return render_file(new)
    return f"<memory_diff {attributes_of(new)}>\n{escape_body(diff)}\n</memory_diff>"


def _pointer_changes(
    noun: str, old: Mapping[str, MemoryFile], new: Mapping[str, MemoryFile]
) -> Iterator[tuple[str, str]]:
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield old[name].path, f"{noun} gone: {one_line(name)}"
        elif name not in old or old[name].description != new[name].description:
            yield new[name].path, f"{noun}: {render_pointer(name, new[name]).removeprefix('- ')}"
