"""Where the keys of a TOML text stand, for error messages; the text has been parsed before."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys from the root; a number is the place in a list."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_DOTTED = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})[ \t]*=")
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|\n|[\[\]{}]|[^"'#\n\[\]{}]+''',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text, counted from 1."""

    line: int
    column: int


def key_positions(text: str) -> Mapping[KeyPath, Position]:
    """Return where each table and key of a valid TOML text begins; inline tables count as values."""
    found: dict[KeyPath, Position] = {}
    array_lengths: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for offset, statement in _statements(text):
        header = _HEADER.match(statement)
        match = header or _ASSIGNMENT.match(statement)
        if match is None:
            continue
        keys = _keys(match[match.lastindex or 1])
        if header is None:
            path = (*table, *keys)
        else:
            path = table = _table_path(keys, header[1] == "[[", array_lengths)
        position = _position(text, offset + match.start(match.lastindex or 1))
        for length in range(1, len(path) + 1):
            found.setdefault(path[:length], position)
    return found


def nearest_position(positions: Mapping[KeyPath, Position], path: KeyPath) -> Position | None:
    """Return where `path` stands, or the innermost table or key around it that is known."""
    for length in range(len(path), 0, -1):
        if path[:length] in positions:
            return positions[path[:length]]
    return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    depth = start = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth == 0:
                yield start, text[start : token.start()]
                start = token.end()
    yield start, text[start:]


def _keys(dotted: str) -> KeyPath:
    node: object = tomllib.loads(f"{dotted} = 0")
    keys: list[str] = []
    while isinstance(node, dict):
        (key,) = node
        keys.append(key)
        node = node[key]
    return tuple(keys)


def _table_path(keys: KeyPath, is_element: bool, array_lengths: dict[KeyPath, int]) -> KeyPath:
    path: KeyPath = ()
    for number, key in enumerate(keys, start=1):
        path = (*path, key)
        if number == len(keys) and is_element:
            array_lengths[path] = array_lengths.get(path, 0) + 1
        if path in array_lengths:
            path = (*path, array_lengths[path] - 1)
    return path


def _position(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - line_start + 1)
