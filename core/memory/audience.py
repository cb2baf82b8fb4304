"""Who may see what: what an audience can read, and when a change shows a text to more people."""

from __future__ import annotations

from collections.abc import Iterator

from core.contracts.agents import EVERYONE, Audience
from core.memory.tree import Tree, changed_paths

_TELLING_CHARS = 12
"""A shorter line says nothing that could be recognised in another file."""


def widens(old: str, new: str) -> bool:
    """Return whether somebody sees `new` who did not see `old`. Only narrowing `everyone` does not."""
    return old not in {new, EVERYONE}


def narrowest(audience: Audience) -> frozenset[str]:
    """Return the words of exactly those who read the conversation: its person, else its group, else all."""
    for prefix in ("person:", "address:"):
        if words := frozenset(word for word in audience.words if word.startswith(prefix)):
            return words
    return frozenset({EVERYONE})


def widened_texts(old: Tree, new: Tree) -> Iterator[tuple[str, str, str]]:
    """Yield (path, audience, text) for every text that a change shows to more people than before.

    That is a file whose audience widened, or lines of a file that the change also takes away
    or rewrites and whose readers were fewer.
    """
    changed = tuple(changed_paths(old, new))
    confined = [(old.audience(path), _lines(old, path)) for path in changed if path in old.entries]
    confined = [(word, lines) for word, lines in confined if word != EVERYONE]
    for path in changed:
        if path not in new.entries:
            continue
        audience = new.audience(path)
        if path in old.entries and widens(old.audience(path), audience):
            yield path, audience, new.document(path).body
            continue
        shown = {line for word, lines in confined if widens(word, audience) for line in lines}
        if told := [line for line in new.document(path).body.splitlines() if line.strip() in shown]:
            yield path, audience, "\n".join(told)


def _lines(tree: Tree, path: str) -> frozenset[str]:
    lines = (line.strip() for line in tree.document(path).body.splitlines())
    return frozenset(line for line in lines if len(line) >= _TELLING_CHARS)
