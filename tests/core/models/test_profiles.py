"""Model facts."""

import pytest

from core.models.profiles import model_facts, reasoning_form
from tests.core.models.transcripts import settings


@pytest.mark.parametrize(
    ("model", "window_tokens", "input_usd"),
    [
        ("anthropic/claude-sonnet-4-5", 200_000, 3.0),
        ("anthropic/claude-sonnet-4-5-20250929", 200_000, 3.0),
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, 3.0),
        ("anthropic/claude-opus-5-5", 1_000_000, 4.0),
        ("openai/gpt-4o-mini", 128_000, 0.15),
        ("gpt-5.4-mini-2026-03-01", 272_000, 0.75),
        ("gemini/gemini-2.5-flash-lite", 1_048_000, 0.1),
    ],
)
def test_the_longest_matching_name_wins(model, window_tokens, input_usd):
    facts = model_facts(settings(model))
    assert facts.known
    assert facts.window_tokens == window_tokens
    assert facts.input_usd_per_million == input_usd


def test_an_unknown_model_gets_safe_defaults_and_says_so():
    facts = model_facts(settings("openai/my-own-model"))
    assert not facts.known
    assert not facts.sees_images
    assert facts.window_tokens == 32_000
    assert facts.input_usd_per_million is None


def test_settings_override_the_table():
    facts = model_facts(settings("openai/gpt-4o", window_tokens=50_000, max_output_tokens=7, toolset="patch"))
    assert (facts.window_tokens, facts.max_output_tokens, facts.toolset) == (50_000, 7, "patch")


@pytest.mark.parametrize("model", ["openai/gpt-4o", "openai/my-own-model", "deepseek/deepseek-chat", "scripted/demo"])
def test_whether_a_model_sees_images_is_said_by_its_settings_before_its_name(model):
    assert model_facts(settings(model, sees_images=True)).sees_images
    assert not model_facts(settings(model, sees_images=False)).sees_images
    assert model_facts(settings(model)).sees_images == (model == "openai/gpt-4o")


def test_a_small_window_means_the_small_toolset():
    assert model_facts(settings("openai/m1", window_tokens=8_192)).toolset == "small"
    assert model_facts(settings("openai/m1", window_tokens=8_192, toolset="default")).toolset == "default"


@pytest.mark.parametrize(
    ("model", "form", "markers"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", True),
        ("anthropic/unheard-of", "anthropic", True),
        ("openrouter/anthropic/claude-sonnet-4-5", "openai", True),
        ("openai/claude-sonnet-4-5", "openai", False),
        ("openai/gpt-4o", "openai", False),
        ("scripted/demo", "scripted", False),
    ],
)
def test_form_and_markers_follow_from_the_provider(model, form, markers):
    facts = model_facts(settings(model))
    assert (facts.form, facts.cache_markers) == (form, markers)


def test_reasoning_belongs_to_one_model_of_one_endpoint_in_the_openai_form():
    """C40: Q and R speak the same form, and only Q wants its reasoning back."""
    q = reasoning_form(settings("openai/q", "http://a/v1"))
    assert q != reasoning_form(settings("openai/r", "http://a/v1"))
    assert q != reasoning_form(settings("openai/q", "http://b/v1"))
    assert reasoning_form(settings("anthropic/claude-opus-5")) == reasoning_form(settings("anthropic/claude-sonnet-5"))
