"""The objects that a session's clients are told besides the events of runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.control.wire import line, plain
from bot.conversations.sessions.host_tools import tools_json
from bot.conversations.sessions.protocol import OutputType, Withdrawal
from bot.conversations.telling import message_json
from core.contracts.ids import CallId
from core.contracts.messages import Message
from core.contracts.permissions import Approval
from core.contracts.runs import Turn
from core.contracts.sessions import SessionLine
from core.contracts.tools import ToolSchema


def numbered(stored: SessionLine) -> str:
    """Return a stored line as it is told: with its number in front."""
    return f'{{"seq":{stored.seq},{stored.text[1:]}'


def stored_text(told: Mapping[str, Any]) -> str:
    """Return an object as it is stored: one line of ASCII."""
    return line(told).decode("ascii").rstrip("\n")


def queued(input_id: str, *, duplicate: bool) -> dict[str, Any]:
    """A message is safe: it is in the conversation's queue, or was already."""
    return {"type": OutputType.QUEUED, "id": input_id, "duplicate": duplicate}


def tools_registered(tools: Sequence[ToolSchema]) -> dict[str, Any]:
    """These are the session's tools from the next turn on."""
    return {"type": OutputType.TOOLS, "tools": tools_json(tools)}


def turn_started(turn: Turn, inputs: Sequence[str], *, tools_seq: int) -> dict[str, Any]:
    """A turn has begun, or a client hears of it for the first time."""
    return {
        "type": OutputType.TURN_STARTED,
        "turn_id": turn.id,
        "inputs": list(inputs),
        "channel": turn.origin.channel if turn.origin is not None else "",
        "tools_seq": tools_seq,
    }


def steered(turn: Turn, inputs: Sequence[str]) -> dict[str, Any]:
    """Messages have entered the turn that runs."""
    return {"type": OutputType.STEERED, "turn_id": turn.id, "inputs": list(inputs)}


def approval_opened(approval: Approval) -> dict[str, Any]:
    """A call waits for a decision."""
    longer = ("conversation", "always") if approval.remember else ()
    return {
        "type": OutputType.APPROVAL_OPENED,
        "approval_id": approval.id,
        "turn_id": approval.turn_id,
        "call_id": approval.call_id,
        "tool": approval.tool,
        "shown": approval.shown,
        "rule": approval.rule,
        "reason": approval.reason,
        "remember": approval.remember,
        "choices": ["approve", *longer, "deny"],
        "expires_at": plain(approval.expires_at),
    }


def approval_settled(approval: Approval) -> dict[str, Any]:
    """A question has ended: decided, expired, or void because its turn was stopped."""
    decision = approval.decision
    return {
        "type": OutputType.APPROVAL_SETTLED,
        "approval_id": approval.id,
        "call_id": approval.call_id,
        "state": approval.state,
        "by": decision.by_name if decision is not None else "",
        "scope": decision.scope if decision is not None else "",
        "feedback": decision.feedback if decision is not None else "",
    }


def stored_message(message: Message) -> dict[str, Any]:
    """A message of the transcript that came with no event of a run: the return of a call that was stopped."""
    return {"type": OutputType.MESSAGE, "message": message_json(message), "run_id": message.run_id}


def tool_request(call_id: CallId, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The client shall run a tool of its own."""
    return {"type": OutputType.TOOL_REQUEST, "call_id": call_id, "name": name, "arguments": dict(arguments)}


def tool_withdrawn(call_id: str, reason: Withdrawal) -> dict[str, Any]:
    """The answer to a request is not wanted any more."""
    return {"type": OutputType.TOOL_WITHDRAWN, "call_id": call_id, "reason": reason}


def run_line(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event of a run with its number under another name, because `seq` counts the session's lines."""
    return {("run_seq" if name == "seq" else name): value for name, value in told.items()}
