"""What a writer asked for, applied to a tree; nothing is judged or stored here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from core.contracts.errors import MemoryRefused
from core.contracts.memory import ChangeKind, MemoryChange
from core.memory.frontmatter import Document, clean, parse_text, render
from core.memory.layout import Place, place_of
from core.memory.tree import Tree

_BOM = b"\xef\xbb\xbf"
_QUOTED_CHARS = 4_000
_DESCRIPTION_CHARS = 200
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_BARE = frozenset({Place.COMPANION, Place.POLICY, Place.STRAY})
"""Files that carry no header."""

Sees = Callable[[str], bool]
"""Whether the writer may see files of an audience word."""


def apply_changes(tree: Tree, changes: Sequence[MemoryChange], sees: Sees) -> Tree:
    """Return the tree after all changes, in their order; each sees what the ones before it did.

    Raises:
        MemoryRefused: A change does not fit the files as they are.
    """
    for change in changes:
        tree = tree.with_files(_files_of(tree, change, sees))
    return tree


def _files_of(tree: Tree, change: MemoryChange, sees: Sees) -> Mapping[str, bytes | None]:
    if change.kind is ChangeKind.CREATE:
        if change.path in tree.entries:
            raise MemoryRefused(path=change.path, rule="the file exists", fix="Replace or edit it instead.")
        return {change.path: _encode(_new_text(change, Document()))}
    if change.path not in tree.entries or not sees(tree.audience(change.path)):
        raise MemoryRefused(path=change.path, rule="there is no such file", fix="Create it, or read the directory.")
    match change.kind:
        case ChangeKind.DELETE:
            return {change.path: None}
        case ChangeKind.MOVE:
            return _moved(tree, change)
        case ChangeKind.REPLACE:
            return {change.path: _encode(_new_text(change, tree.document(change.path)))}
        case ChangeKind.EDIT:
            bom = _BOM if tree.read(change.path).startswith(_BOM) else b""
            return {change.path: bom + _encode(_edited(change, tree.document(change.path)))}


def _moved(tree: Tree, change: MemoryChange) -> Mapping[str, bytes | None]:
    if change.target in tree.entries:
        raise MemoryRefused(path=change.target, rule="the file exists", fix="Move to another path, or delete it first.")
    return {change.path: None, change.target: tree.read(change.path)}


def _new_text(change: MemoryChange, old: Document) -> str:
    """Return the text of a created or replaced file, with a header where the place wants one."""
    text = clean(change.text)
    if place_of(change.path) in _BARE:
        return text
    new = parse_text(text)
    if new.header and new.fault:
        raise MemoryRefused(
            path=change.path,
            rule=f"the header between the --- lines cannot be read ({new.fault})",
            fix="Leave it out and give the description as its own argument, or write it as `description: text`.",
        )
    inherited = new.fields if new.header else old.fields
    fields = _completed(inherited, change, new.raw)
    if new.header and fields == inherited:
        return text
    if fields == inherited and not old.fault:
        return old.header + new.raw
    return render(fields, new.raw)


def _completed(fields: Mapping[str, object], change: MemoryChange, body: str) -> Mapping[str, object]:
    """Return header values with the change's description, or one taken from the first heading."""
    completed = {name: clean(value) if isinstance(value, str) else value for name, value in fields.items()}
    if place_of(change.path) is Place.SKILL:
        completed.setdefault("name", change.path.split("/")[1])
    if change.description:
        completed["description"] = clean(change.description)
    elif not completed.get("description") and (heading := _HEADING.search(body)):
        completed["description"] = heading[1][:_DESCRIPTION_CHARS]
    return completed


def _edited(change: MemoryChange, document: Document) -> str:
    if not document.editable:
        raise MemoryRefused(path=change.path, rule=f"the file is no text ({document.fault})", fix="Replace it whole.")
    text = document.text
    if change.old:
        text = _substituted(change, document)
    elif change.text or not change.description:
        raise MemoryRefused(path=change.path, rule="the text to be replaced is empty", fix="Quote it exactly.")
    if not change.description or place_of(change.path) in _BARE:
        return text
    edited = parse_text(text)
    return render({**edited.fields, "description": clean(change.description)}, edited.raw)


def _substituted(change: MemoryChange, document: Document) -> str:
    """Return the file with the one place replaced: in the body, or else in the header."""
    new = clean(change.text)
    in_body = document.raw.count(change.old)
    if in_body == 1:
        return document.header + document.raw.replace(change.old, new)
    if in_body == 0 and document.text.count(change.old) == 1:
        return document.text.replace(change.old, new)
    rule = f"the text to be replaced stands {in_body} times in the file, not once"
    if in_body:
        raise MemoryRefused(path=change.path, rule=rule, fix="Quote more of its surroundings.")
    shown = document.body[:_QUOTED_CHARS]
    cut = "" if shown == document.body else f"\n[{len(shown):,} of {len(document.body):,} characters]"
    raise MemoryRefused(path=change.path, rule=rule, fix=f"The file now reads:\n{shown}{cut}")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
