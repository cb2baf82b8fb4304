"""Reading the JSON of an update, where every text is a stranger's; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

Json: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")

LABEL_LIMIT_CHARS = 128
"""Ours: names of people, chats and files are shown in one line, and stored with every message."""

_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_ID_LIMIT = 1 << 63


class MalformedUpdate(ValueError):
    """An update that is not shaped as the Bot API documents."""


def field(source: Json, name: str, kind: type[_T], default: _T | None = None) -> _T:
    """Return a field that has to be there, or its default.

    Raises:
        MalformedUpdate: It is missing or of another kind.
    """
    value = source.get(name, default)
    if not isinstance(value, kind):
        raise MalformedUpdate(f"{name!r} is no {kind.__name__}")
    return value


def id_of(source: Json, name: str) -> int:
    """Return a field that has to be an id: a signed integer of 64 bits.

    Raises:
        MalformedUpdate: It is none.
    """
    if (value := id_if_any(source, name)) is None:
        raise MalformedUpdate(f"{name!r} is no id")
    return value


def id_if_any(source: Json, name: str) -> int | None:
    """Return a field that may be an id, None for anything else."""
    value = source.get(name)
    is_id = isinstance(value, int) and not isinstance(value, bool) and -_ID_LIMIT <= value < _ID_LIMIT
    return value if is_id else None


def part(source: Json, name: str) -> Json:
    """Return a field that may be an object; empty for anything else, because no message is lost for its trimmings."""
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def parts(source: Json, name: str) -> tuple[Json, ...]:
    """Return the objects of a field that may be a list of them."""
    values = source.get(name)
    return tuple(value for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


def label(value: object) -> str:
    """Return a name as one short line; empty for what is no text."""
    return " ".join(clean(value).split())[:LABEL_LIMIT_CHARS].rstrip() if isinstance(value, str) else ""


def clean(text: str) -> str:
    """Return `text` as valid Unicode without NUL, as every store and model wants it."""
    return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def instant(source: Json, name: str = "date") -> datetime:
    """Return a field that has to be a time, which comes in seconds.

    Raises:
        MalformedUpdate: It is none.
    """
    try:
        return datetime.fromtimestamp(id_of(source, name), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedUpdate(f"{name!r} is no time") from error
