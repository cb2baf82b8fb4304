"""What a directory under `skills/` must be: a described SKILL.md and bounded companions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.memory.layout import COMPANION_SEGMENTS, SKILLS, Place, place_of, skill_of
from core.memory.tree import Tree

COMPANION_BYTES = 1_000_000
SKILL_BYTES = 5_000_000


def faults(tree: Tree, changed: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (path, rule, fix) for every skill that a change left unsound."""
    touched = {skill_of(path) for path in changed if place_of(path) in {Place.SKILL, Place.COMPANION}}
    for manifest in sorted(touched):
        directory = manifest.rpartition("/")[0] + "/"
        files = [path for path in tree.entries if path.startswith(directory)]
        if files:
            yield from _skill_faults(tree, manifest, files)


def _skill_faults(tree: Tree, manifest: str, files: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    if manifest not in tree.entries:
        yield manifest, "a skill without SKILL.md cannot be used", f"Create {manifest} with name and description."
        return
    name = manifest.split("/")[1]
    if tree.document(manifest).word("name") != name:
        yield manifest, "the frontmatter's name is not that of its directory", f"Write `name: {name}`."
    sizes = {path: tree.size_bytes(path) for path in files}
    for path in files:
        if sizes[path] > COMPANION_BYTES:
            yield path, f"{sizes[path]:,} bytes are more than 1 MB", "Keep large data in the workspace."
        if path.count("/") >= COMPANION_SEGMENTS:
            yield path, f"it lies deeper than {COMPANION_SEGMENTS} levels", f"Keep files closer to {SKILLS}/{name}/."
    if sum(sizes.values()) > SKILL_BYTES:
        yield manifest, "the skill's files have more than 5 MB in all", "Keep large data in the workspace."
