"""The OpenAI chat form: request out, stream events in. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from core.contracts.models import ModelFacts, ModelRequest
from core.models.chat_form import ChatStyle, chat_messages, chat_tools
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
from core.models.wire import StreamFailure, StreamReader, WireForm, WireRequest, endpoint

_DEFAULT_BASE = "https://api.openai.com/v1"
_DONE = "[DONE]"


class OpenAIForm:
    """Chat completions, as OpenAI defines them and many servers copy them."""

    def request(
        self, request: ModelRequest, *, facts: ModelFacts, images: Mapping[str, str], key: str | None
    ) -> WireRequest:
        style = ChatStyle(
            reasoning_form=reasoning_form(request.settings),
            sees_images=facts.sees_images,
            user_after_tool=facts.user_after_tool,
        )
        url = endpoint(request.settings, default_base=_DEFAULT_BASE, path="/chat/completions")
        # OpenAI's newer models refuse the old name, copies of its API often know nothing else.
        limit_name = "max_completion_tokens" if url.startswith(_DEFAULT_BASE) else "max_tokens"
        body: dict[str, Any] = {
            "model": bare_name(request.settings.model),
            limit_name: request.max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = chat_tools(request.tools)
        body["messages"] = chat_messages(request, style, images)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return WireRequest(url=url, headers=headers, body=body)

    def is_end(self, data: str) -> bool:
        return data == _DONE

    def reader(self) -> StreamReader:
        return _Reader()


class _Reader:
    """Takes chunks with missing choices, null deltas and usage anywhere."""

    def read(self, data: Mapping[str, Any]) -> Iterator[Fragment]:
        if data.get("error"):
            raise StreamFailure(error_text(data), error_status(data))
        for choice in data.get("choices") or ():
            if choice.get("index") in {None, 0}:
                yield from _delta_fragments(choice.get("delta") or {})
                if choice.get("finish_reason"):
                    yield FinishFragment(reason=choice["finish_reason"])
        usage = data.get("usage")
        if usage:
            yield openai_usage(usage)


def openai_usage(usage: Mapping[str, Any]) -> UsageFragment:
    """Read the usage object of the chat form, nulls and gaps included."""
    details = usage.get("prompt_tokens_details") or {}
    return UsageFragment(
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        cached_tokens=details.get("cached_tokens"),
    )


def _delta_fragments(delta: Mapping[str, Any]) -> Iterator[Fragment]:
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        yield ReasoningFragment(text=reasoning)
    for text in (delta.get("content"), delta.get("refusal")):
        if text:
            yield TextFragment(text=text if isinstance(text, str) else _joined(text))
    for call in delta.get("tool_calls") or ():
        yield call_fragment(call)


def call_fragment(call: Mapping[str, Any]) -> CallFragment:
    """Read one piece of a tool call; some servers send arguments as an object at once."""
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return CallFragment(
        index=call.get("index"), id=call.get("id"), name=function.get("name"), arguments=arguments or ""
    )


def _joined(blocks: list[Any]) -> str:
    """Mistral streams content as a list of blocks."""
    return "".join(block.get("text") or "" for block in blocks if isinstance(block, dict))


if TYPE_CHECKING:
    _conforms: type[WireForm] = OpenAIForm
