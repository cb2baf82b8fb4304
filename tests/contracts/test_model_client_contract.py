"""What every `ModelClient` promises; those that reach a provider against strict servers on real sockets."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

import pytest

from core.contracts.errors import ModelUnreachable
from core.contracts.events import ReasoningDelta, TextDelta
from core.contracts.messages import ReasoningPart, ReminderPart, ReturnOutcome, TextPart, ToolCall
from core.contracts.models import FinishReason, StepFinished
from core.models.arguments import LIMIT_REACHED
from core.models.demo import DemoModel
from core.models.faulty import FaultyModel
from core.models.litellm_client import LiteLLMClient
from core.models.profiles import reasoning_form
from core.models.routing import ModelRouter
from core.models.scripted import ScriptedModel, asks, tool_call
from tests.contracts.model_ways import BOUND, WAYS
from tests.core.models.transcripts import READ_FILE, answer_of, assistant, call, request, result, settings, user
from tests.platforms.model_script import Answer, Call, Raw


async def collect(events, seen):
    async for event in events:
        seen.append(event)


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


async def test_text_arrives_in_pieces_and_whole_at_the_end(way):
    async with way.open(Answer(text=["Hel", "lo ", "\u00e4\U0001f378"])) as (client, _, model):
        deltas, finished = await answer_of(client, request(model))
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Hello \u00e4\U0001f378"
    assert len(deltas) == 3
    assert finished.parts == (TextPart(text="Hello \u00e4\U0001f378"),)
    assert finished.finish is FinishReason.STOP


async def test_the_first_piece_is_seen_before_the_second_is_sent(way):
    gate = asyncio.Event()
    async with asyncio.timeout(BOUND), way.open(Answer(text=["one", "two"], gates={1: gate})) as (client, _, model):
        events = client.stream(request(model))
        assert await anext(events) == TextDelta(text="one")
        gate.set()
        rest = [event async for event in events]
    assert rest[0] == TextDelta(text="two")


async def test_parallel_calls_keep_order_ids_and_arguments(way):
    calls = (Call("call_a", "read_file", '{"path":"a.md"}'), Call("call_b", "read_file", '{"path": "b.md"}'))
    async with way.open(Answer(text="Reading.", calls=calls)) as (client, _, model):
        _, finished = await answer_of(client, request(model))
    assert finished.parts == (
        TextPart(text="Reading."),
        ToolCall(id="call_a", name="read_file", arguments='{"path":"a.md"}'),
        ToolCall(id="call_b", name="read_file", arguments='{"path":"b.md"}'),
    )
    assert finished.finish is FinishReason.TOOL_CALLS


async def test_an_id_that_the_conversation_already_has_is_replaced(way):
    reply = Answer(calls=[Call("call_0", "read_file", '{"path":"b.md"}')])
    async with way.open(reply) as (client, _, model):
        earlier = (user("a"), assistant(call("call_0")), result("call_0", "A"), user("b"))
        _, finished = await answer_of(client, request(model, *earlier))
    assert finished.parts[0].id != "call_0"


async def test_a_cut_stream_is_unreachable_and_never_an_answer(way):
    """C34 A: end of file without a finish, with and without a broken connection."""
    for cut in (False, True):
        async with way.open(way.broken_off("The first step", " is to", cut=cut)) as (client, _, model):
            seen = []
            with pytest.raises(ModelUnreachable):
                await collect(client.stream(request(model)), seen)
        assert "".join(event.text for event in seen) in "The first step is to"


async def test_a_call_cut_by_the_output_limit_carries_a_fault(way):
    """C33 A and D: whole or cut, no call of a response that hit the limit may run."""
    calls = (Call("c1", "read_file", '{"path":"a.md"}'), Call("c2", "read_file", '{"path":"r.md","content":"li'))
    finish = "length" if way.is_openai else "max_tokens"
    async with way.open(Answer(calls=calls, finish=finish)) as (client, _, model):
        _, finished = await answer_of(client, request(model))
    assert finished.finish is FinishReason.LENGTH
    assert [part.id for part in finished.parts] == ["c1", "c2"]
    assert all(LIMIT_REACHED in part.fault for part in finished.parts)


async def test_broken_arguments_become_a_fault_that_the_next_request_survives(way):
    """C30: the stored message is accepted by a strict provider."""
    broken = Answer(calls=[Call("c1", "read_file", '{"path":"a.md","content":"he said "hi""}')])
    async with way.open(broken, Answer(text="ok")) as (client, server, model):
        _, first = await answer_of(client, request(model))
        (bad,) = first.parts
        transcript = (user("hello"), assistant(*first.parts), result("c1", bad.fault))
        _, second = await answer_of(client, request(model, *transcript))
    assert bad.arguments == "{}"
    assert "not valid JSON" in bad.fault
    assert second.parts == (TextPart(text="ok"),)
    assert [seen.refusal for seen in server.requests] == ["", ""]


async def test_silence_ends_after_the_idle_time_and_the_client_goes_on(way):
    """C34 H."""
    never = asyncio.Event()
    silent = Raw([*way.broken_off("x").items, never])
    async with way.open(silent, Answer(text="ok"), idle=timedelta(seconds=0.2)) as (client, _, model):
        async with asyncio.timeout(BOUND):
            with pytest.raises(ModelUnreachable):
                await answer_of(client, request(model))
            _, finished = await answer_of(client, request(model))
    assert finished.parts == (TextPart(text="ok"),)


async def test_closing_the_iterator_closes_the_connection(way):
    never = asyncio.Event()
    async with way.open(Answer(text=["one", "two"], gates={1: never})) as (client, server, model):
        async with asyncio.timeout(BOUND):
            events = client.stream(request(model))
            await anext(events)
            await events.aclose()
            await server.requests[0].closed.wait()


async def test_cancelling_the_reader_closes_the_connection(way):
    never = asyncio.Event()
    async with way.open(Answer(text=["one", "two"], gates={1: never})) as (client, server, model):
        first = asyncio.Event()

        async def read():
            async with aclosing(client.stream(request(model))) as events:
                async for _ in events:
                    first.set()

        async with asyncio.timeout(BOUND):
            reader = asyncio.ensure_future(read())
            await first.wait()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            await server.requests[0].closed.wait()


async def test_two_streams_run_at_once(way):
    gate = asyncio.Event()
    script = (Answer(text=["one", "two"], gates={1: gate}), Answer(text="quick"))
    async with way.open(*script) as (client, _, model):
        async with asyncio.timeout(BOUND):
            slow = client.stream(request(model))
            await anext(slow)
            _, quick = await answer_of(client, request(model))
            gate.set()
            rest = [event async for event in slow]
    assert quick.parts == (TextPart(text="quick"),)
    assert rest[-1].parts == (TextPart(text="onetwo"),)


async def test_reported_usage_is_taken_and_priced(way):
    usage = (
        {"prompt_tokens": 1520, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1000}}
        if way.is_openai
        else {
            "input_tokens": 20,
            "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 500,
            "output_tokens": 1,
        }
    )
    async with way.open(Answer(text="ok", usage=usage)) as (client, _, model):
        _, finished = await answer_of(client, request(model))
    found = finished.usage
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (1520, 1000, 5)
    assert found.cache_write_tokens == (0 if way.is_openai else 500)
    assert not found.estimated
    expected = None if way.is_openai else (20 * 3 + 1000 * 0.3 + 500 * 3.75 + 5 * 15) / 1e6
    assert found.cost_usd == (None if expected is None else pytest.approx(expected))


async def test_reasoning_comes_with_what_is_needed_to_send_it_back(way):
    reply = Answer(reasoning="Let me think.", text="ok")
    async with way.open(reply) as (client, _, model):
        deltas, finished = await answer_of(client, request(model))
    assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == "Let me think."
    signature = None if way.is_openai else "sig1"
    expected = ReasoningPart(text="Let me think.", form=reasoning_form(model), signature=signature)
    assert finished.parts == (expected, TextPart(text="ok"))


LONG = (
    user("a"),
    assistant("Two at once.", call("c1"), call("functions.read:0")),
    result("c1", "A"),
    result("functions.read:0", "", ReturnOutcome.ERROR),
    user("steering", ReminderPart(kind="time", text="noon")),
    assistant(" "),
    user(" "),
    user("again"),
)


@pytest.mark.parametrize("tools", [(READ_FILE,), ()], ids=["tools", "no tools"])
async def test_a_valid_transcript_is_accepted_by_a_strict_provider(way, tools):
    async with way.open() as (client, server, model):
        _, finished = await answer_of(client, request(model, *LONG, tools=tools))
    assert finished.parts == (TextPart(text="ok"),)
    assert server.requests[0].refusal == ""


async def test_a_provider_that_requires_reasoning_gets_it_back(way):
    """C40 P and Q."""
    strict = {"needs_reasoning": True} if way.is_openai else {"needs_thinking": True}
    first_reply = Answer(reasoning="Hm.", calls=[Call("c1", "read_file", '{"path":"a.md"}')])
    async with way.open(first_reply, Answer(text="done"), **strict) as (client, server, model):
        _, first = await answer_of(client, request(model))
        transcript = (user("hello"), assistant(*first.parts), result("c1", "A"))
        _, second = await answer_of(client, request(model, *transcript))
    assert second.parts == (TextPart(text="done"),)
    assert [seen.refusal for seen in server.requests] == ["", ""]


def local_clients():
    call_step = asks(tool_call("c1", "shell"), text="I run it.")
    demo = DemoModel()
    return {
        "scripted": ScriptedModel([call_step]),
        "faulty": FaultyModel(ScriptedModel([call_step]), []),
        "demo": demo,
        "router": ModelRouter(direct=demo, litellm=LiteLLMClient(resolve_key=str, mask=str), scripted={"demo": demo}),
    }


@pytest.mark.parametrize("name", local_clients())
async def test_local_clients_end_with_exactly_one_finished_step(name):
    client = local_clients()[name]
    model_request = request(settings("scripted/demo"), user("list files"), tools=(READ_FILE,))
    events = [event async for event in client.stream(model_request)]
    assert [type(event) for event in events[:-1]] == [TextDelta] * (len(events) - 1)
    finished = events[-1]
    assert isinstance(finished, StepFinished)
    text = "".join(delta.text for delta in events[:-1])
    assert finished.parts[0] == TextPart(text=text)
    assert client.facts(model_request.settings).form == "scripted"
