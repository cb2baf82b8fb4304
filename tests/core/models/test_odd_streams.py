"""Odd streams of the OpenAI chat form, read by both clients from a real socket."""

from contextlib import asynccontextmanager

import pytest

from core.contracts.errors import ModelUnreachable
from core.contracts.messages import TextPart, ToolCall
from core.contracts.models import FinishReason
from core.models.direct import DirectClient
from core.models.litellm_client import LiteLLMClient
from tests.core.models.transcripts import answer_of, request, settings
from tests.platforms.model_script import Raw
from tests.platforms.openai_server import DONE, OpenAIServer, chunk, event, usage_chunk

A, B = '{"path":"a.md"}', '{"path":"b.md"}'
REPORTED = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.fixture(params=[DirectClient, LiteLLMClient])
def client_type(request):
    return request.param


@asynccontextmanager
async def served(client_type, *items):
    async with OpenAIServer([Raw(items)]) as server:
        client = client_type(resolve_key=lambda _: "key", mask=lambda text: text)
        try:
            yield client, request(settings("openai/m1", server.base_url))
        finally:
            await client.aclose()


def called(index, call_id, name, arguments):
    function = {"name": name, "arguments": arguments} if name is not None else {"arguments": arguments}
    piece = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in piece.items() if value is not None}


FORMS = {
    "A": [
        [called(0, "call_a", "read_file", "")], [called(1, "call_b", "read_file", "")],
        [called(0, None, None, A[:8])], [called(1, None, None, B[:8])],
        [called(0, None, None, A[8:])], [called(1, None, None, B[8:])],
    ],
    "B": [[called(0, "call_a", "read_file", A)], [called(0, "call_b", "read_file", B)]],
    "C": [
        [called(None, "call_a", "read_file", A[:8])], [called(None, "call_a", None, A[8:])],
        [called(None, "call_b", "read_file", B[:8])], [called(None, "call_b", None, B[8:])],
    ],
    "D": [
        [called(0, None, "read_file", A[:8])], [called(0, "call_a", None, A[8:])],
        [called(1, None, "read_file", B[:8])], [called(1, "call_b", None, B[8:])],
    ],
    "E": [
        [called(0, "call_a", "read_file", A[:8])], [called(0, "call_a", "read_file", A[8:])],
        [called(1, "call_b", "read_file", B[:8])], [called(1, "call_b", "read_file", B[8:])],
    ],
    "F": [[called(0, "call_a", "read_file", A), called(1, "call_b", "read_file", B)]],
    "F without index": [[called(None, "call_a", "read_file", A), called(None, "call_b", "read_file", B)]],
    "G": [[called(0, "", "read_file", A)], [called(1, "", "read_file", B)]],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
async def test_parallel_calls_are_told_apart_on_the_wire(client_type, form):
    """C31 A to G."""
    chunks = [chunk({"tool_calls": calls}) for calls in FORMS[form]]
    async with served(client_type, *chunks, chunk({}, "tool_calls"), DONE) as (client, model_request):
        _, finished = await answer_of(client, model_request)
    first, second = finished.parts
    assert isinstance(first, ToolCall)
    assert (first.name, first.arguments, first.fault) == ("read_file", A, None)
    assert (second.name, second.arguments, second.fault) == ("read_file", B, None)
    assert first.id
    assert second.id
    assert first.id != second.id
    assert finished.finish is FinishReason.TOOL_CALLS


async def test_a_last_chunk_without_choices_brings_the_usage(client_type):
    """C34 C."""
    items = [chunk({"content": "ok"}), chunk({}, "stop"), usage_chunk(REPORTED), DONE]
    async with served(client_type, *items) as (client, model_request):
        _, finished = await answer_of(client, model_request)
    assert finished.parts == (TextPart(text="ok"),)
    assert (finished.usage.input_tokens, finished.usage.output_tokens) == (10, 5)
    assert not finished.usage.estimated


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": None}, {}], ids=["missing", "null", "empty"])
async def test_missing_usage_is_estimated_and_marked(client_type, usage):
    """C34 D and E."""
    tail = [] if usage is None else [usage_chunk(usage)]
    items = [chunk({"content": "ok"}), chunk({}, "stop"), *tail, DONE]
    async with served(client_type, *items) as (client, model_request):
        _, finished = await answer_of(client, model_request)
    assert finished.parts == (TextPart(text="ok"),)
    assert finished.usage.estimated
    assert finished.usage.input_tokens > 0


async def test_empty_deltas_mean_nothing(client_type):
    """C34 F."""
    starts = [chunk({}), chunk(None), chunk({"role": "assistant"}), chunk({"content": None, "tool_calls": None})]
    async with served(client_type, *starts, chunk({"content": "ok"}), chunk({}, "stop"), DONE) as (client, asked):
        _, finished = await answer_of(client, asked)
    assert finished.parts == (TextPart(text="ok"),)


async def test_a_blank_answer_is_an_empty_one(client_type):
    """C34 G."""
    async with served(client_type, chunk({"content": " \n"}), chunk({}, "stop"), DONE) as (client, model_request):
        _, finished = await answer_of(client, model_request)
    assert finished.parts == ()
    assert finished.finish is FinishReason.STOP


@pytest.mark.parametrize(
    "items",
    [
        [chunk({"content": "x"}), DONE],
        [chunk({"tool_calls": [called(0, "c1", "write_file", '{"path":"a')]})],
        [chunk({"content": "x"}), "data: {broken\n\n"],
        [chunk({"content": "x"}), event({"error": {"message": "boom", "code": 500}})],
        [],
    ],
    ids=["done without finish", "inside a call", "broken event", "error event", "nothing"],
)
async def test_a_stream_that_breaks_off_is_unreachable(client_type, items):
    """C34 A and B."""
    async with served(client_type, *items) as (client, model_request):
        with pytest.raises(ModelUnreachable):
            await answer_of(client, model_request)


async def test_a_stream_that_ends_behind_its_finish_is_whole(client_type):
    async with served(client_type, chunk({"content": "ok"}), chunk({}, "stop")) as (client, model_request):
        _, finished = await answer_of(client, model_request)
    assert finished.parts == (TextPart(text="ok"),)


async def test_half_an_emoji_in_each_of_two_chunks_is_one_character(client_type):
    """C80."""
    items = [chunk({"content": "a\ud83c"}), chunk({"content": "\udf78"}), chunk({}, "stop"), DONE]
    async with served(client_type, *items) as (client, model_request):
        _, finished = await answer_of(client, model_request)
    assert finished.parts == (TextPart(text="a\U0001f378"),)
