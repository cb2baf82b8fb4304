"""The scripted model."""

import asyncio

import pytest

from core.contracts.errors import ModelBusy
from core.contracts.events import TextDelta
from core.contracts.messages import TextPart
from core.contracts.models import FinishReason
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from tests.core.models.transcripts import answer_of, request, settings

SCRIPTED = settings("scripted/test")


async def test_steps_are_played_in_order_and_requests_kept():
    call = tool_call("c1", "read_file", '{"path":"a.md"}')
    model = ScriptedModel([asks(call, text="Reading."), ModelBusy("slow"), lambda asked: says(asked.system)])
    first_request, last_request = request(SCRIPTED), request(SCRIPTED, system="Echo me.")
    _, first = await answer_of(model, first_request)
    with pytest.raises(ModelBusy):
        await answer_of(model, first_request)
    _, last = await answer_of(model, last_request)
    assert first.parts == (TextPart(text="Reading."), call)
    assert first.finish is FinishReason.TOOL_CALLS
    assert last.parts == (TextPart(text="Echo me."),)
    assert model.requests == [first_request, first_request, last_request]


async def test_a_request_beyond_the_script_is_an_error_of_the_script():
    with pytest.raises(AssertionError, match="request 1"):
        await answer_of(ScriptedModel([]), request(SCRIPTED))


async def test_a_gate_holds_the_stream_behind_its_first_delta():
    gate = asyncio.Event()
    stream = ScriptedModel([ScriptedStep(pieces=("a", "b"), gate=gate)]).stream(request(SCRIPTED))
    assert await anext(stream) == TextDelta(text="a")
    waiting = asyncio.ensure_future(anext(stream))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    assert await waiting == TextDelta(text="b")
    await stream.aclose()
