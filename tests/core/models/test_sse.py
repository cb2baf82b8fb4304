"""Server-sent events in any cut."""

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from core.models.sse import event_data

STREAM = (
    ': comment\n\nevent: ping\ndata: {"type":"ping"}\n\ndata: one\r\n\r\ndata:two\ndata: lines\n\n'
    "id: 7\ndata: \u00e4\U0001f378\n\ndata: [DONE]\n\ndata: never finished"
).encode()
EVENTS = ['{"type":"ping"}', "one", "two\nlines", "\u00e4\U0001f378", "[DONE]"]


async def read(chunks):
    async def source():
        for chunk in chunks:
            yield chunk

    return [data async for data in event_data(source())]


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
async def test_every_cut_of_the_bytes_gives_the_same_events(cuts):
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    assert await read(chunks) == EVENTS


async def test_single_bytes_give_the_same_events():
    assert await read([bytes([byte]) for byte in STREAM]) == EVENTS


async def test_bytes_that_are_no_text_are_replaced():
    """C80."""
    (data,) = await read([b'data: {"a":"\xff\xfe"}\n\n'])
    assert json.loads(data) == {"a": "\ufffd\ufffd"}
