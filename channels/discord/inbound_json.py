"""Reading Discord's JSON, where every text is a stranger's; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

Json: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")

LABEL_LIMIT_CHARS = 128
"""Ours: names of people, channels and files are shown in one line, and stored with every message."""

_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_ID = re.compile(r"[0-9]{1,20}")

_EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
_TIME_SHIFT = 22
"""docs.discord.com/developers/reference#snowflakes, read on 2026-11-30: milliseconds since the start of 2015."""


class MalformedEvent(ValueError):
    """Something that is not shaped as Discord documents."""


def field(source: Json, name: str, kind: type[_T]) -> _T:
    """Return a field that has to be there.

    Raises:
        MalformedEvent: It is missing or of another kind.
    """
    value = source.get(name)
    if not isinstance(value, kind):
        raise MalformedEvent(f"{name!r} is no {kind.__name__}")
    return value


def id_of(source: Json, name: str = "id") -> str:
    """Return a field that has to be an id: a number of 64 bits, as text.

    Raises:
        MalformedEvent: It is none.
    """
    if (value := id_if_any(source, name)) is None:
        raise MalformedEvent(f"{name!r} is no id")
    return value


def id_if_any(source: Json, name: str) -> str | None:
    """Return a field that may be an id, None for anything else."""
    value = source.get(name)
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def part(source: Json, name: str) -> Json:
    """Return a field that may be an object; empty for anything else, because no message is lost for its trimmings."""
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def parts(source: Json, name: str) -> tuple[Json, ...]:
    """Return the objects of a field that may be a list of them."""
    values = source.get(name)
    return tuple(value for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


def ids(source: Json, name: str) -> tuple[str, ...]:
    """Return the ids of a field that may be a list of them."""
    values = source.get(name)
    found = values if isinstance(values, list) else []
    return tuple(value for value in found if isinstance(value, str) and _ID.fullmatch(value))


def bits(source: Json, name: str) -> int:
    """Return a field that may be a set of bits, as a number or in writing; 0 for anything else."""
    value = source.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and value >= 0 else 0


def label(value: object) -> str:
    """Return a name as one short line; empty for what is no text."""
    return " ".join(clean(value).split())[:LABEL_LIMIT_CHARS].rstrip() if isinstance(value, str) else ""


def clean(text: str) -> str:
    """Return `text` as valid Unicode without NUL, as every store and model wants it."""
    return _NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def instant_if_any(source: Json, name: str) -> datetime | None:
    """Return a field that may be a time, which comes in writing; None for anything else."""
    try:
        at = datetime.fromisoformat(str(source.get(name)))
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def time_of(snowflake: str) -> datetime:
    """Return when something was made, which its id says.

    Raises:
        MalformedEvent: It is no id.
    """
    try:
        return _EPOCH + timedelta(milliseconds=int(snowflake) >> _TIME_SHIFT)
    except (ValueError, OverflowError) as error:
        raise MalformedEvent(f"{snowflake!r} is no id") from error


def first_id(at: datetime) -> str:
    """Return the smallest id that something made then can have."""
    return str(max(0, (at - _EPOCH) // timedelta(milliseconds=1)) << _TIME_SHIFT)
