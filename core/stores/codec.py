"""Transcripts, events, verdicts and settings as JSON and back; addresses have their own file.

Every union is tagged by `type`. Unknown keys are ignored and keys that came later have defaults,
so that rows of an older or a slightly newer release can be read; an unknown tag cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar, assert_never

from core.contracts.agents import ModelSettings
from core.contracts.errors import StoreUnavailable
from core.contracts.events import (
    ApprovalRequested,
    CallRequested,
    MessageStored,
    PromptRecompiled,
    ReasoningDelta,
    RetryNotice,
    RunEventBody,
    RunFinished,
    TextDelta,
    UsageReported,
)
from core.contracts.ids import CallId, PersonId
from core.contracts.messages import (
    ImagePart,
    Part,
    ReasoningPart,
    ReminderPart,
    ReturnOutcome,
    TextPart,
    ToolCall,
    ToolReturn,
)
from core.contracts.permissions import Action, Decision, DecisionScope, Verdict
from core.contracts.runs import StopReason, Usage
from core.stores.text import JsonObject, dump, load

T = TypeVar("T")

STORED_MESSAGE_TAG = "message_stored"
"""The message itself is not in the event: its row is named beside it."""


def read_json(text: str, reader: Callable[[Any], T]) -> T:
    """Return what `reader` makes of a stored JSON text.

    Raises:
        StoreUnavailable: The text is damaged, or a newer release wrote it.
    """
    try:
        return reader(load(text))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreUnavailable(f"a stored value is not readable by {reader.__name__}: {error!r}") from error


def parts_to_text(parts: tuple[Part, ...]) -> str:
    """Return the stored form of a message's parts."""
    return dump([part_to_json(part) for part in parts])


def parts_from_json(data: list[JsonObject]) -> tuple[Part, ...]:
    """Return a message's parts."""
    return tuple(part_from_json(item) for item in data)


def part_to_json(part: Part) -> JsonObject:
    """Return a part as JSON."""
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ReasoningPart():
            return {
                "type": "reasoning",
                "text": part.text,
                "form": part.form,
                "signature": part.signature,
                "redacted": part.redacted,
            }
        case ImagePart():
            return {"type": "image", "attachment_id": part.attachment_id, "media_type": part.media_type}
        case ReminderPart(kind=kind, text=text):
            return {"type": "reminder", "kind": kind, "text": text}
        case ToolCall():
            return {"type": "call", **call_to_json(part)}
        case ToolReturn():
            return {"type": "return", **return_to_json(part)}
        case _:
            assert_never(part)


def part_from_json(data: JsonObject) -> Part:
    """Return a part."""
    match data["type"]:
        case "text":
            return TextPart(text=data["text"])
        case "reasoning":
            return ReasoningPart(
                text=data["text"], form=data["form"], signature=data.get("signature"), redacted=data.get("redacted")
            )
        case "image":
            return _image(data)
        case "reminder":
            return ReminderPart(kind=data["kind"], text=data["text"])
        case "call":
            return call_from_json(data)
        case "return":
            return return_from_json(data)
        case tag:
            raise ValueError(f"unknown part {tag!r}")


def call_to_json(call: ToolCall) -> JsonObject:
    """Return a tool call as JSON."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "fault": call.fault}


def call_from_json(data: JsonObject) -> ToolCall:
    """Return a tool call."""
    return ToolCall(id=CallId(data["id"]), name=data["name"], arguments=data["arguments"], fault=data.get("fault"))


def return_to_json(result: ToolReturn) -> JsonObject:
    """Return a tool return as JSON."""
    parts = [part_to_json(part) for part in result.parts]
    return {"call_id": result.call_id, "parts": parts, "outcome": result.outcome.value}


def return_from_json(data: JsonObject) -> ToolReturn:
    """Return a tool return."""
    return ToolReturn(
        call_id=CallId(data["call_id"]),
        parts=tuple(_return_part(item) for item in data["parts"]),
        outcome=ReturnOutcome(data["outcome"]),
    )


def _return_part(data: JsonObject) -> TextPart | ImagePart:
    return _image(data) if data["type"] == "image" else TextPart(text=data["text"])


def _image(data: JsonObject) -> ImagePart:
    return ImagePart(attachment_id=data["attachment_id"], media_type=data["media_type"])


def event_to_json(body: RunEventBody) -> JsonObject:
    """Return an event's body as JSON; of a stored message only the tag."""
    data: JsonObject
    match body:
        case TextDelta(text=text):
            data = {"type": "text_delta", "text": text}
        case ReasoningDelta(text=text):
            data = {"type": "reasoning_delta", "text": text}
        case CallRequested(call=call):
            data = {"type": "call_requested", "call": call_to_json(call)}
        case ApprovalRequested(calls=calls):
            data = {"type": "approval_requested", "calls": [call_to_json(call) for call in calls]}
        case MessageStored():
            data = {"type": STORED_MESSAGE_TAG}
        case RetryNotice():
            data = {"type": "retry_notice", **_retry_to_json(body)}
        case PromptRecompiled(reason=reason):
            data = {"type": "prompt_recompiled", "reason": reason}
        case UsageReported(usage=usage):
            data = {"type": "usage_reported", "usage": usage_to_json(usage)}
        case RunFinished(stop_reason=stop_reason, error=error):
            data = {"type": "run_finished", "stop_reason": stop_reason.value, "error": error}
        case _:
            assert_never(body)
    return data


def event_from_json(data: JsonObject) -> RunEventBody:
    """Return an event's body; a stored message is put together by the reader of its row."""
    return _EVENT_READERS[data["type"]](data)


def _retry_to_json(notice: RetryNotice) -> JsonObject:
    return {
        "reason": notice.reason,
        "wait_us": notice.wait // timedelta(microseconds=1),
        "attempt": notice.attempt,
        "discard_after": notice.discard_after,
    }


def _retry_from_json(data: JsonObject) -> RetryNotice:
    return RetryNotice(
        reason=data["reason"],
        wait=timedelta(microseconds=data["wait_us"]),
        attempt=data["attempt"],
        discard_after=data["discard_after"],
    )


def usage_to_json(usage: Usage) -> JsonObject:
    """Return a step's usage as JSON; the keys are the columns of `runs`."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_usd": usage.cost_usd,
        "estimated": usage.estimated,
    }


def usage_from_json(data: JsonObject) -> Usage:
    """Return a step's usage."""
    return Usage(
        input_tokens=data["input_tokens"],
        output_tokens=data["output_tokens"],
        cached_tokens=data.get("cached_tokens", 0),
        cache_write_tokens=data.get("cache_write_tokens", 0),
        cost_usd=data.get("cost_usd"),
        estimated=data.get("estimated", False),
    )


def verdict_to_json(verdict: Verdict) -> JsonObject:
    """Return the policy's verdict as JSON."""
    return {
        "action": verdict.action.value,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "remember": verdict.remember,
    }


def verdict_from_json(data: JsonObject) -> Verdict:
    """Return the policy's verdict."""
    return Verdict(
        action=Action(data["action"]), rule=data["rule"], reason=data["reason"], remember=data.get("remember", "")
    )


def decision_to_json(decision: Decision) -> JsonObject:
    """Return a person's decision as JSON."""
    return {
        "approve": decision.approve,
        "by": decision.by,
        "by_name": decision.by_name,
        "scope": decision.scope.value,
        "feedback": decision.feedback,
        "edited": decision.edited,
    }


def decision_from_json(data: JsonObject) -> Decision:
    """Return a person's decision."""
    by = data["by"]
    return Decision(
        approve=data["approve"],
        by=None if by is None else PersonId(by),
        by_name=data["by_name"],
        scope=DecisionScope(data["scope"]),
        feedback=data.get("feedback", ""),
        edited=data.get("edited"),
    )


def model_to_json(model: ModelSettings) -> JsonObject:
    """Return an agent's model settings as JSON."""
    return {
        "name": model.name,
        "model": model.model,
        "api_base": model.api_base,
        "client": model.client,
        "fallbacks": list(model.fallbacks),
        "window_tokens": model.window_tokens,
        "max_output_tokens": model.max_output_tokens,
        "toolset": model.toolset,
        "sees_images": model.sees_images,
    }


def model_from_json(data: JsonObject) -> ModelSettings:
    """Return an agent's model settings."""
    return ModelSettings(
        name=data["name"],
        model=data["model"],
        api_base=data.get("api_base", ""),
        client=data.get("client", "auto"),
        fallbacks=tuple(data.get("fallbacks", ())),
        window_tokens=data.get("window_tokens", 0),
        max_output_tokens=data.get("max_output_tokens", 0),
        toolset=data.get("toolset", ""),
        sees_images=data.get("sees_images"),
    )


_EVENT_READERS: Final[Mapping[str, Callable[[JsonObject], RunEventBody]]] = {
    "text_delta": lambda data: TextDelta(text=data["text"]),
    "reasoning_delta": lambda data: ReasoningDelta(text=data["text"]),
    "call_requested": lambda data: CallRequested(call=call_from_json(data["call"])),
    "approval_requested": lambda data: ApprovalRequested(calls=tuple(map(call_from_json, data["calls"]))),
    "retry_notice": _retry_from_json,
    "prompt_recompiled": lambda data: PromptRecompiled(reason=data["reason"]),
    "usage_reported": lambda data: UsageReported(usage=usage_from_json(data["usage"])),
    "run_finished": lambda data: RunFinished(stop_reason=StopReason(data["stop_reason"]), error=data["error"]),
}
