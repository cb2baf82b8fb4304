"""The view of a transcript that is valid for every provider, whatever the rows say. Pure.

Rows are never changed: a crash, a cut or an old bug may have left a call without a result, a
result without a call, or something between the two. The projection repairs that the same way
every time, so that it never breaks the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.contracts.ids import MessageId
from core.contracts.messages import (
    Message,
    ReturnOutcome,
    Role,
    ToolCall,
    ToolReturn,
    text_return,
    tool_calls,
)

INTERRUPTED = "The turn did not complete; it is unknown whether this ran."


def unanswered(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    """Return the calls of the last assistant message that no later row answers, in its order."""
    answered: set[str] = set()
    for message in reversed(messages):
        match message.role:
            case Role.TOOL:
                answered.update(part.call_id for part in message.parts if isinstance(part, ToolReturn))
            case Role.ASSISTANT:
                return tuple(call for call in tool_calls(message.parts) if call.id not in answered)
            case Role.USER:
                continue
    return ()


def unknown_return(call: ToolCall) -> ToolReturn:
    """Return the result of a call whose fate nobody knows."""
    return text_return(call.id, INTERRUPTED, ReturnOutcome.UNKNOWN)


def valid_view(rows: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return `rows` as a view: each call has one result directly behind it, and a user speaks first."""
    returns = _first_returns(rows)
    view: list[Message] = []
    for message in rows:
        match message.role:
            case Role.TOOL:
                continue
            case Role.USER if message.parts:
                view.append(message)
            case Role.ASSISTANT if view and message.parts:
                view.append(message)
                view.extend(_answers(message, returns))
            case _:
                continue
    return tuple(view)


def _first_returns(rows: Iterable[Message]) -> dict[tuple[MessageId, str], Message]:
    """Return the first result row behind each call, by the asking message and the call's id.

    A result belongs to the latest call of its id: old rows may use an id more than once.
    """
    asked_by: dict[str, MessageId] = {}
    found: dict[tuple[MessageId, str], Message] = {}
    for message in rows:
        asked_by.update({call.id: message.id for call in tool_calls(message.parts)})
        for part in message.parts:
            if isinstance(part, ToolReturn) and part.call_id in asked_by:
                found.setdefault((asked_by[part.call_id], part.call_id), message)
    return found


def _answers(message: Message, returns: dict[tuple[MessageId, str], Message]) -> Iterable[Message]:
    for call in tool_calls(message.parts):
        stored = returns.get((message.id, call.id))
        if stored is not None:
            yield stored
        else:
            yield replace(
                message,
                id=MessageId(f"{message.id}/{call.id}"),
                role=Role.TOOL,
                parts=(unknown_return(call),),
                cut=False,
            )
