"""What a transcript is made of: messages and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from core.contracts.ids import CallId, ConversationId, MessageId, RunId


class Role(StrEnum):
    """Who speaks. The system prompt is no message; the host speaks in reminder parts."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ReturnOutcome(StrEnum):
    """How a tool call ended. `UNKNOWN`: it was started and nobody saw its end."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Plain or Markdown text; valid UTF-8 without NUL or lone surrogates."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart:
    """A model's reasoning, sent back only to the provider form that made it."""

    text: str
    form: str
    """The provider form, such as `anthropic` or `openai`."""
    signature: str | None = None
    redacted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """An image by reference to a stored attachment."""

    attachment_id: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderPart:
    """The host's own voice on a user message; stored, sent to models, stripped from displays.

    `kind` is one of the words of `core.prompts.reminders`, for example `time`, `sender`,
    `memory_update`. `text` is the body without the surrounding element.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that a model asked for.

    `arguments` is always the JSON text of an object, so that the stored message is valid in
    every later request. When the model's own arguments were unusable, `arguments` is `{}` and
    `fault` says why, with at most 1,000 characters of the raw text; such a call never runs.
    """

    id: CallId
    name: str
    arguments: str
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturn:
    """The answer to one call; text for the model, already masked and clamped."""

    call_id: CallId
    parts: tuple[TextPart | ImagePart, ...]
    outcome: ReturnOutcome


UserPart: TypeAlias = TextPart | ImagePart | ReminderPart
AssistantPart: TypeAlias = TextPart | ReasoningPart | ToolCall
Part: TypeAlias = TextPart | ReasoningPart | ImagePart | ReminderPart | ToolCall | ToolReturn


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One row of an append-only transcript; `seq` grows by one within its conversation.

    A `USER` message holds user parts, an `ASSISTANT` message assistant parts, a `TOOL` message
    exactly one `ToolReturn`. `cut` marks an assistant message whose step ended early.
    """

    id: MessageId
    conversation_id: ConversationId
    seq: int
    role: Role
    parts: tuple[Part, ...]
    created_at: datetime
    run_id: RunId | None = None
    cut: bool = False


def visible_text(parts: tuple[Part, ...]) -> str:
    """Return what a person may see of `parts`: text only, no reasoning, reminders or calls."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text)


def tool_calls(parts: tuple[Part, ...]) -> tuple[ToolCall, ...]:
    """Return the calls among `parts`, in the model's order."""
    return tuple(part for part in parts if isinstance(part, ToolCall))


def text_return(call_id: CallId, text: str, outcome: ReturnOutcome) -> ToolReturn:
    """Return a tool return of one text part."""
    return ToolReturn(call_id=call_id, parts=(TextPart(text=text),), outcome=outcome)
