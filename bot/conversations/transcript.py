"""What stands in a conversation's transcript, as people would tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.contracts.backend import Backend
from core.contracts.messages import ImagePart, Message, Part, Role, ToolCall, ToolReturn
from core.contracts.runs import Turn
from core.turns.requests import step_of


async def answers(backend: Backend, turn: Turn) -> list[Message]:
    """Return the agent's messages of a turn, one a step, whatever people said in between."""
    found: list[Message] = []
    for message in reversed(await _said_by_the_agent(backend, turn)):
        if message.run_id is None:
            continue
        run = await backend.get_run(message.run_id)
        if step_of(turn.id, run.request_id) is not None:
            found.append(message)
        elif run.started_at < turn.started_at:
            break
    return found[::-1]


async def _said_by_the_agent(backend: Backend, turn: Turn) -> list[Message]:
    said: list[Message] = []
    after = 0
    while page := await backend.list_messages(turn.conversation_id, after_seq=after):
        after = page[-1].seq
        said += (message for message in page if message.role is Role.ASSISTANT)
    return said


def masked_message(message: Message, mask: Callable[[str], str]) -> Message:
    """Return the message as it may leave the host: no secret value in any text of it."""
    return replace(message, parts=tuple(_masked_part(part, mask) for part in message.parts))


def _masked_part(part: Part, mask: Callable[[str], str]) -> Part:
    match part:
        case ImagePart():
            return part
        case ToolCall():
            return replace(part, arguments=mask(part.arguments), fault=part.fault and mask(part.fault))
        case ToolReturn(parts=parts):
            texts = tuple(p if isinstance(p, ImagePart) else replace(p, text=mask(p.text)) for p in parts)
            return replace(part, parts=texts)
        case _:
            return replace(part, text=mask(part.text))
