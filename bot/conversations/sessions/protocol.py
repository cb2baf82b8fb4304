"""The words of stream-json: every type that comes in or goes out, and the limits of both."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

VERSION = 1
"""Raised when a client of the old version could misread the new one; new types and fields raise nothing."""

CHANNEL = "session"
"""The channel of turns that a client began: somebody can be asked there, unlike in a headless one."""

LINE_LIMIT_BYTES = 10_000_000
TOOLS_LIMIT = 32
TOOLS_LIMIT_CHARS = 32_000
"""The most that all schemas of a session's tools may have together, as compact JSON."""
ID_LIMIT_CHARS = 128

TOOL_PATIENCE = timedelta(minutes=10)
"""How long a client may take for one tool request."""
CLIENT_GRACE = timedelta(seconds=60)
"""How long a tool request waits for a client that is not connected."""


class InputType(StrEnum):
    """What a client may send."""

    USER = "user"
    DECISION = "decision"
    CANCEL = "cancel"
    TOOLS = "tools"
    TOOL_RESULT = "tool_result"
    PING = "ping"
    END = "end"


class OutputType(StrEnum):
    """What a client is told."""

    # Of one connection: without a number, told to this client alone and kept nowhere.
    SESSION = "session"
    ERROR = "error"
    PONG = "pong"
    END = "end"
    # Of a turn without a session alone.
    STARTED = "started"
    # Of the conversation: numbered without gaps and stored before they are told.
    QUEUED = "queued"
    TOOLS = "tools"
    TURN_STARTED = "turn_started"
    STEERED = "steered"
    APPROVAL_OPENED = "approval_opened"
    APPROVAL_SETTLED = "approval_settled"
    TOOL_REQUEST = "tool_request"
    TOOL_WITHDRAWN = "tool_withdrawn"
    RESULT = "result"
    # What happens inside a turn.
    TEXT_DELTA = "text_delta"
    REASONING_DELTA = "reasoning_delta"
    CALL_REQUESTED = "call_requested"
    APPROVAL_REQUESTED = "approval_requested"
    CALL_STARTED = "call_started"
    CALL_FINISHED = "call_finished"
    MESSAGE = "message"
    USAGE = "usage"
    RETRY = "retry"
    PROMPT_RECOMPILED = "prompt_recompiled"
    RUN_FINISHED = "run_finished"


class Withdrawal(StrEnum):
    """Why the answer to a tool request is not wanted any more."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    HOST_STOPPED = "host_stopped"


class SessionState(StrEnum):
    """Where a conversation stands: `PARKED` waits for decisions, `IDLE` has nothing to do."""

    IDLE = "idle"
    RUNNING = "running"
    PARKED = "parked"
