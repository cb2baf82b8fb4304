"""How single parts look to a model, in every provider form alike."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from core.contracts.messages import ImagePart, Message, ReminderPart, TextPart, ToolReturn, tool_calls
from core.contracts.models import ModelRequest
from core.contracts.tools import ToolSchema
from core.models.characters import clean_text

ImageSource: TypeAlias = Callable[[str], Awaitable[bytes | None]]
"""Reads a stored attachment by id; None where it is gone."""

NO_OUTPUT = "(no output)"
_NO_TEXT = "(empty message)"
_PORTABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""OpenAI refuses ids of more than 40 characters, Anthropic any other character."""


def reminder_text(part: ReminderPart) -> str:
    """Return the element that is the host's voice; `text` was escaped when it was made."""
    return f'<system-reminder kind="{part.kind}">\n{part.text}\n</system-reminder>'


def user_pieces(message: Message, *, sees_images: bool, images: Mapping[str, str]) -> list[str | ImagePart]:
    """Return a user message as texts and readable images, in order; never an empty list."""
    pieces: list[str | ImagePart] = []
    for part in message.parts:
        match part:
            case TextPart():
                pieces.append(clean_text(part.text))
            case ReminderPart():
                pieces.append(clean_text(reminder_text(part)))
            case ImagePart():
                pieces.append(_image_or_text(part, sees_images=sees_images, images=images))
            case _:
                raise AssertionError(f"a user message holds {type(part).__name__}")
    filled = [piece for piece in pieces if isinstance(piece, ImagePart) or piece.strip()]
    return filled or [_NO_TEXT]


def return_pieces(
    returned: ToolReturn, *, sees_images: bool, images: Mapping[str, str]
) -> tuple[list[str], list[ImagePart]]:
    """Return a tool's texts and its readable images; never both empty."""
    texts: list[str] = []
    readable: list[ImagePart] = []
    for part in returned.parts:
        match part:
            case TextPart():
                piece: str | ImagePart = clean_text(part.text)
            case ImagePart():
                piece = _image_or_text(part, sees_images=sees_images, images=images)
        if isinstance(piece, ImagePart):
            readable.append(piece)
        elif piece.strip():
            texts.append(piece)
    return (texts if texts or readable else [NO_OUTPUT]), readable


def tool_return(message: Message) -> ToolReturn:
    """Return the one part of a tool message."""
    match message.parts:
        case (ToolReturn() as returned,):
            return returned
        case _:
            raise AssertionError("a tool message holds exactly one return")


def portable_id(call_id: str) -> str:
    """Return the same id where every provider accepts it, else a fixed stand-in for it."""
    if _PORTABLE_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode(errors='replace')).hexdigest()[:24]}"


def declared_tools(request: ModelRequest) -> tuple[ToolSchema, ...]:
    """Return the request's tools, or stand-ins for the ones its messages mention.

    Anthropic refuses calls in messages of a request without tools.
    """
    if request.tools:
        return request.tools
    names = dict.fromkeys(call.name for message in request.messages for call in tool_calls(message.parts))
    return tuple(ToolSchema(name=name, description="", parameters={"type": "object"}) for name in names)


async def load_images(request: ModelRequest, source: ImageSource) -> dict[str, str]:
    """Return every image of the request that still exists, in base64, by attachment id."""
    images: dict[str, str] = {}
    for attachment_id in dict.fromkeys(part.attachment_id for part in image_parts(request.messages)):
        data = await source(attachment_id)
        if data is not None:
            images[attachment_id] = await asyncio.to_thread(_base64, data)
    return images


async def no_images(_attachment_id: str) -> bytes | None:
    """Be the source of a host that stores no attachments."""
    return None


def image_parts(messages: Sequence[Message]) -> Iterator[ImagePart]:
    """Yield every image of the messages, those of tool returns too, in order."""
    for message in messages:
        for part in message.parts:
            inner = part.parts if isinstance(part, ToolReturn) else (part,)
            yield from (image for image in inner if isinstance(image, ImagePart))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _image_or_text(part: ImagePart, *, sees_images: bool, images: Mapping[str, str]) -> str | ImagePart:
    if not sees_images:
        return f"[image {part.attachment_id}: this model sees no images]"
    if part.attachment_id not in images:
        return f"[image {part.attachment_id}: no longer stored]"
    return part
