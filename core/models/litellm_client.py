"""The client that reaches every provider; the only file that imports litellm."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

from core.contracts.agents import ModelSettings
from core.contracts.clock import Clock, SystemClock
from core.contracts.errors import ModelError, ModelOverflow, ModelRejected, ModelUnreachable
from core.contracts.models import ModelClient, ModelEvent, ModelFacts, ModelRequest, StepFinished
from core.models.assemble import Assembler, call_ids
from core.models.chat_form import ChatStyle, Json, chat_messages, chat_tools
from core.models.direct_openai import call_fragment
from core.models.failures import Failure, body_text, retry_after, translate
from core.models.fragments import (
    FinishFragment,
    Fragment,
    ReasoningFragment,
    TextFragment,
    UsageFragment,
)
from core.models.profiles import ANTHROPIC, model_facts, provider_of, reasoning_form
from core.models.render import ImageSource, declared_tools, load_images, no_images
from core.models.usage import step_usage
from core.models.wire import DEFAULT_IDLE

# Without the first, importing litellm downloads a price map; without the second, it loads ./.env
# into the environment of this process. Both are read at import only.
_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_SIGNATURE_SEPARATOR = "__thought__"
"""litellm hides Gemini's thought signature behind this in the id of a call."""
_SIGNED_CALLS = frozenset({"gemini", "vertex_ai"})


_WRAPPING = re.compile(r"(?:litellm\.)?\w+(?:Error|Exception|Timeout)(?:: | - )")
_TRACEBACK = "\nTraceback (most recent call last)"
_NOT_SET_UP = re.compile(r"missing (?:\w+ )?(?:api key|credentials)|no module named", re.IGNORECASE)
"""What litellm reports as a broken connection, though trying again cannot help."""
_JSON_BODY = re.compile(r"\{.*\}", re.DOTALL)


class LiteLLMClient:
    """Streams through litellm's SDK, with its retries, downloads and prints switched off.

    Constructing one imports nothing; `warm` or the first stream does, in a thread.

    Args:
        resolve_key: Returns the API key for a model, if it needs one.
        mask: Removes secrets from a provider's error text.
        images: Reads stored attachments.
        idle: How long a stream may be silent before it counts as cut.
        clock: Tells how far away an HTTP date in Retry-After is.
    """

    def __init__(
        self,
        *,
        resolve_key: Callable[[ModelSettings], str | None],
        mask: Callable[[str], str],
        images: ImageSource = no_images,
        idle: timedelta = DEFAULT_IDLE,
        clock: Clock | None = None,
    ) -> None:
        self._resolve_key = resolve_key
        self._mask = mask
        self._images = images
        self._idle_seconds = idle.total_seconds()
        self._clock = clock or SystemClock()
        self._litellm: Any = None
        self._failures: tuple[type[Exception], ...] = ()
        self._loading = asyncio.Lock()

    async def warm(self) -> None:
        """Import litellm in a thread; a second call returns at once."""
        async with self._loading:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(import_litellm)
                self._failures = failures_of(self._litellm)

    async def aclose(self) -> None:
        """Close the connections that litellm keeps."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await self.warm()
        facts = self.facts(request.settings)
        images = await load_images(request, self._images) if facts.sees_images else {}
        arguments = self._arguments(request, facts, images)
        assembler = Assembler(reasoning_form=reasoning_form(request.settings), taken=call_ids(request.messages))
        async with aclosing(self._events(arguments)) as events:
            async for fragments in events:
                for fragment in fragments:
                    delta = assembler.add(fragment)
                    if delta is not None:
                        yield delta
        answer = assembler.finish()
        usage = step_usage(answer.reported, request=request, parts=answer.parts, facts=facts)
        yield StepFinished(parts=answer.parts, finish=answer.finish, usage=usage)

    def facts(self, settings: ModelSettings) -> ModelFacts:
        return model_facts(settings)

    def _arguments(self, request: ModelRequest, facts: ModelFacts, images: Mapping[str, str]) -> Json:
        settings = request.settings
        provider = provider_of(settings.model)
        anthropic = facts.form == ANTHROPIC
        style = ChatStyle(
            reasoning_form=reasoning_form(settings),
            sees_images=facts.sees_images,
            user_after_tool=facts.user_after_tool,
            cache_markers=facts.cache_markers,
            thinking_blocks=anthropic,
            tool_images=anthropic,
            call_signatures=provider in _SIGNED_CALLS,
        )
        arguments: Json = {
            "model": settings.model,
            "messages": chat_messages(request, style, images),
            "max_tokens": request.max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": self._idle_seconds,
            "num_retries": 0,
            "max_retries": 0,
        }
        tools = declared_tools(request) if anthropic else request.tools
        if tools:
            arguments["tools"] = chat_tools(tools)
        if tools and not request.tools:
            arguments["tool_choice"] = "none"
        if settings.api_base:
            arguments["api_base"] = settings.api_base
        key = self._resolve_key(settings)
        if key:
            arguments["api_key"] = key
        return arguments

    async def _events(self, arguments: Json) -> AsyncGenerator[Iterable[Fragment]]:
        """Yield the fragments of each chunk; every failure of litellm is translated here."""
        try:
            async with asyncio.timeout(self._idle_seconds):
                stream = await self._litellm.acompletion(**arguments)
            async with aclosing(stream):
                chunks = aiter(stream)
                while (chunk := await self._next(chunks)) is not None:
                    yield _fragments(chunk)
                # litellm invents a finish for a stream that was cut; only this field tells.
                if stream.received_finish_reason is None:
                    raise ModelUnreachable("the model's stream ended without a finish")
                yield _reported_usage(stream.chunks)
        except TimeoutError as error:
            raise ModelUnreachable("no sign of the model in time") from error
        except self._failures as error:
            raise translated(error, self._litellm, mask=self._mask, clock=self._clock) from error

    async def _next(self, chunks: AsyncIterator[Any]) -> Any:
        async with asyncio.timeout(self._idle_seconds):
            return await anext(chunks, None)


def failures_of(litellm: Any) -> tuple[type[Exception], ...]:
    """Return all that a call of litellm raises when a provider fails: its errors descend from the OpenAI SDK's."""
    return (litellm.exceptions.openai.OpenAIError, httpx.HTTPError)


def translated(error: Exception, litellm: Any, *, mask: Callable[[str], str], clock: Clock) -> ModelError:
    """Return the model error for one of `failures_of`."""
    known = vars(error)
    text = _provider_text(str(error))
    if isinstance(error, litellm.ContextWindowExceededError):
        return ModelOverflow(mask(text), status=known.get("status_code"))
    if _NOT_SET_UP.search(text):
        return ModelRejected(mask(text))
    wait = retry_after(known.get("litellm_response_headers") or {}, clock.now())
    return translate(Failure(text=text, status=known.get("status_code"), retry_after=wait), mask)


def _fragments(chunk: Any) -> Iterator[Fragment]:
    for choice in chunk.choices:
        yield from _delta_fragments(choice.delta)
        if choice.finish_reason:
            yield FinishFragment(reason=choice.finish_reason)


def _delta_fragments(delta: Any) -> Iterator[Fragment]:
    blocks = delta.get("thinking_blocks")
    if blocks:
        for block in blocks:
            yield ReasoningFragment(
                text=block.get("thinking") or "", signature=block.get("signature"), redacted=block.get("data")
            )
    elif delta.get("reasoning_content"):
        yield ReasoningFragment(text=delta.get("reasoning_content"))
    if delta.get("content"):
        yield TextFragment(text=delta.get("content"))
    for call in delta.get("tool_calls") or ():
        yield from _call_fragments(call.model_dump())


def _call_fragments(call: Json) -> Iterator[Fragment]:
    """Part a call from the signature that litellm hides in its id."""
    call_id, _, signature = (call.get("id") or "").partition(_SIGNATURE_SEPARATOR)
    if signature:
        yield ReasoningFragment(signature=signature)
    yield call_fragment(call | {"id": call_id})


def _reported_usage(chunks: Iterable[Any]) -> Iterator[UsageFragment]:
    """Read what the provider reported; the usage that the stream ends with may be litellm's guess.

    Zero is litellm's word for null.
    """
    for chunk in chunks:
        found = dict(chunk).get("usage")
        if found is not None:
            usage = found.model_dump()
            details = usage.get("prompt_tokens_details") or {}
            yield UsageFragment(
                input_tokens=usage.get("prompt_tokens") or None,
                output_tokens=usage.get("completion_tokens") or None,
                cached_tokens=details.get("cached_tokens"),
                cache_write_tokens=usage.get("cache_creation_input_tokens"),
            )


def _provider_text(text: str) -> str:
    """Return the provider's own words, without the class names that litellm puts around them."""
    _, _, tail = text.rpartition(" Original exception: ")
    words, _, _ = _WRAPPING.sub("", tail).partition(_TRACEBACK)
    body = _JSON_BODY.search(words)
    return body_text(body.group()) if body else words


def import_litellm() -> Any:
    """Return litellm, imported and set up; takes seconds the first time, so call it in a thread."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Complaints of libraries about each other, some as late as the first call; nobody here can act on them.
    warnings.filterwarnings("ignore", module=r"(litellm|openai|pydantic)\b")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    litellm.disable_hf_tokenizer_download = True
    # By default an answer with a hundred equal pieces in a row, such as a long rule in a table, is an error.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    for name in _LOGGERS:
        logging.getLogger(name).handlers.clear()
    return litellm


if TYPE_CHECKING:
    _conforms: type[ModelClient] = LiteLLMClient
