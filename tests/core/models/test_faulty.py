"""The failing client."""

import asyncio

import pytest

from core.contracts.errors import ModelBusy, ModelUnreachable
from core.contracts.messages import TextPart
from core.models.faulty import Fault, FaultyModel, cut, hang
from core.models.scripted import ScriptedModel, says
from tests.core.models.transcripts import answer_of, request, settings

SCRIPTED = settings("scripted/test")


async def deltas_until_error(model, error):
    seen = []
    with pytest.raises(error):
        await collect(model.stream(request(SCRIPTED)), seen)
    return seen


async def collect(events, seen):
    while True:
        delta = await anext(events)
        seen.append(delta.text)


async def test_each_stream_takes_the_next_fault_and_then_all_is_well():
    inner = ScriptedModel([says("a", "b", "c")] * 4)
    model = FaultyModel(inner, [Fault(error=ModelBusy("slow")), cut(after=2), None])
    assert await deltas_until_error(model, ModelBusy) == []
    assert len(inner.requests) == 0
    assert await deltas_until_error(model, ModelUnreachable) == ["a", "b"]
    for _ in range(2):
        _, finished = await answer_of(model, request(SCRIPTED))
        assert finished.parts == (TextPart(text="abc"),)


async def test_a_cut_beyond_the_deltas_still_takes_the_finish():
    model = FaultyModel(ScriptedModel([says("a")]), [cut(after=9)])
    assert await deltas_until_error(model, ModelUnreachable) == ["a"]


@pytest.mark.parametrize("after", [0, 1])
async def test_a_hanging_stream_ends_when_its_reader_is_cancelled(after):
    model = FaultyModel(ScriptedModel([says("a", "b")]), [hang(after=after)])
    reader = asyncio.ensure_future(answer_of(model, request(SCRIPTED)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not reader.done()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
