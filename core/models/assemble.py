"""Assembles a stream of fragments into one answer; pure, knows no provider."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from core.contracts.errors import ModelUnreachable
from core.contracts.events import ReasoningDelta, TextDelta
from core.contracts.messages import AssistantPart, Message, ReasoningPart, TextPart, ToolCall, tool_calls
from core.contracts.models import FinishReason
from core.models.arguments import LIMIT_REACHED
from core.models.calls import CallCollector
from core.models.characters import SurrogateJoiner
from core.models.fragments import (
    CallFragment,
    FinishFragment,
    Fragment,
    ReasoningFragment,
    TextFragment,
    UsageFragment,
)

_FINISHES = {
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "content_filter": FinishReason.REFUSAL,
    "refusal": FinishReason.REFUSAL,
    "safety": FinishReason.REFUSAL,
    "recitation": FinishReason.REFUSAL,
}
"""Words not listed (`stop`, `end_turn`, `eos`, ...) mean that the model was done."""
_BROKEN_FINISHES = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Words of servers that confess in the finish that the answer is not whole."""
_REFUSED = "the answer was stopped by the provider's filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer, before its usage is priced."""

    parts: tuple[AssistantPart, ...]
    finish: FinishReason
    reported: UsageFragment


@dataclass(slots=True)
class _Text:
    pieces: list[str]


@dataclass(slots=True)
class _Reasoning:
    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: str | None = None

    @property
    def closed(self) -> bool:
        return self.signature is not None or self.redacted is not None


@dataclass(slots=True)
class _Call:
    position: int


class Assembler:
    """Takes fragments in order, hands out deltas at once and the answer at the end.

    Args:
        reasoning_form: Who may read the reasoning again; see `core.models.profiles`.
        taken: Call ids of earlier messages, which no new call may get.
    """

    def __init__(self, *, reasoning_form: str, taken: frozenset[str] = frozenset()) -> None:
        self._reasoning_form = reasoning_form
        self._blocks: list[_Text | _Reasoning | _Call] = []
        self._calls = CallCollector(taken)
        self._text = SurrogateJoiner()
        self._thought = SurrogateJoiner()
        self._finish: str | None = None
        self._reported = UsageFragment()

    def add(self, fragment: Fragment) -> TextDelta | ReasoningDelta | None:
        """Take one fragment; return what a person may see of it."""
        match fragment:
            case TextFragment():
                return self._add_text(self._text.feed(fragment.text))
            case ReasoningFragment():
                return self._add_reasoning(fragment)
            case CallFragment():
                position = self._calls.add(fragment)
                if position is not None:
                    self._blocks.append(_Call(position))
            case UsageFragment():
                self._reported = _merged(self._reported, fragment)
            case FinishFragment():
                # A limit once reported stays, whatever a proxy rewrites later.
                if _FINISHES.get(self._finish or "") is not FinishReason.LENGTH:
                    self._finish = fragment.reason
            case _:
                assert_never(fragment)
        return None

    def finish(self) -> Answer:
        """Return the whole answer.

        Raises:
            ModelUnreachable: The stream ended without saying how.
        """
        if self._finish is None:
            raise ModelUnreachable("the model's stream ended without a finish")
        if self._finish in _BROKEN_FINISHES:
            raise ModelUnreachable(f"the model's stream ended with {self._finish!r}")
        self._add_text(self._text.finish())
        calls = self._calls.calls()
        finish = _finish_reason(self._finish, calls)
        if finish is FinishReason.LENGTH:
            calls = _all_faulty(calls, LIMIT_REACHED)
        elif finish is FinishReason.REFUSAL:
            calls = _all_faulty(calls, _REFUSED)
        parts = tuple(part for block in self._blocks if (part := self._part(block, calls)) is not None)
        return Answer(parts=parts, finish=finish, reported=self._reported)

    def _add_text(self, text: str) -> TextDelta | None:
        if not text:
            return None
        match self._blocks[-1:]:
            case [_Text() as last]:
                last.pieces.append(text)
            case _:
                self._blocks.append(_Text([text]))
        return TextDelta(text=text)

    def _add_reasoning(self, fragment: ReasoningFragment) -> ReasoningDelta | None:
        match self._blocks[-1:]:
            case [_Reasoning(closed=False) as last]:
                block = last
            case _:
                block = _Reasoning()
                self._blocks.append(block)
        text = self._thought.feed(fragment.text)
        block.pieces.append(text)
        block.signature = fragment.signature or block.signature
        block.redacted = fragment.redacted or block.redacted
        return ReasoningDelta(text=text) if text else None

    def _part(self, block: _Text | _Reasoning | _Call, calls: tuple[ToolCall, ...]) -> AssistantPart | None:
        match block:
            case _Text():
                text = "".join(block.pieces)
                # Providers refuse to read a blank text again.
                return TextPart(text=text) if text.strip() else None
            case _Reasoning():
                text = "".join(block.pieces)
                if not text and not block.closed:
                    return None
                return ReasoningPart(
                    text=text, form=self._reasoning_form, signature=block.signature, redacted=block.redacted
                )
            case _Call():
                return calls[block.position]


def call_ids(messages: tuple[Message, ...]) -> frozenset[str]:
    """Return the ids of all calls in `messages`: some providers count from zero in every step."""
    return frozenset(call.id for message in messages for call in tool_calls(message.parts))


def _finish_reason(word: str, calls: tuple[ToolCall, ...]) -> FinishReason:
    finish = _FINISHES.get(word.lower(), FinishReason.STOP)
    if finish in {FinishReason.STOP, FinishReason.TOOL_CALLS}:
        return FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return finish


def _all_faulty(calls: tuple[ToolCall, ...], why: str) -> tuple[ToolCall, ...]:
    return tuple(
        call if call.fault and why in call.fault else replace(call, fault=f"This call did not run: {why}.")
        for call in calls
    )


def _merged(old: UsageFragment, new: UsageFragment) -> UsageFragment:
    return UsageFragment(
        input_tokens=old.input_tokens if new.input_tokens is None else new.input_tokens,
        output_tokens=old.output_tokens if new.output_tokens is None else new.output_tokens,
        cached_tokens=old.cached_tokens if new.cached_tokens is None else new.cached_tokens,
        cache_write_tokens=old.cache_write_tokens if new.cache_write_tokens is None else new.cache_write_tokens,
    )
