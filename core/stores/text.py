"""Text that every database can hold, and JSON made of it."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Return `text` without NUL and lone surrogates.

    Halves of a pair that stand next to each other become their one character; what cannot be
    stored becomes U+FFFD. SQLite refuses lone surrogates, PostgreSQL also NUL: both get the same.
    """
    if text.isascii():
        return text.replace("\0", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", REPLACEMENT)


def dump(value: Any) -> str:
    """Return clean, compact JSON; equal values give equal text."""
    return json.dumps(_cleaned(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def load(text: str) -> Any:
    """Return the value of a stored JSON text, cleaned: rows of old may hold escaped surrogates.

    Raises:
        ValueError: It is no JSON.
    """
    value = json.loads(text)
    return _cleaned(value) if "\\u" in text else value


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value
