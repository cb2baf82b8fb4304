"""One model step: what is sent, what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from core.contracts.agents import ModelSettings
from core.contracts.events import ReasoningDelta, TextDelta
from core.contracts.messages import AssistantPart, Message
from core.contracts.runs import Usage
from core.contracts.tools import ToolSchema


class FinishReason(StrEnum):
    """How the provider says the step ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A whole request. Equal inputs give equal bytes, cache markers aside.

    `messages` is the view in order, valid by construction: every call has exactly one return
    directly behind it, the first message is from the user.
    """

    settings: ModelSettings
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]
    max_output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """The assembled answer; the last thing a stream yields.

    Call ids are non-empty and unique within the step. Unusable arguments carry a `fault`.
    After `FinishReason.LENGTH` every call carries a `fault`: none may run.
    """

    parts: tuple[AssistantPart, ...]
    finish: FinishReason
    usage: Usage


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | StepFinished


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a model can do, as data; unknown models get safe defaults.

    `form` is the provider form (`openai`, `anthropic`, `scripted`), `known` is false for guesses.
    """

    form: str
    window_tokens: int
    max_output_tokens: int
    sees_images: bool
    cache_markers: bool
    user_after_tool: bool
    input_usd_per_million: float | None
    output_usd_per_million: float | None
    cached_usd_per_million: float | None
    known: bool
    toolset: str = "default"


class ModelClient(Protocol):
    """A way to a model. May be called concurrently."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Take one step: deltas, then exactly one `StepFinished`. Never retries.

        Closing the iterator or cancelling its reader closes the connection.

        Raises:
            ModelOverflow, ModelBusy, ModelUnreachable, ModelRejected: see `core.contracts.errors`.
                A stream that ends without a finish is `ModelUnreachable`, whatever was yielded.
        """
        ...

    def facts(self, settings: ModelSettings) -> ModelFacts:
        """Return the model's facts with the overrides of `settings` applied. Does no I/O."""
        ...
