"""What stands in a conversation's transcript, as people would tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.contracts.backend import Backend
from core.contracts.ids import ConversationId
from core.contracts.messages import (
    ImagePart,
    Message,
    Part,
    Role,
    ToolCall,
    ToolReturn,
    visible_text,
)


async def answers(backend: Backend, conversation_id: ConversationId) -> list[Message]:
    """Return the agent's messages since a person last spoke, one a step."""
    found: list[Message] = []
    after = 0
    while page := await backend.list_messages(conversation_id, after_seq=after):
        after = page[-1].seq
        for message in page:
            if message.role is Role.USER and visible_text(message.parts):
                found.clear()
            elif message.role is Role.ASSISTANT:
                found.append(message)
    return found


async def answer_texts(backend: Backend, conversation_id: ConversationId) -> list[str]:
    """Return what the agent said since a person last spoke, one text a step."""
    return [visible_text(message.parts) for message in await answers(backend, conversation_id)]


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
