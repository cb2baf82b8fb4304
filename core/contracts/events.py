"""What a run tells while it works; every event is stored before anyone sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from core.contracts.ids import RunId
from core.contracts.messages import Message, ToolCall
from core.contracts.runs import StopReason, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the answer; batches of at most 100 ms or 2,000 bytes. Never transcript."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequested:
    """The model finished asking for one call."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """The run ends with these calls pending, in the model's order."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStored:
    """A message became part of the transcript."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryNotice:
    """The step failed for a while and is tried again after `wait`.

    Text deltas with a sequence number above `discard_after` belong to the failed try.
    """

    reason: str
    wait: timedelta
    attempt: int
    discard_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecompiled:
    """The system prompt or the tool schemas changed, or earlier images were left out from here on.

    The only breaks of the prefix besides compaction.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported:
    """What the step cost."""

    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The last event of every run, exactly once. `error` is for logs and owners, secrets masked."""

    stop_reason: StopReason
    error: str = ""


RunEventBody: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | CallRequested
    | ApprovalRequested
    | MessageStored
    | RetryNotice
    | PromptRecompiled
    | UsageReported
    | RunFinished
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """`seq` starts at 1 and has no gaps within its run."""

    run_id: RunId
    seq: int
    body: RunEventBody
