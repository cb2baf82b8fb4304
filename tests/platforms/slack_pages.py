"""Answers in pages, as the Web API gives them: `limit`, `cursor`, `response_metadata.next_cursor`."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, TypeVar

from tests.platforms.slack_refusals import Refusal

Json = dict[str, Any]
Item = TypeVar("Item")

LIMIT = 999


def page(items: Sequence[Item], params: Json, default: int = 100) -> tuple[list[Item], Json]:
    """Return the items of the asked page, and the fields of the answer that say what follows.

    Raises:
        Refusal: `invalid_cursor` or `invalid_limit`.
    """
    start = _start(str(params.get("cursor") or ""))
    given = str(params.get("limit") or default)
    limit = int(given) if given.isdecimal() else 0
    if not 0 < limit <= LIMIT:
        raise Refusal("invalid_limit")
    end = start + limit
    following = base64.b64encode(f"next:{end}".encode()).decode() if end < len(items) else ""
    return list(items[start:end]), {"response_metadata": {"next_cursor": following}}


def flag(params: Json, name: str, *, default: bool = False) -> bool:
    """Return a parameter as the truth it states; forms carry 1, 0, true or false."""
    value = params.get(name, default)
    return value if isinstance(value, bool) else str(value).lower() in {"1", "true"}


def _start(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        return int(base64.b64decode(cursor, validate=True).decode().removeprefix("next:"))
    except ValueError:
        raise Refusal("invalid_cursor") from None
