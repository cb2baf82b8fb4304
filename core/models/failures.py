"""Translates a provider's failure into one of the model errors: the only place that does.

By status first where it is clear, then by what the body says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from core.contracts.errors import (
    ModelBusy,
    ModelError,
    ModelImageRefused,
    ModelOverflow,
    ModelPayloadTooLarge,
    ModelRejected,
    ModelUnreachable,
)

_DETAIL_CHARS = 500

_OVERFLOW_WORDINGS = (
    r"context_length_exceeded|model_max_prompt_tokens_exceeded",
    r"maximum context length",  # OpenAI, vLLM, Mistral, OpenRouter
    r"context length is only",  # vLLM
    r"exceeds? (?:the )?(?:available |model'?s? |maximum )?context",  # llama.cpp, Anthropic, OpenAI responses
    r"context (?:window|length|size|limit)\W+(?:\w+\W+){0,2}exceed",  # litellm, MiniMax
    r"(?:greater|larger|longer) than the (?:model'?s? )?context",  # LM Studio
    r"prompt (?:is )?too long",  # Anthropic, Ollama
    r"input is too long",  # Bedrock
    r"total length of all messages is too long",
    r"maximum prompt length is",  # xAI
    r"input token count.{0,40}exceeds",  # Gemini
    r"exceeded model token limit",  # Moonshot
    r"reduce the length of the messages",  # Groq
)
_PAYLOAD_WORDINGS = (
    r"request_too_large|request exceeds the maximum size",  # Anthropic
    r"request entity too large|payload too large",  # nginx and other proxies
    r"request payload size exceeds",  # Gemini
    r"too much media|too many images",  # Anthropic, Mistral, Copilot
    r"at most \d+ image",  # vLLM
    r"\d+ images, exceeding",
    r"many-image requests",  # Anthropic: from 20 images on each has to be smaller
)
_IMAGE_WORDINGS = (
    r"could not process image|image exceeds|image dimensions exceed",  # Anthropic
    r"unsupported image|not represent a valid image|invalid_image|image_parse_error",  # OpenAI
    r"(?:process|decode|load) (?:the )?(?:input |provided )?image",  # Gemini, llama.cpp, vLLM
    r"support image|support vision|image input is not|image_url is only",  # models that see none
    r"not a multimodal model",  # vLLM
)
"""From messages that people reported to the projects named behind them, read 2026-12-02."""


def _any_of(wordings: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(wordings), re.IGNORECASE)


_OVERFLOW = _any_of(_OVERFLOW_WORDINGS)
_PAYLOAD = _any_of(_PAYLOAD_WORDINGS)
_IMAGE = _any_of(_IMAGE_WORDINGS)
_RATE_LIMIT = re.compile(r"rate.?limit|too many requests|tokens per minute|requests per minute", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded|currently busy|at capacity", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance", re.IGNORECASE)

_REJECTED = frozenset({401, 402, 403, 404, 405})
_ABOUT_CONTENT = frozenset({None, 400, 404, 415, 422})
"""Statuses with which a provider refuses an image; OpenRouter says 404 where no endpoint sees any."""
_ERRORS = range(400, 600)
_SERVER_ERRORS = range(500, 600)
_TOO_LARGE = 413
_TOO_MANY = 429
_OVERLOADED_STATUS = 529
_TIMEOUTS = frozenset({408, 409, 425, 499})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is known of a failed request. `text` is the provider's message with its code."""

    text: str
    status: int | None = None
    retry_after: timedelta | None = None


def translate(failure: Failure, mask: Callable[[str], str]) -> ModelError:
    """Return the error to raise; its detail is masked and at most 500 characters long."""
    detail = mask(failure.text.strip())[:_DETAIL_CHARS] or f"HTTP {failure.status} without a message"
    status, text = failure.status, failure.text
    kind = _about_content(status, text)
    if kind is not None:
        return kind(detail, status=status)
    if status in _REJECTED or (status == _TOO_MANY and _NO_CREDIT.search(text)):
        return ModelRejected(detail, status=status)
    if _is_busy(failure):
        return ModelBusy(detail, status=status, retry_after=failure.retry_after)
    if status is None or status in _TIMEOUTS or status in _SERVER_ERRORS:
        return ModelUnreachable(detail, status=status)
    return ModelRejected(detail, status=status)


def body_text(body: str) -> str:
    """Return the message and code of an error body, or the body itself where it is no known JSON."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body
    return error_text(data) or body


def error_text(data: Any) -> str:
    """Return `message` and `code` of `{"error": ...}` in the shapes that providers use."""
    if isinstance(data, list):
        data = data[0] if data else {}
    if not isinstance(data, dict):
        return ""
    error = data.get("error", data)
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    words = (error.get("message") or error.get("detail"), error.get("code"), error.get("type"))
    message, *codes = (word if isinstance(word, str) else "" for word in words)
    extra = ", ".join(code for code in codes if code and code not in message)
    return f"{message} ({extra})" if message and extra else message or extra


def error_status(data: Any) -> int | None:
    """Return the HTTP status that an error inside a stream names as its code."""
    error = data.get("error") if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return None
    code = error.get("code", error.get("status"))
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and code in _ERRORS else None


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return how long the provider asks to wait; None where it says nothing usable.

    `headers` has lower-case names, or ignores case. RFC 9110, 10.2.3 allows seconds and an HTTP
    date; fractions and OpenAI's `retry-after-ms` are met too.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return timedelta(milliseconds=milliseconds)
    value = headers.get("retry-after", "").strip()
    seconds = _seconds(value)
    if seconds is not None:
        return timedelta(seconds=seconds)
    try:
        at = parsedate_to_datetime(value)
        wait = at - now
    except (ValueError, TypeError, OverflowError):
        return None
    return max(wait, timedelta(0))


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    longest = timedelta(days=365).total_seconds()
    return min(seconds, longest) if math.isfinite(seconds) and seconds >= 0 else None


def _about_content(status: int | None, text: str) -> type[ModelError] | None:
    """Return the error that what was sent is the reason of, if it is."""
    if _may_be_too_large(status, text):
        if _OVERFLOW.search(text):
            return ModelOverflow
        if status == _TOO_LARGE or _PAYLOAD.search(text):
            return ModelPayloadTooLarge
    return ModelImageRefused if status in _ABOUT_CONTENT and _IMAGE.search(text) else None


def _may_be_too_large(status: int | None, text: str) -> bool:
    """Whether size can be what was refused, and not how much was asked for in how short a time."""
    if status == _TOO_LARGE:
        return True
    return status != _TOO_MANY and status not in _REJECTED and not _RATE_LIMIT.search(text)


def _is_busy(failure: Failure) -> bool:
    if failure.status in {_TOO_MANY, _OVERLOADED_STATUS} or _RATE_LIMIT.search(failure.text):
        return True
    server_side = failure.status is None or failure.status in _SERVER_ERRORS
    return server_side and (failure.retry_after is not None or bool(_OVERLOADED.search(failure.text)))
