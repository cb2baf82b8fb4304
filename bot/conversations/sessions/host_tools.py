"""Tools that a client registers for its session: how they are checked, and how a turn gets them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bot.conversations.sessions.protocol import TOOLS_LIMIT, TOOLS_LIMIT_CHARS
from core.contracts.errors import InvalidInput
from core.contracts.messages import TextPart
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema, Toolset
from core.tools.schema import decode_arguments, schemas_json

AskClient = Callable[[ToolContext, str, Mapping[str, Any]], Awaitable[str]]
"""Has the client run a tool and returns what it said; raises `ToolError` where it failed or said nothing."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
"""What every provider takes as the name of a tool."""
_FIELDS = {"name", "description", "parameters"}
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_DEEPEST = 12


class HostTool:
    """One tool of a client. What it touches is not known here, so that it is asked about unless a rule allows it."""

    def __init__(self, schema: ToolSchema, ask: AskClient) -> None:
        self._schema = schema
        self._ask = ask

    @property
    def schema(self) -> ToolSchema:
        return self._schema

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access | None:
        del arguments, context
        return None

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        return (TextPart(text=await self._ask(context, self._schema.name, arguments)),)


class SessionToolset:
    """A toolset with a session's tools behind its own; to a turn it is the same toolset.

    A tool that was registered before the toolset had one of that name is left out.
    """

    def __init__(self, inner: Toolset, tools: Sequence[HostTool]) -> None:
        self._inner = inner
        self._tools = {tool.schema.name: tool for tool in tools if inner.find(tool.schema.name) is None}

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        return (*self._inner.schemas, *(tool.schema for tool in self._tools.values()))

    def find(self, name: str) -> Tool | None:
        return self._inner.find(name) or self._tools.get(name)


def read_tools(given: Sequence[Any], *, taken: Collection[str]) -> tuple[ToolSchema, ...]:
    """Return the tools of a registration.

    Args:
        given: What the client sent.
        taken: Names of the built-in tools.

    Raises:
        InvalidInput: Names the tool, and what is wrong with it or with all of them together.
    """
    if len(given) > TOOLS_LIMIT:
        raise InvalidInput(f"{len(given)} tools are too many: at most {TOOLS_LIMIT}")
    tools = tuple(_read_tool(tool) for tool in given)
    seen: set[str] = set()
    for tool in tools:
        if tool.name in taken:
            raise InvalidInput(f"there is a built-in tool {tool.name!r}; choose another name")
        if tool.name in seen:
            raise InvalidInput(f"two tools are named {tool.name!r}")
        seen.add(tool.name)
    size = len(schemas_json(tools))
    if size > TOOLS_LIMIT_CHARS:
        raise InvalidInput(f"the schemas have {size} characters together: at most {TOOLS_LIMIT_CHARS}")
    return tools


def tools_json(tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    """Return tools as a client writes them."""
    listed: list[dict[str, Any]] = json.loads(schemas_json(tools))
    return listed


def tools_from_json(listed: Sequence[Mapping[str, Any]]) -> tuple[ToolSchema, ...]:
    """Return tools that were checked when they came."""
    return tuple(
        ToolSchema(name=tool["name"], description=tool["description"], parameters=tool["parameters"]) for tool in listed
    )


def _read_tool(given: Any) -> ToolSchema:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise InvalidInput("a tool is an object with a 'name'")
    given = decode_arguments(json.dumps(given))  # with every text in it cleaned
    name = given["name"]
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is no name of a tool: 1 to 64 letters, digits, '_' and '-'")
    unknown = sorted(given.keys() - _FIELDS)
    if unknown:
        raise InvalidInput(f"tool {name!r} has no field {unknown[0]!r}")
    description = given.get("description")
    if not isinstance(description, str) or not description.strip():
        raise InvalidInput(f"tool {name!r} needs a 'description': it is all that a model knows of it")
    parameters = given.get("parameters")
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        raise InvalidInput(f"tool {name!r} needs 'parameters': a JSON schema of type object")
    problem = _schema_problem(parameters, depth=0)
    if problem:
        raise InvalidInput(f"the parameters of tool {name!r}: {problem}")
    return ToolSchema(name=name, description=description, parameters=parameters)


def _schema_problem(node: Any, *, depth: int) -> str:
    """Return what is wrong with a JSON schema as far as providers refuse it, or nothing."""
    if not isinstance(node, dict):
        return f"{node!r} is no schema"
    if depth > _DEEPEST:
        return f"nested deeper than {_DEEPEST} levels"
    if "$ref" in node:
        return "'$ref' is not understood everywhere: write the schema out"
    own = _type_problem(node.get("type")) or _names_problem(node)
    if own:
        return own
    inner = [*node.get("properties", {}).values(), *_alternatives(node)]
    if "items" in node:
        inner.append(node["items"])
    return next(filter(None, (_schema_problem(part, depth=depth + 1) for part in inner)), "")


def _type_problem(kind: Any) -> str:
    kinds = kind if isinstance(kind, list) else [kind]
    wrong = [one for one in kinds if one is not None and one not in [*_TYPES]]
    return f"there is no type {wrong[0]!r}" if wrong else ""


def _names_problem(node: Mapping[str, Any]) -> str:
    properties, required = node.get("properties", {}), node.get("required", [])
    if not isinstance(properties, dict):
        return "'properties' is no object"
    if not isinstance(required, list) or any(name not in [*properties] for name in required):
        return "'required' is no list of its properties"
    return ""


def _alternatives(node: Mapping[str, Any]) -> list[Any]:
    """Return the schemas that a schema combines; what is no list of them is one that is none."""
    found: list[Any] = []
    for key in ("anyOf", "oneOf", "allOf"):
        choices = node.get(key, [])
        found.extend(choices if isinstance(choices, list) else [choices])
    return found


if TYPE_CHECKING:
    _tool_conforms: type[Tool] = HostTool
    _toolset_conforms: type[Toolset] = SessionToolset
