"""Counts and prices one model step."""

from __future__ import annotations

import json
from dataclasses import replace

from core.contracts.messages import AssistantPart, ReasoningPart, TextPart, ToolCall
from core.contracts.models import ModelFacts, ModelRequest
from core.contracts.runs import Usage
from core.models.fragments import UsageFragment
from core.models.render import image_parts

IMAGE_TOKENS = 1_600
"""What one image is estimated at, whatever its size: the most that Anthropic takes for one, by a token for each 750
pixels after shrinking, and a little more than OpenAI does. docs.anthropic.com/en/docs/build-with-claude/vision and
platform.openai.com/docs/guides/images-vision, read 2026-12-02."""
_CHARS_PER_TOKEN = 4
_CACHE_WRITE_FACTOR = 1.25
"""Anthropic's five-minute cache: docs.anthropic.com/en/docs/build-with-claude/prompt-caching, read 2026-11-30."""
_MILLION = 1_000_000


def step_usage(
    reported: UsageFragment, *, request: ModelRequest, parts: tuple[AssistantPart, ...], facts: ModelFacts
) -> Usage:
    """Return what the step cost; figures the provider kept to itself are estimated and marked.

    `input_tokens` is the whole prompt, cached and newly cached tokens included.
    """
    usage = Usage(
        input_tokens=_estimate_input(request, facts) if reported.input_tokens is None else reported.input_tokens,
        output_tokens=_estimate_output(parts) if reported.output_tokens is None else reported.output_tokens,
        cached_tokens=reported.cached_tokens or 0,
        cache_write_tokens=reported.cache_write_tokens or 0,
        estimated=reported.input_tokens is None or reported.output_tokens is None,
    )
    return replace(usage, cost_usd=cost_usd(usage, facts))


def cost_usd(usage: Usage, facts: ModelFacts) -> float | None:
    """Return the price of `usage`; None where the model's prices are not known."""
    input_price, output_price = facts.input_usd_per_million, facts.output_usd_per_million
    if input_price is None or output_price is None:
        return None
    cached_price = input_price if facts.cached_usd_per_million is None else facts.cached_usd_per_million
    fresh_tokens = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
    total = (
        fresh_tokens * input_price
        + usage.cached_tokens * cached_price
        + usage.cache_write_tokens * input_price * _CACHE_WRITE_FACTOR
        + usage.output_tokens * output_price
    )
    return total / _MILLION


def _estimate_input(request: ModelRequest, facts: ModelFacts) -> int:
    chars = len(request.system)
    chars += sum(len(str(part)) for message in request.messages for part in message.parts)
    chars += sum(len(json.dumps(dict(tool.parameters))) + len(tool.description) for tool in request.tools)
    images = sum(1 for _ in image_parts(request.messages)) if facts.sees_images else 0
    return chars // _CHARS_PER_TOKEN + images * IMAGE_TOKENS + 1


def _estimate_output(parts: tuple[AssistantPart, ...]) -> int:
    chars = 0
    for part in parts:
        match part:
            case TextPart() | ReasoningPart():
                chars += len(part.text)
            case ToolCall():
                chars += len(part.name) + len(part.arguments)
    return chars // _CHARS_PER_TOKEN + 1
