"""The OpenAI chat form of a request; litellm reads it too, for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from core.contracts.messages import ImagePart, Message, ReasoningPart, Role, TextPart, ToolCall
from core.contracts.models import ModelRequest
from core.contracts.tools import ToolSchema
from core.models.arguments import stored_arguments
from core.models.characters import clean_text
from core.models.render import portable_id, return_pieces, tool_return, user_pieces

Json: TypeAlias = dict[str, Any]

CACHE_MARKER = {"type": "ephemeral"}
_MARKED_USER_TURNS = 2
_IMAGE_BELOW = "(the image follows)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatStyle:
    """What the reader of a chat-form request understands.

    `thinking_blocks` and `tool_images` are litellm's way to Anthropic; `call_signatures` its way
    to Gemini, whose calls are refused without the signature they came with.
    """

    reasoning_form: str
    sees_images: bool
    user_after_tool: bool
    cache_markers: bool = False
    thinking_blocks: bool = False
    tool_images: bool = False
    call_signatures: bool = False


def chat_messages(request: ModelRequest, style: ChatStyle, images: Mapping[str, str]) -> list[Json]:
    """Return system prompt and messages. The same start of a view gives the same start here."""
    rendered: list[Json] = []
    if request.system:
        rendered.append({"role": "system", "content": [_text(request.system)]})
    late_images: list[Json] = []
    for message in request.messages:
        if message.role is not Role.TOOL and late_images:
            rendered.append({"role": "user", "content": late_images})
            late_images = []
        match message.role:
            case Role.USER:
                _append_user(rendered, message, style, images)
            case Role.ASSISTANT:
                rendered.extend(_assistant(message, style))
            case Role.TOOL:
                result, late = _tool_result(message, style, images)
                rendered.append(result)
                late_images += late
    if late_images:
        rendered.append({"role": "user", "content": late_images})
    if style.cache_markers:
        _mark(rendered)
    return rendered


def chat_tools(schemas: tuple[ToolSchema, ...]) -> list[Json]:
    """Return the tools in their order."""
    return [
        {
            "type": "function",
            "function": {
                "name": schema.name,
                "description": schema.description,
                "parameters": dict(schema.parameters),
            },
        }
        for schema in schemas
    ]


def _text(text: str) -> Json:
    return {"type": "text", "text": clean_text(text)}


def _image(part: ImagePart, images: Mapping[str, str]) -> Json:
    url = f"data:{part.media_type};base64,{images[part.attachment_id]}"
    return {"type": "image_url", "image_url": {"url": url}}


def _append_user(rendered: list[Json], message: Message, style: ChatStyle, images: Mapping[str, str]) -> None:
    behind_tool = bool(rendered) and rendered[-1]["role"] == "tool"
    folded = behind_tool and not style.user_after_tool
    pieces = user_pieces(message, sees_images=style.sees_images and not folded, images=images)
    blocks = [_image(piece, images) if isinstance(piece, ImagePart) else _text(piece) for piece in pieces]
    if folded:
        rendered[-1]["content"] += blocks
    else:
        rendered.append({"role": "user", "content": blocks})


def _tool_result(message: Message, style: ChatStyle, images: Mapping[str, str]) -> tuple[Json, list[Json]]:
    """Return the result, and the image blocks that must wait for a user message behind the group."""
    returned = tool_return(message)
    may_follow = style.tool_images or style.user_after_tool
    texts, pictures = return_pieces(returned, sees_images=style.sees_images and may_follow, images=images)
    blocks = [_text(text) for text in texts]
    image_blocks = [_image(picture, images) for picture in pictures]
    late: list[Json] = []
    if style.tool_images:
        blocks += image_blocks
    elif image_blocks:
        blocks = blocks or [_text(_IMAGE_BELOW)]
        late = image_blocks
    return {"role": "tool", "tool_call_id": portable_id(returned.call_id), "content": blocks}, late


def _assistant(message: Message, style: ChatStyle) -> list[Json]:
    """Return the message; nothing where only foreign or bare reasoning would remain."""
    texts = [part.text for part in message.parts if isinstance(part, TextPart) and part.text.strip()]
    calls = _calls(message, style)
    if not texts and not calls:
        return []
    rendered: Json = {"role": "assistant", "content": [_text(text) for text in texts] or None}
    own = [part for part in message.parts if isinstance(part, ReasoningPart) and part.form == style.reasoning_form]
    if style.thinking_blocks:
        blocks = [block for part in own if (block := thinking_block(part)) is not None]
        if blocks:
            rendered["thinking_blocks"] = blocks
    elif calls:
        reasoning = "".join(part.text for part in own)
        if reasoning:
            rendered["reasoning_content"] = reasoning
    if calls:
        rendered["tool_calls"] = calls
    return [rendered]


def _calls(message: Message, style: ChatStyle) -> list[Json]:
    calls: list[Json] = []
    signature: str | None = None
    for part in message.parts:
        match part:
            case ReasoningPart() if part.form == style.reasoning_form:
                signature = part.signature
            case ToolCall():
                call: Json = {
                    "id": portable_id(part.id),
                    "type": "function",
                    "function": {"name": part.name, "arguments": stored_arguments(part.arguments)},
                }
                if style.call_signatures and signature:
                    call["provider_specific_fields"] = {"thought_signature": signature}
                signature = None
                calls.append(call)
            case _:
                pass
    return calls


def thinking_block(part: ReasoningPart) -> Json | None:
    """Return Anthropic's block; None for reasoning without proof, which it would refuse."""
    if part.redacted is not None:
        return {"type": "redacted_thinking", "data": part.redacted}
    if part.signature is None:
        return None
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _mark(rendered: list[Json]) -> None:
    """Put cache markers at the end of the system prompt and of the last two user-role groups.

    Results and user messages in a row are one message to Anthropic.
    """
    if rendered and rendered[0]["role"] == "system":
        rendered[0]["content"][-1]["cache_control"] = CACHE_MARKER
    marked = 0
    following = "assistant"
    for message in reversed(rendered):
        role = "assistant" if message["role"] == "assistant" else "user"
        if message["role"] == "system" or marked == _MARKED_USER_TURNS:
            return
        if role == "user" and following == "assistant":
            # A marker on a tool message goes to its result block, on a user message to its last block.
            place = message if message["role"] == "tool" else message["content"][-1]
            place["cache_control"] = CACHE_MARKER
            marked += 1
        following = role
