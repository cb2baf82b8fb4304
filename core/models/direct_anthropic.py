"""The Anthropic messages form: request out, stream events in. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from core.contracts.messages import (
    ImagePart,
    Message,
    ReasoningPart,
    ReturnOutcome,
    Role,
    TextPart,
    ToolCall,
    tool_calls,
)
from core.contracts.models import ModelFacts, ModelRequest
from core.models.arguments import parsed_object
from core.models.chat_form import CACHE_MARKER, Json, thinking_block
from core.models.failures import error_status, error_text
from core.models.fragments import (
    CallFragment,
    FinishFragment,
    Fragment,
    ReasoningFragment,
    TextFragment,
    UsageFragment,
)
from core.models.profiles import bare_name, reasoning_form
from core.models.render import declared_tools, portable_id, return_pieces, tool_return, user_pieces
from core.models.wire import StreamFailure, StreamReader, WireForm, WireRequest, endpoint

_DEFAULT_BASE = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_LONGEST_STOP_CHARS = 100
"""Longer than any spelling of `{"type": "message_stop"}`, so that no text is searched for the word."""
_MARKED_USER_TURNS = 2
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
"""docs.anthropic.com/en/api/errors, read 2026-11-30."""


class AnthropicForm:
    """The messages API."""

    def request(
        self, request: ModelRequest, *, facts: ModelFacts, images: Mapping[str, str], key: str | None
    ) -> WireRequest:
        body: Json = {
            "model": bare_name(request.settings.model),
            "max_tokens": request.max_output_tokens,
            "stream": True,
        }
        tools = declared_tools(request)
        if tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in tools
            ]
        if tools and not request.tools:
            body["tool_choice"] = {"type": "none"}
        if request.system:
            body["system"] = [{"type": "text", "text": request.system}]
        body["messages"] = anthropic_messages(
            request, sees_images=facts.sees_images, images=images, own_form=reasoning_form(request.settings)
        )
        if facts.cache_markers:
            _mark(body)
        headers = {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})
        url = endpoint(request.settings, default_base=_DEFAULT_BASE, path="/v1/messages")
        return WireRequest(url=url, headers=headers, body=body)

    def is_end(self, data: str) -> bool:
        return len(data) <= _LONGEST_STOP_CHARS and "message_stop" in data

    def reader(self) -> StreamReader:
        return _Reader()


def anthropic_messages(
    request: ModelRequest, *, sees_images: bool, images: Mapping[str, str], own_form: str
) -> list[Json]:
    """Return the messages with user and assistant taking turns; rows of one role are joined."""
    rendered: list[Json] = []
    for message in request.messages:
        match message.role:
            case Role.USER:
                pieces = user_pieces(message, sees_images=sees_images, images=images)
                role, blocks = "user", [_block(piece, images) for piece in pieces]
            case Role.TOOL:
                role, blocks = "user", [_tool_result(message, sees_images=sees_images, images=images)]
            case Role.ASSISTANT:
                role, blocks = "assistant", _assistant_blocks(message, own_form)
        if blocks and rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += blocks
        elif blocks:
            rendered.append({"role": role, "content": blocks})
    return rendered


def _block(piece: str | ImagePart, images: Mapping[str, str]) -> Json:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    source = {"type": "base64", "media_type": piece.media_type, "data": images[piece.attachment_id]}
    return {"type": "image", "source": source}


def _tool_result(message: Message, *, sees_images: bool, images: Mapping[str, str]) -> Json:
    returned = tool_return(message)
    texts, pictures = return_pieces(returned, sees_images=sees_images, images=images)
    block: Json = {
        "type": "tool_result",
        "tool_use_id": portable_id(returned.call_id),
        "content": [_block(piece, images) for piece in texts] + [_block(piece, images) for piece in pictures],
    }
    if returned.outcome is ReturnOutcome.ERROR:
        block["is_error"] = True
    return block


def _assistant_blocks(message: Message, own_form: str) -> list[Json]:
    """Return the blocks in the model's order; nothing where only reasoning would remain."""
    blocks: list[Json] = []
    for part in message.parts:
        match part:
            case TextPart() if part.text.strip():
                blocks.append({"type": "text", "text": part.text})
            case ReasoningPart() if part.form == own_form:
                block = thinking_block(part)
                blocks += [] if block is None else [block]
            case ToolCall():
                arguments = parsed_object(part.arguments)
                blocks.append({"type": "tool_use", "id": portable_id(part.id), "name": part.name, "input": arguments})
            case _:
                pass
    has_answer = bool(tool_calls(message.parts)) or any(block["type"] == "text" for block in blocks)
    return blocks if has_answer else []


def _mark(body: Json) -> None:
    """Set the cache markers: the end of the system prompt covers the tools in front of it."""
    if "system" in body:
        body["system"][-1]["cache_control"] = CACHE_MARKER
    users = [message for message in body["messages"] if message["role"] == "user"]
    for message in users[-_MARKED_USER_TURNS:]:
        message["content"][-1]["cache_control"] = CACHE_MARKER


class _Reader:
    """Reads events by their type; unknown ones (`ping` and what is yet to come) mean nothing."""

    def __init__(self) -> None:
        self._usage: Json = {}

    def read(self, data: Mapping[str, Any]) -> Iterator[Fragment]:
        match data.get("type"):
            case "message_start":
                yield self._add_usage((data.get("message") or {}).get("usage") or {})
            case "content_block_start":
                yield from _block_start(data.get("index"), data.get("content_block") or {})
            case "content_block_delta":
                yield from _block_delta(data.get("index"), data.get("delta") or {})
            case "message_delta":
                reason = (data.get("delta") or {}).get("stop_reason")
                if reason:
                    yield FinishFragment(reason=reason)
                yield self._add_usage(data.get("usage") or {})
            case "error":
                kind = (data.get("error") or {}).get("type", "")
                raise StreamFailure(error_text(data), error_status(data) or _STATUS_OF_TYPE.get(kind))
            case _:
                pass

    def _add_usage(self, usage: Mapping[str, Any]) -> UsageFragment:
        """Take the newest figures; `input_tokens` leave out cached and newly cached ones here."""
        self._usage |= {name: count for name, count in usage.items() if count is not None}
        fresh = self._usage.get("input_tokens")
        cached = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        return UsageFragment(
            input_tokens=None if fresh is None else fresh + cached + written,
            output_tokens=self._usage.get("output_tokens"),
            cached_tokens=cached,
            cache_write_tokens=written,
        )


def _block_start(index: int | None, block: Mapping[str, Any]) -> Iterator[Fragment]:
    match block.get("type"):
        case "text" if block.get("text"):
            yield TextFragment(text=block["text"])
        case "thinking":
            yield ReasoningFragment(text=block.get("thinking") or "", signature=block.get("signature") or None)
        case "redacted_thinking":
            yield ReasoningFragment(redacted=block.get("data") or "")
        case "tool_use":
            yield CallFragment(index=index, id=block.get("id"), name=block.get("name"))
        case _:
            pass


def _block_delta(index: int | None, delta: Mapping[str, Any]) -> Iterator[Fragment]:
    match delta.get("type"):
        case "text_delta":
            yield TextFragment(text=delta.get("text") or "")
        case "thinking_delta":
            yield ReasoningFragment(text=delta.get("thinking") or "")
        case "signature_delta":
            yield ReasoningFragment(signature=delta.get("signature"))
        case "input_json_delta":
            yield CallFragment(index=index, arguments=delta.get("partial_json") or "")
        case _:
            pass


if TYPE_CHECKING:
    _conforms: type[WireForm] = AnthropicForm
