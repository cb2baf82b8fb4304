"""Tool arguments: one pydantic model a tool gives both the schema and the validation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from core.contracts.errors import ToolError
from core.contracts.tools import ToolSchema
from core.tools.output import clean_text

RAW_EXCERPT_CHARS = 1_000
"""How much of unusable arguments an error quotes."""

_VALUE_EXCERPT_CHARS = 80
_KEY_ORDER = ("type", "description", "enum", "items", "properties", "required")
"""All that a schema says. Bounds are left to validation, whose errors name them when they matter."""


class Arguments(BaseModel):
    """Arguments of one tool. Field order is schema order; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def tool_schema(name: str, description: str, arguments: type[Arguments]) -> ToolSchema:
    """Return the schema of a tool, with nothing in it that a model does not need."""
    document = arguments.model_json_schema()
    # What describes a class is for readers of the code; what describes a field is for the model.
    definitions = {key: _without(node, "description") for key, node in document.get("$defs", {}).items()}
    parameters = _compact(_without(document, "description"), definitions)
    return ToolSchema(name=name, description=description, parameters=parameters)


def schemas_json(schemas: Sequence[ToolSchema]) -> str:
    """Return the canonical JSON of `schemas`: compact, keys as they stand, equal for equal sets."""
    documents = [
        {"name": schema.name, "description": schema.description, "parameters": schema.parameters} for schema in schemas
    ]
    return json.dumps(documents, ensure_ascii=False, separators=(",", ":"))


def decode_arguments(raw: str) -> dict[str, Any]:
    """Return the JSON object in `raw`, all strings cleaned; an empty text is an empty object.

    Stricter than `json.loads`: a repeated key or NaN is as unusable as broken syntax, because
    guessing would run something the model did not ask for.

    Raises:
        ToolError: It is no such object; quotes the beginning of it.
    """
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, object_pairs_hook=_object, parse_constant=_refuse_constant)
        cleaned = _cleaned(value)
    except RecursionError:
        _refuse(raw, "it is nested too deeply")
    except ValueError as error:
        _refuse(raw, str(error))
    if not isinstance(cleaned, dict):
        _refuse(raw, f"an object was expected, not {type(cleaned).__name__}")
    return cleaned


def parse(model: type[ArgumentsT], arguments: Mapping[str, Any]) -> ArgumentsT:
    """Return validated arguments.

    Raises:
        ToolError: Names each field that does not fit and what would.
    """
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        faults = "; ".join(_fault(dict(fault), model) for fault in error.errors(include_url=False))
        raise ToolError(f"Invalid arguments: {faults}. Nothing was done; correct them and call again.") from error


def _compact(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_compact(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _compact({**definitions[node["$ref"].rpartition("/")[2]], **_without(node, "$ref")}, definitions)
    if "anyOf" in node:
        # Optional fields only: `X | None` reads as X that may be left out.
        (wanted,) = [choice for choice in node["anyOf"] if choice != {"type": "null"}]
        return _compact({**wanted, **_without(node, "anyOf")}, definitions)
    compact = {key: _compact(node[key], definitions) for key in _KEY_ORDER if key in node and key != "properties"}
    if "properties" in node:
        compact["properties"] = {key: _compact(field, definitions) for key, field in node["properties"].items()}
    elif node.get("type") == "object":
        compact["properties"] = {}
    return {key: compact[key] for key in _KEY_ORDER if key in compact}


def _without(node: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != key}


def _fault(fault: Mapping[str, Any], model: type[Arguments]) -> str:
    field = ".".join(str(part) for part in fault["loc"]) or "the arguments"
    match fault["type"]:
        case "missing":
            return f"`{field}` is required"
        case "extra_forbidden":
            return f"`{field}` is unknown; the fields are {', '.join(model.model_fields)}"
        case _:
            message = str(fault["msg"]).removeprefix("Value error, ")
            return f"`{field}`: {message}, not {_excerpt(repr(fault['input']), _VALUE_EXCERPT_CHARS)}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise ValueError(f"the key {_excerpt(name, _VALUE_EXCERPT_CHARS)!r} stands in it more than once")
        value[name] = item
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _refuse(raw: str, reason: str) -> NoReturn:
    raise ToolError(
        "The arguments are no usable JSON object, so the tool did not run: "
        f"{reason}. They were: {_excerpt(clean_text(raw), RAW_EXCERPT_CHARS)}"
    )


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean_text(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean_text(key): _cleaned(item) for key, item in value.items()}
        case _:
            return value


def _excerpt(text: str, limit_chars: int) -> str:
    return text if len(text) <= limit_chars else f"{text[:limit_chars]}..."
