"""What Slack sends, read with care: anything may be missing or of another kind; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


def text(data: Json, name: str) -> str:
    """Return a text of an object; empty where it is none."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def item(data: Json, name: str) -> Json:
    """Return an object of an object; empty where it is none."""
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def items(data: Json, name: str) -> tuple[Json, ...]:
    """Return the objects of a list; empty where it is none."""
    value = data.get(name)
    return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def instant(ts: str) -> datetime | None:
    """Return when a message with that ts was sent; None where it is no ts."""
    seconds, _, micros = ts.partition(".")
    if not (seconds.isdecimal() and (micros.isdecimal() or not micros)):
        return None
    try:
        # Not by a float: it would be off by some microseconds, and the marks are made of these.
        return datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(micros[:6].ljust(6, "0")))
    except (ValueError, OverflowError, OSError):
        return None


def ts_of(sent_at: datetime) -> str:
    """Return the ts of a moment."""
    return f"{int(sent_at.timestamp())}.{sent_at.microsecond:06d}"
