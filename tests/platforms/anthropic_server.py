"""A strict server of the Anthropic messages form: it refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from tests.platforms.model_images import image_fault
from tests.platforms.model_script import Answer, ModelServer, Seen, Status, Step, halves, text_items

_REQUEST_FIELDS = {"model", "messages", "system", "max_tokens", "tools", "tool_choice", "stream", "temperature"}
_BLOCK_FIELDS = {
    "text": {"type", "text"},
    "image": {"type", "source"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
}
_ROLE_BLOCKS = {
    "user": {"text", "image", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_MARKERS = 4
_MAX_REQUEST_BYTES = 32 * 1024 * 1024


class Refused(Exception):
    """The message of an invalid_request_error."""


def event(kind: str, **fields: Any) -> str:
    """Return one server-sent event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def start(usage: dict[str, Any] | None = None) -> str:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1} if usage is None else usage,
    }  # fmt: skip
    return event("message_start", message=message)


def block(index: int, first: dict[str, Any], deltas: Sequence[dict[str, Any]]) -> list[str]:
    return [
        event("content_block_start", index=index, content_block=first),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def end(reason: str, output_tokens: int = 5) -> list[str]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [event("message_delta", delta=delta, usage={"output_tokens": output_tokens}), event("message_stop")]


class AnthropicServer(ModelServer):
    """See the module.

    Args:
        needs_thinking: Refuse assistant messages with calls that do not begin with the thinking
            block, signature `sig1`, that the model made.
        max_request_bytes: Refuse larger requests.
    """

    path = "/v1/messages"

    def __init__(
        self,
        script: Sequence[Step] = (Answer(text="ok"),),
        *,
        key: str = "",
        needs_thinking: bool = False,
        max_request_bytes: int = _MAX_REQUEST_BYTES,
    ) -> None:
        super().__init__(script, key=key)
        self.needs_thinking = needs_thinking
        self.max_request_bytes = max_request_bytes

    def refuse(self, seen: Seen) -> Status | None:
        if self.key and seen.headers.get("x-api-key", seen.headers.get("X-Api-Key")) != self.key:
            return error(401, "authentication_error", "invalid x-api-key")
        if len(seen.raw) > self.max_request_bytes:
            return error(413, "request_too_large", "Request exceeds the maximum size")
        try:
            self._check(seen.body)
        except Refused as refused:
            return error(400, "invalid_request_error", str(refused))
        return None

    def _check(self, body: dict[str, Any]) -> None:
        unknown = sorted(set(body) - _REQUEST_FIELDS)
        if unknown:
            raise Refused(f"{unknown[0]}: Extra inputs are not permitted")
        if "max_tokens" not in body:
            raise Refused("max_tokens: Field required")
        if json.dumps(body).count('"cache_control"') > _MAX_MARKERS:
            raise Refused("A maximum of 4 blocks with cache_control may be provided.")
        messages = body.get("messages")
        if not messages:
            raise Refused("messages: at least one message is required")
        _check_roles(messages)
        for number, message in enumerate(messages):
            _check_blocks(message, f"messages.{number}.content")
            self._check_thinking(message)
        _check_pairing(messages)
        if not body.get("tools") and any(_of_type(message, "tool_use") for message in messages):
            raise Refused("Requests which have `tool_use` or `tool_result` blocks in `messages` must define tools")

    def _check_thinking(self, message: dict[str, Any]) -> None:
        if not self.needs_thinking or not _of_type(message, "tool_use"):
            return
        first = message["content"][0]
        if first["type"] != "thinking" or first.get("signature") != "sig1":
            raise Refused("Expected `thinking` or `redacted_thinking`, but found `tool_use`.")

    def stream_items(self, answer: Answer, body: dict[str, Any]) -> list[str | asyncio.Event]:
        items: list[str | asyncio.Event] = [start(answer.usage), event("ping")]
        index = 0
        if answer.reasoning:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in halves(answer.reasoning)]
            deltas.append({"type": "signature_delta", "signature": answer.signature})
            items += block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
            index += 1
        if any(answer.pieces):
            items.append(event("content_block_start", index=index, content_block={"type": "text", "text": ""}))
            number = index
            items += text_items(
                answer,
                lambda piece: event("content_block_delta", index=number, delta={"type": "text_delta", "text": piece}),
            )
            items.append(event("content_block_stop", index=index))
            index += 1
        for call in answer.calls:
            first = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in halves(call.arguments)]
            items += block(index, first, deltas)
            index += 1
        return [*items, *end(answer.finish or ("tool_use" if answer.calls else "end_turn"))]


def error(status: int, kind: str, message: str) -> Status:
    return Status(status, json.dumps({"type": "error", "error": {"type": kind, "message": message}}))


def _check_roles(messages: list[dict[str, Any]]) -> None:
    if messages[0]["role"] != "user":
        raise Refused("messages: first message must use the user role")
    for before, after in itertools.pairwise(messages):
        if before["role"] == after["role"]:
            raise Refused('messages: roles must alternate between "user" and "assistant"')


def _check_blocks(message: dict[str, Any], where: str) -> None:
    content = message["content"]
    if not content:
        raise Refused(f"{where}: all messages must have non-empty content")
    for found in content if isinstance(content, list) else ():
        kind = found.get("type")
        if kind not in _ROLE_BLOCKS[message["role"]]:
            raise Refused(f"{where}: unexpected `{kind}` block in a {message['role']} message")
        unknown = sorted(set(found) - _BLOCK_FIELDS[kind] - {"cache_control"})
        if unknown:
            raise Refused(f"{where}.{kind}.{unknown[0]}: Extra inputs are not permitted")
        if kind == "text" and not found["text"].strip():
            raise Refused("messages: text content blocks must contain non-whitespace text")
        if kind == "image":
            _check_image(found, where)
        if kind == "tool_result" and isinstance(found["content"], list):
            for inner in found["content"]:
                if inner["type"] == "image":
                    _check_image(inner, where)
        if kind == "tool_use" and not (_ID.fullmatch(found["id"]) and isinstance(found["input"], dict)):
            raise Refused(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _check_image(found: dict[str, Any], where: str) -> None:
    source = found["source"]
    if set(source) != {"type", "media_type", "data"} or source["type"] != "base64":
        raise Refused(f"{where}.image.source: Input should be a valid source")
    fault = image_fault(source["media_type"], source["data"])
    if fault:
        raise Refused(f"{where}.image.source.base64: {fault}")


def _of_type(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message["content"]
    return [found for found in content if found["type"] == kind] if isinstance(content, list) else []


def _check_pairing(messages: list[dict[str, Any]]) -> None:
    before: list[str] = []
    for message in messages:
        results = [found["tool_use_id"] for found in _of_type(message, "tool_result")]
        for result in results:
            if result not in before:
                raise Refused(f"unexpected `tool_use_id` found in `tool_result` blocks: {result}")
        if sorted(results) != sorted(before):
            raise Refused("`tool_use` ids were found without `tool_result` blocks immediately after")
        content = message["content"]
        if results and [found["type"] for found in content[: len(results)]] != ["tool_result"] * len(results):
            raise Refused("tool_result blocks must come first in the user message")
        before = [found["id"] for found in _of_type(message, "tool_use")]
    if before:
        raise Refused("`tool_use` ids were found without `tool_result` blocks immediately after")
