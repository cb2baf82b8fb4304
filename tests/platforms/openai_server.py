"""A strict server of the OpenAI chat form: it refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.platforms.model_images import image_fault
from tests.platforms.model_script import Answer, ModelServer, Seen, Status, Step, halves, text_items

_REQUEST_FIELDS = {
    "model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens", "max_completion_tokens",
    "temperature", "parallel_tool_calls",
}  # fmt: skip
_MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_MAX_REQUEST_BYTES = 50 * 1024 * 1024
_DATA_URL = re.compile(r"data:([a-z/]+);base64,(.*)", re.DOTALL)
_BLOCK_FIELDS = {"text": {"type", "text"}, "image_url": {"type", "image_url"}}


class Refused(Exception):
    """The message of a 400."""


def chunk(delta: Mapping[str, Any] | None, finish: str | None = None, **extra: Any) -> str:
    """Return one server-sent event with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": [choice], **extra}
    )


def usage_chunk(usage: Mapping[str, Any] | None) -> str:
    """Return the last event of `include_usage`, which has no choices."""
    return event(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": [], "usage": usage}
    )


def event(data: Any) -> str:
    return f"data: {json.dumps(data)}\n\n"


DONE = "data: [DONE]\n\n"


class OpenAIServer(ModelServer):
    """See the module.

    Args:
        needs_reasoning: Refuse assistant messages with calls but without `reasoning_content`;
            without it that field is an unknown one and refused.
        max_request_bytes: Refuse larger requests.
    """

    path = "/chat/completions"

    def __init__(
        self,
        script: Sequence[Step] = (Answer(text="ok"),),
        *,
        key: str = "",
        needs_reasoning: bool = False,
        max_request_bytes: int = _MAX_REQUEST_BYTES,
    ) -> None:
        super().__init__(script, key=key, base_path="/v1")
        self.needs_reasoning = needs_reasoning
        self.max_request_bytes = max_request_bytes

    def refuse(self, seen: Seen) -> Status | None:
        if self.key and seen.headers.get("Authorization") != f"Bearer {self.key}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        if len(seen.raw) > self.max_request_bytes:
            return Status(413, "Request Entity Too Large", content_type="text/plain")
        try:
            _known(seen.body, _REQUEST_FIELDS, "request")
            self._check_messages(seen.body["messages"])
        except Refused as refused:
            return _error(400, str(refused), "invalid_request_error")
        return None

    def _check_messages(self, messages: list[dict[str, Any]]) -> None:
        if not messages:
            raise Refused("[] is too short - 'messages'")
        for message in messages:
            self._check_message(message)
        talk = [message for message in messages if message["role"] != "system"]
        if not talk or talk[0]["role"] != "user":
            raise Refused("the first message must be from the user")
        _check_pairing(talk)

    def _check_message(self, message: dict[str, Any]) -> None:
        role = message.get("role")
        if role not in _MESSAGE_FIELDS:
            raise Refused(f"Invalid value: {role!r}. Supported values are: {sorted(_MESSAGE_FIELDS)}")
        reasoning = {"reasoning_content"} if self.needs_reasoning and role == "assistant" else set()
        _known(message, _MESSAGE_FIELDS[role] | reasoning, f"messages.{role}")
        _check_content(message)
        for call in message.get("tool_calls", ()):
            _check_call(call)
        if self.needs_reasoning and message.get("tool_calls") and not message.get("reasoning_content"):
            raise Refused("thinking is enabled but reasoning_content is missing in assistant tool call message")

    def stream_items(self, answer: Answer, body: dict[str, Any]) -> list[str | asyncio.Event]:
        items: list[str | asyncio.Event] = [chunk({"role": "assistant", "content": ""})]
        if answer.reasoning:
            items += [chunk({"reasoning_content": piece}) for piece in halves(answer.reasoning)]
        items += text_items(answer, lambda piece: chunk({"content": piece}))
        for index, call in enumerate(answer.calls):
            first = {
                "index": index,
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }
            items.append(chunk({"tool_calls": [first]}))
            items += [
                chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                for piece in halves(call.arguments)
            ]
        items.append(chunk({}, answer.finish or ("tool_calls" if answer.calls else "stop")))
        if body.get("stream_options", {}).get("include_usage"):
            usage = answer.usage or {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            items.append(usage_chunk(usage))
        return [*items, DONE]


def _error(status: int, message: str, code: str) -> Status:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Status(status, json.dumps({"error": error}))


def _known(fields: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(fields) - allowed)
    if unknown:
        raise Refused(f"Unrecognized {where} argument supplied: {', '.join(unknown)}")


def _check_content(message: dict[str, Any]) -> None:
    content = message.get("content")
    if message["role"] == "assistant" and not content and not message.get("tool_calls"):
        raise Refused("Invalid value for 'content': expected a string, got null.")
    if message["role"] != "assistant" and not content:
        raise Refused(f"Invalid 'messages': empty content of a {message['role']} message.")
    for block in content if isinstance(content, list) else ():
        if block.get("type") not in _BLOCK_FIELDS:
            raise Refused(f"Invalid content type {block.get('type')!r}")
        if message["role"] != "user" and block["type"] != "text":
            raise Refused("Image URLs are only allowed for messages with role 'user'")
        _known(block, _BLOCK_FIELDS[block["type"]], "content block")
        if block["type"] == "image_url":
            _check_image(block["image_url"])


def _check_image(image: dict[str, Any]) -> None:
    _known(image, {"url", "detail"}, "image_url")
    found = _DATA_URL.fullmatch(image["url"])
    if found is None or image_fault(*found.groups()):
        raise Refused("You uploaded an unsupported image. Please make sure your image is valid.")


def _check_call(call: dict[str, Any]) -> None:
    _known(call, {"id", "type", "function"}, "tool call")
    _known(call["function"], {"name", "arguments"}, "function")
    if not call["id"] or len(call["id"]) > 40:
        raise Refused("Invalid 'tool_calls[0].id': string too long. Expected a string with maximum length 40.")
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise Refused("function.arguments must be the JSON text of an object")


def _check_pairing(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise Refused("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise Refused(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(waiting)) < len(waiting):
            raise Refused("Duplicate value for 'tool_call_id'")
    if waiting:
        raise Refused(f"The following tool_call_ids did not have response messages: {', '.join(waiting)}")
