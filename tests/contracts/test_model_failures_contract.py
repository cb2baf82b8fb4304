"""How every client that reaches a provider reports failures, each translated once and never retried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.contracts.clock import FakeClock
from core.contracts.errors import (
    ModelBusy,
    ModelImageRefused,
    ModelOverflow,
    ModelPayloadTooLarge,
    ModelRejected,
    ModelUnreachable,
)
from tests.contracts.model_ways import SECRET, WAYS
from tests.core.models.transcripts import answer_of, request, settings
from tests.platforms import anthropic_server, openai_server
from tests.platforms.model_script import Raw, Status


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "authentication_error", ModelRejected),
        (402, "payment_required", ModelRejected),
        (403, "permission_error", ModelRejected),
        (404, "not_found_error", ModelRejected),
        (400, "invalid_request_error", ModelRejected),
        (408, "timeout", ModelUnreachable),
        (500, "api_error", ModelUnreachable),
        (502, "api_error", ModelUnreachable),
        (503, "api_error", ModelUnreachable),
        (429, "rate_limit_error", ModelBusy),
        (413, "request_too_large", ModelPayloadTooLarge),
    ],
)
async def test_a_status_becomes_one_model_error_after_exactly_one_request(way, status, kind, expected):
    """C37 F: exactly one request."""
    async with way.open(way.error(status, kind, "it did not work")) as (client, server, model):
        with pytest.raises(expected) as caught:
            await answer_of(client, request(model))
    assert type(caught.value) is expected
    assert len(server.requests) == 1


async def test_overload_is_busy(way):
    """C37 A: litellm says 500 where Anthropic said 529."""
    async with way.open(way.error(529, "overloaded_error", "Overloaded")) as (client, server, model):
        with pytest.raises(ModelBusy):
            await answer_of(client, request(model))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("1.5", 1.5), ("Wed, 21 Oct 2026 07:28:00 GMT", 20), ("86400", 86400), ("-1", None), ("soon", None)],
)
async def test_the_wish_to_wait_is_read(way, header, seconds):
    """C37 B to E."""
    clock = FakeClock(datetime(2026, 10, 21, 7, 27, 40, tzinfo=UTC))
    refusal = way.error(429, "rate_limit_error", "slow down", {"Retry-After": header})
    async with way.open(refusal, clock=clock) as (client, _, model):
        with pytest.raises(ModelBusy) as caught:
            await answer_of(client, request(model))
    assert caught.value.retry_after == (None if seconds is None else timedelta(seconds=seconds))


async def test_nobody_listening_is_unreachable(way):
    async with way.open() as (client, _, model):
        gone = settings(model.model, "http://127.0.0.1:9/v1")
        with pytest.raises(ModelUnreachable):
            await answer_of(client, request(gone))


async def test_an_error_inside_a_stream_is_translated(way):
    tail = (
        openai_server.event({"error": {"message": "Overloaded", "code": 503}})
        if way.is_openai
        else anthropic_server.event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    )
    async with way.open(Raw([*way.broken_off("x").items, tail])) as (client, _, model):
        with pytest.raises(ModelBusy):
            await answer_of(client, request(model))


async def test_error_texts_are_masked_and_bounded(way):
    refusal = way.error(400, "invalid_request_error", f"bad word {SECRET} " + "x" * 5_000)
    async with way.open(refusal) as (client, _, model):
        with pytest.raises(ModelRejected) as caught:
            await answer_of(client, request(model))
    assert "[secret]" in caught.value.detail
    assert SECRET not in str(caught.value)
    assert len(caught.value.detail) <= 500


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "request (144055 tokens) exceeds the available context size (131072 tokens)",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "The total length of all messages is too long.",
    "Input is too long for requested model.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Sorry, the model's context length is only 131072 tokens, try again",
    "Context Window exceeded for given call",
]


@pytest.mark.parametrize("wording", OVERFLOWS)
async def test_every_wording_of_too_long_is_an_overflow(way, wording):
    """C36 1 to 11 (10 is the status 413 above)."""
    async with way.open(way.error(400, "invalid_request_error", wording)) as (client, server, model):
        with pytest.raises(ModelOverflow):
            await answer_of(client, request(model))
    assert len(server.requests) == 1


async def test_a_plain_text_413_is_a_payload_that_is_too_large(way):
    """C36 10."""
    refusal = Status(413, "Request Entity Too Large", content_type="text/plain")
    async with way.open(refusal) as (client, _, model):
        with pytest.raises(ModelPayloadTooLarge):
            await answer_of(client, request(model))


@pytest.mark.parametrize(
    ("status", "wording", "expected"),
    [
        (413, "Request exceeds the maximum size", ModelPayloadTooLarge),
        (413, "maximum context length is 10", ModelOverflow),
        (400, "Request payload size exceeds the limit: 20971520 bytes.", ModelPayloadTooLarge),
        (400, "Too much media: 0 document pages + 103 images > 100", ModelPayloadTooLarge),
        (400, "too many images and documents: 120 + 0 > 100", ModelPayloadTooLarge),
        (400, "At most 5 image(s) may be provided in one request.", ModelPayloadTooLarge),
        (400, "request contains 52 images, exceeding the maximum of 50 allowed per request", ModelPayloadTooLarge),
        (
            400,
            "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
            ModelPayloadTooLarge,
        ),
        (400, "At least one of the image dimensions exceed max allowed size: 8000 pixels", ModelImageRefused),
        (400, "messages.1.content.2: image exceeds 5 MB maximum: 6275800 bytes > 5242880 bytes", ModelImageRefused),
        (400, "Could not process image", ModelImageRefused),
        (400, "The image data you provided does not represent a valid image.", ModelImageRefused),
        (400, "You uploaded an unsupported image.", ModelImageRefused),
        (404, "No endpoints found that support image input", ModelImageRefused),
        (404, "model: no-such-image-model", ModelRejected),
        (429, "too many images per minute", ModelBusy),
    ],
)
async def test_what_is_wrong_with_images_is_told_apart(way, status, wording, expected):
    async with way.open(way.error(status, "invalid_request_error", wording)) as (client, _, model):
        with pytest.raises(expected) as caught:
            await answer_of(client, request(model))
    assert type(caught.value) is expected


@pytest.mark.parametrize(
    ("status", "wording", "expected"),
    [
        (400, "max_tokens must be at most 4096", ModelRejected),
        (429, "rate limit: 30000 input tokens per minute", ModelBusy),
        (400, "rate limit: 30000 input tokens per minute", ModelBusy),
        (400, "invalid value for context", ModelRejected),
    ],
)
async def test_wordings_that_only_look_like_an_overflow_are_none(way, status, wording, expected):
    """C36, the three that must not match."""
    async with way.open(way.error(status, "invalid_request_error", wording)) as (client, _, model):
        with pytest.raises(expected):
            await answer_of(client, request(model))
