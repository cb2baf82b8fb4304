"""Reads what a client sends: one line, one object, one typed input. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from bot.conversations.cards import CHOICES
from bot.conversations.sessions.protocol import ID_LIMIT_CHARS, LINE_LIMIT_BYTES, InputType
from core.contracts.agents import QueueMode
from core.contracts.errors import InvalidInput
from core.contracts.ids import ApprovalId, CallId
from core.tools.output import clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid:
    """A message. `id` is the client's own: sent twice, it counts once; empty: the host makes one."""

    text: str
    id: str
    mode: QueueMode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision on an open approval."""

    approval_id: ApprovalId
    choice: str
    feedback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAsked:
    """The turn that is open shall stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsGiven:
    """The session's tools from now on, in place of those before; still to be checked."""

    tools: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswered:
    """The answer to a tool request."""

    call_id: CallId
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinged:
    """A sign of life is wanted."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEnded:
    """Nothing more comes."""


SessionInput: TypeAlias = UserSaid | Decided | CancelAsked | ToolsGiven | ToolAnswered | Pinged | InputEnded


def read_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line.

    Raises:
        InvalidInput: It is none, or longer than `LINE_LIMIT_BYTES`.
    """
    if len(line) > LINE_LIMIT_BYTES:
        raise InvalidInput(f"longer than {LINE_LIMIT_BYTES} bytes")
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidInput("not UTF-8") from error
    except RecursionError as error:
        raise InvalidInput("nested too deeply") from error
    except ValueError as error:
        raise InvalidInput(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInput("not a JSON object")
    return value


def read_input(data: Mapping[str, Any]) -> SessionInput:
    """Return what an object says.

    Raises:
        InvalidInput: Names the type or field that is missing, unknown, or not what it should be.
    """
    fields = _Fields(data)
    said = _READERS[fields.type](fields)
    fields.require_all_read()
    return said


def _decision(fields: _Fields) -> Decided:
    return Decided(
        approval_id=ApprovalId(fields.text("approval_id")),
        choice=fields.one_of("choice", [*CHOICES]),
        feedback=fields.text("feedback", default=""),
    )


def _tool_result(fields: _Fields) -> ToolAnswered:
    return ToolAnswered(call_id=CallId(fields.text("call_id")), text=_content(fields), is_error=fields.flag("is_error"))


def _user(fields: _Fields) -> UserSaid:
    text = fields.text("text")
    if not text.strip():
        raise InvalidInput("'text' says nothing")
    mode = fields.one_of("mode", [*QueueMode], default="")
    return UserSaid(text=text, id=fields.id("id"), mode=QueueMode(mode) if mode else None)


def _content(fields: _Fields) -> str:
    """Return the text of a tool's result: `text`, or the text blocks of `content`."""
    if fields.has("text"):
        return fields.text("text")
    texts = []
    for block in fields.items("content"):
        if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
            raise InvalidInput('\'content\' holds something else than {"type": "text", "text": ...}')
        texts.append(clean_text(block["text"]))
    return "\n".join(texts)


class _Fields:
    """The fields of one input: each is read once, and none may be left over."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = dict(data)
        kind = self._data.pop("type", None)
        if kind not in [*InputType]:
            raise InvalidInput(f"unknown type {kind!r}; the types are {', '.join(InputType)}")
        self.type = InputType(kind)

    def has(self, name: str) -> bool:
        return name in self._data

    def text(self, name: str, *, default: str | None = None) -> str:
        value = self._data.pop(name, default)
        if not isinstance(value, str):
            self._wrong(name, value, "a text")
        return clean_text(value)

    def id(self, name: str) -> str:
        """Return an identifier of the client's; empty when there is none."""
        value = self.text(name, default="")
        if len(value) > ID_LIMIT_CHARS:
            raise InvalidInput(f"{name!r} is longer than {ID_LIMIT_CHARS} characters")
        return value

    def one_of(self, name: str, words: Sequence[str], *, default: str | None = None) -> str:
        value = self._data.pop(name, default)
        if value is None or (value != default and value not in words):
            self._wrong(name, value, f"one of {', '.join(words)}")
        return str(value)

    def flag(self, name: str) -> bool:
        value = self._data.pop(name, False)
        if not isinstance(value, bool):
            self._wrong(name, value, "true or false")
        return value

    def items(self, name: str) -> list[Any]:
        value = self._data.pop(name, None)
        if not isinstance(value, list):
            self._wrong(name, value, "a list")
        return value

    def require_all_read(self) -> None:
        if self._data:
            raise InvalidInput(f"{self.type.value!r} has no field {next(iter(self._data))!r}")

    def _wrong(self, name: str, value: Any, wanted: str) -> NoReturn:
        if value is None:
            raise InvalidInput(f"{self.type.value!r} needs {name!r}: {wanted}")
        raise InvalidInput(f"{name!r} is not {wanted}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_READERS: Mapping[InputType, Callable[[_Fields], SessionInput]] = {
    InputType.USER: _user,
    InputType.DECISION: _decision,
    InputType.CANCEL: lambda _: CancelAsked(),
    InputType.TOOLS: lambda fields: ToolsGiven(tools=tuple(fields.items("tools"))),
    InputType.TOOL_RESULT: _tool_result,
    InputType.PING: lambda fields: Pinged(id=fields.id("id")),
    InputType.END: lambda _: InputEnded(),
}
