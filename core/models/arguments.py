"""Reads the argument text of a tool call; whatever a model wrote, the result can be stored."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from core.models.characters import clean_text

LIMIT_REACHED = "output limit reached, send a smaller piece"
_RAW_CHARS = 1_000
_MAX_DEPTH = 100
"""Deeper values would overflow the stack of a later reader that parses them with less room."""
_LITERALS = ("true", "false", "null", "NaN", "Infinity")


def read_arguments(raw: str) -> tuple[str, str | None]:
    """Return the compact JSON of an object with its keys in the model's order, and a fault.

    Nothing at all counts as `{}`: the tool's schema knows whether that is enough. Anything
    else that is no JSON object gives `{}` and a fault for the model to read. Never raises.
    """
    if not raw.strip():
        return "{}", None
    try:
        return _canonical(raw), None
    except RecursionError:
        what = "it is nested too deeply"
    except ValueError as error:
        cut = isinstance(error, json.JSONDecodeError) and _looks_cut(raw, error)
        what = f"it ends too early, {LIMIT_REACHED}" if cut else str(error)
    return (
        "{}",
        f"The arguments are not valid JSON of an object: {what}. They began with: {clean_text(raw[:_RAW_CHARS])}",
    )


def _canonical(raw: str) -> str:
    value = json.loads(raw, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    if not isinstance(value, dict):
        raise ValueError(f"it is {_kind(value)}")  # noqa: TRY004 - one kind of error for everything the model did wrong
    return json.dumps(_cleaned(value, 0), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parsed_object(arguments: str) -> dict[str, Any]:
    """Return the object of stored arguments; an old row that is none counts as empty."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def stored_arguments(arguments: str) -> str:
    """Return stored arguments for sending; half an escaped character in an old row is replaced."""
    return read_arguments(arguments)[0] if "\\ud" in arguments.lower() else clean_text(arguments)


def is_complete_object(raw: str) -> bool:
    """Return whether `raw` is one whole JSON object and nothing more."""
    try:
        return isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "an array"
        case str():
            return "a string"
        case _:
            return "a single value"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {double!r} stands there twice")
    return unique


def _cleaned(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise RecursionError
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_text(key): _cleaned(item, depth + 1) for key, item in value.items()}
        case list():
            return [_cleaned(item, depth + 1) for item in value]
        case _:
            return value


def _looks_cut(raw: str, error: json.JSONDecodeError) -> bool:
    """Return whether the text is a good beginning that only lacks its end."""
    if error.msg.startswith("Unterminated string"):
        return True
    rest = raw[error.pos :].strip()
    return rest in {"", "-"} or any(word.startswith(rest) for word in _LITERALS) or _cut_escape(rest)


def _cut_escape(rest: str) -> bool:
    return rest.startswith("u") and len(rest) <= len("u0000")
