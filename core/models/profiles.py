"""Model facts as data: what common models can do and cost, and safe defaults for the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.contracts.agents import ModelSettings
from core.contracts.models import ModelFacts

ANTHROPIC = "anthropic"
OPENAI = "openai"
SCRIPTED = "scripted"

_SMALL_WINDOW_TOKENS = 16_000
"""Below this the toolset `small` is the default."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Window and output in thousands of tokens; prices in dollars per million tokens."""

    window: int
    output: int
    input_usd: float
    output_usd: float
    cached_usd: float
    images: bool = True


# Source: the price map that ships with litellm 1.110.2 and the providers' model pages, read
# 2026-11-30. The longest key that occurs in a model's name wins, so dated names and the names of
# resellers (`bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0`) need no rows of their own.
_ROWS = {
    "claude-fable-5": _Row(1_000, 128, 10.0, 50.0, 1.0),
    "claude-mythos-5": _Row(1_000, 128, 10.0, 50.0, 1.0),
    "claude-opus-4-5": _Row(200, 64, 5.0, 25.0, 0.5),
    "claude-opus-4-6": _Row(1_000, 128, 5.0, 25.0, 0.5),
    "claude-opus-4-7": _Row(1_000, 128, 5.0, 25.0, 0.5),
    "claude-opus-4-8": _Row(1_000, 128, 5.0, 25.0, 0.5),
    "claude-opus-5": _Row(1_000, 128, 5.0, 25.0, 0.5),
    "claude-opus-5-5": _Row(1_000, 128, 4.0, 20.0, 0.2),
    "claude-sonnet-4-5": _Row(200, 64, 3.0, 15.0, 0.3),
    "claude-sonnet-4-6": _Row(1_000, 128, 3.0, 15.0, 0.3),
    "claude-sonnet-5": _Row(1_000, 128, 2.0, 10.0, 0.2),
    "claude-sonnet-5-5": _Row(1_000, 128, 2.0, 10.0, 0.1),
    "claude-haiku-4-5": _Row(200, 64, 1.0, 5.0, 0.1),
    "claude-haiku-5-5": _Row(1_000, 128, 0.1, 0.5, 0.01),
    "gpt-4o": _Row(128, 16, 2.5, 10.0, 1.25),
    "gpt-4o-mini": _Row(128, 16, 0.15, 0.6, 0.075),
    "gpt-4.1": _Row(1_047, 32, 2.0, 8.0, 0.5),
    "gpt-4.1-mini": _Row(1_047, 32, 0.4, 1.6, 0.1),
    "gpt-5": _Row(272, 128, 1.25, 10.0, 0.125),
    "gpt-5-mini": _Row(272, 128, 0.25, 2.0, 0.025),
    "gpt-5-nano": _Row(272, 128, 0.05, 0.4, 0.005),
    "gpt-5.2": _Row(272, 128, 1.75, 14.0, 0.175),
    "gpt-5.3": _Row(272, 128, 1.75, 14.0, 0.175),
    "gpt-5.4": _Row(1_050, 128, 2.5, 15.0, 0.25),
    "gpt-5.4-mini": _Row(272, 128, 0.75, 4.5, 0.075),
    "gpt-5.4-nano": _Row(272, 128, 0.2, 1.25, 0.02),
    "gpt-5.5": _Row(1_050, 128, 5.0, 30.0, 0.5),
    "gpt-5.6": _Row(922, 128, 4.0, 20.0, 0.4),
    "gemini-2.5-flash": _Row(1_048, 65, 0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": _Row(1_048, 65, 0.1, 0.4, 0.01),
    "gemini-2.5-pro": _Row(1_048, 65, 1.25, 10.0, 0.125),
    "gemini-3-flash": _Row(1_048, 65, 0.5, 3.0, 0.05),
    "gemini-3.1-pro": _Row(1_048, 65, 2.0, 12.0, 0.2),
    "gemini-3.5-flash": _Row(1_048, 65, 1.5, 9.0, 0.15),
    "gemini-3.8-flash": _Row(1_048, 65, 0.75, 3.75, 0.075),
    "deepseek-chat": _Row(131, 8, 0.28, 0.42, 0.028, images=False),
    "deepseek-reasoner": _Row(131, 65, 0.28, 0.42, 0.028, images=False),
    "deepseek-v3.2": _Row(163, 64, 0.28, 0.4, 0.028, images=False),
    "mistral-large": _Row(262, 64, 0.5, 1.5, 0.05),
    "mistral-medium": _Row(262, 64, 1.5, 7.5, 0.15),
    "mistral-small": _Row(262, 64, 0.15, 0.6, 0.015),
}
_BY_LENGTH = sorted(_ROWS, key=len, reverse=True)

_UNKNOWN = ModelFacts(
    form=OPENAI,
    window_tokens=32_000,
    max_output_tokens=4_000,
    sees_images=False,
    cache_markers=False,
    user_after_tool=True,
    input_usd_per_million=None,
    output_usd_per_million=None,
    cached_usd_per_million=None,
    known=False,
)
_SCRIPTED = replace(
    _UNKNOWN,
    form=SCRIPTED,
    window_tokens=200_000,
    max_output_tokens=16_000,
    input_usd_per_million=0.0,
    output_usd_per_million=0.0,
    cached_usd_per_million=0.0,
    known=True,
)

_MARKER_ROUTES = frozenset({"anthropic", "bedrock", "vertex_ai", "openrouter"})
"""Ways to Claude models on which cache markers arrive."""


def model_facts(settings: ModelSettings) -> ModelFacts:
    """Return the facts of a model, with what `settings` says of figures, toolset and sight put over them."""
    facts = _base_facts(settings.model)
    window_tokens = settings.window_tokens or facts.window_tokens
    default_toolset = "small" if window_tokens < _SMALL_WINDOW_TOKENS else facts.toolset
    return replace(
        facts,
        window_tokens=window_tokens,
        max_output_tokens=settings.max_output_tokens or facts.max_output_tokens,
        toolset=settings.toolset or default_toolset,
        sees_images=facts.sees_images if settings.sees_images is None else settings.sees_images,
    )


def provider_of(model: str) -> str:
    """Return the part of a litellm name before the first slash; empty where there is none."""
    provider, slash, _ = model.partition("/")
    return provider if slash else ""


def bare_name(model: str) -> str:
    """Return what the provider itself calls the model."""
    _, slash, name = model.partition("/")
    return name if slash else model


def reasoning_form(settings: ModelSettings) -> str:
    """Return whose reasoning a model's answers hold: only the same form reads it again.

    Anthropic's signatures hold for all of its models. In the OpenAI chat form reasoning is an
    extension that one endpoint requires and the next refuses, so there a form is one model of
    one endpoint.
    """
    form = model_facts(settings).form
    if form != OPENAI:
        return form
    _, _, address = settings.api_base.rpartition("://")
    host, _, _ = address.partition("/")
    return f"{OPENAI}:{settings.model}@{host}" if host else f"{OPENAI}:{settings.model}"


def _base_facts(model: str) -> ModelFacts:
    provider = provider_of(model)
    if provider == SCRIPTED:
        return _SCRIPTED
    lowered = model.lower()
    facts = replace(
        _UNKNOWN,
        form=ANTHROPIC if provider == ANTHROPIC else OPENAI,
        cache_markers=provider == ANTHROPIC or ("claude" in lowered and provider in _MARKER_ROUTES),
        user_after_tool=provider != "mistral",
    )
    key = next((key for key in _BY_LENGTH if key in lowered), None)
    if key is None:
        return facts
    row = _ROWS[key]
    return replace(
        facts,
        window_tokens=row.window * 1_000,
        max_output_tokens=row.output * 1_000,
        sees_images=row.images,
        input_usd_per_million=row.input_usd,
        output_usd_per_million=row.output_usd,
        cached_usd_per_million=row.cached_usd,
        known=True,
    )
