"""Counting and pricing."""

import pytest

from core.contracts.ids import CallId
from core.contracts.messages import ImagePart, ReturnOutcome, Role, TextPart, ToolReturn
from core.contracts.runs import Usage
from core.models.fragments import UsageFragment
from core.models.profiles import model_facts
from core.models.usage import IMAGE_TOKENS, cost_usd, step_usage
from tests.core.models.transcripts import assistant, call, request, settings, user

CLAUDE = settings("anthropic/claude-sonnet-4-5")


def test_silence_about_usage_gives_marked_estimates():
    """C34 D and E."""
    model_request = request(CLAUDE, user("x" * 4_000))
    parts = (TextPart(text="y" * 400),)
    usage = step_usage(UsageFragment(), request=model_request, parts=parts, facts=model_facts(CLAUDE))
    assert usage.estimated
    assert 1_000 < usage.input_tokens < 1_500
    assert usage.output_tokens == 101
    assert usage.cost_usd > 0


@pytest.mark.parametrize(("model", "expected"), [(CLAUDE, 3 * IMAGE_TOKENS), (settings("openai/blind"), 0)])
def test_an_estimate_counts_images_where_they_are_seen(model, expected):
    image = ImagePart(attachment_id="file-1", media_type="image/png")
    shown = (Role.TOOL, (ToolReturn(call_id=CallId("c1"), parts=(image,), outcome=ReturnOutcome.OK),))
    contents = (user("a", image, image), assistant(call("c1")), shown)
    estimated = step_usage(
        UsageFragment(), request=request(model, *contents), parts=(), facts=model_facts(model)
    ).input_tokens
    assert 0 <= estimated - expected < 400


def test_half_a_report_is_still_an_estimate():
    reported = UsageFragment(input_tokens=7)
    usage = step_usage(reported, request=request(CLAUDE), parts=(), facts=model_facts(CLAUDE))
    assert usage.estimated
    assert usage.input_tokens == 7


def test_cached_tokens_cost_less_and_newly_cached_ones_more():
    usage = Usage(input_tokens=1_520, cached_tokens=1_000, cache_write_tokens=500, output_tokens=10)
    expected = (20 * 3.0 + 1_000 * 0.3 + 500 * 3.75 + 10 * 15.0) / 1_000_000
    assert cost_usd(usage, model_facts(CLAUDE)) == pytest.approx(expected)


def test_an_unknown_price_is_unknown_and_not_zero():
    assert cost_usd(Usage(input_tokens=10), model_facts(settings("openai/m1"))) is None
