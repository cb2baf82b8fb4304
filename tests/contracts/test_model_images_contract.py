"""How images reach providers, whichever client sends them: whole, the same every time, or as words."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from core.contracts.ids import CallId
from core.contracts.messages import ImagePart, ReturnOutcome, Role, TextPart, ToolReturn
from core.models.usage import IMAGE_TOKENS
from tests.contracts.model_ways import KEY, WAYS
from tests.core.models.transcripts import answer_of, assistant, call, request, result, settings, user
from tests.core.tools.image_samples import EVERY_KIND, PNG
from tests.platforms.model_images import blocks_of, images_in
from tests.platforms.model_script import Answer

PHOTO = ImagePart(attachment_id="file-1", media_type="image/png")
GONE = ImagePart(attachment_id="file-9", media_type="image/png")
SHOWN = (
    Role.TOOL,
    (ToolReturn(call_id=CallId("c1"), parts=(TextPart(text="8 x 5"), PHOTO), outcome=ReturnOutcome.OK),),
)
TURNS = (
    [user(PHOTO, "What is this?")],
    [assistant("A dot."), user("And this?", GONE)],
    [assistant("Let me look.", call("c1")), SHOWN],
    [assistant(call("c2"), call("c3")), result("c2", "B"), result("c3", "C"), user("steer", PHOTO)],
    [assistant("Done."), user("thanks")],
)


async def stored(attachment_id):
    return PNG if attachment_id == "file-1" else None


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@asynccontextmanager
async def opened(way, *script, source=stored):
    """Open a client of a model that sees, with stored images behind it."""
    async with way.server(script or (Answer(text="ok"),), key=KEY) as server:
        client = way.client(resolve_key=lambda _: KEY, mask=str, images=source)
        try:
            model = settings("openai/gpt-4o" if way.is_openai else way.model, server.base_url)
            yield client, server, model
        finally:
            await client.aclose()


@pytest.mark.parametrize("media_type", EVERY_KIND)
async def test_the_bytes_of_an_image_reach_the_provider(way, media_type):
    async def source(_):
        return EVERY_KIND[media_type]

    async with opened(way, source=source) as (client, server, model):
        part = ImagePart(attachment_id="file-1", media_type=media_type)
        _, finished = await answer_of(client, request(model, user(part, "What is this?")))
    assert finished.parts == (TextPart(text="ok"),)
    assert images_in(server.bodies[0]) == [(media_type, EVERY_KIND[media_type])]


async def test_each_request_with_images_is_the_one_before_and_a_tail(way):
    """Invariant 4, on the wire, with images of people and of tools."""
    async with opened(way) as (client, server, model):
        contents = []
        for appended in TURNS:
            contents += appended
            await answer_of(client, request(model, *contents))
    assert [seen.refusal for seen in server.requests] == [""] * len(TURNS)
    sent = [blocks_of(body) for body in server.bodies]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
        assert len(after) > len(before)
    assert [len(images_in(body)) for body in server.bodies] == [1, 1, 2, 3, 3]
    assert set(images_in(server.bodies[-1])) == {("image/png", PNG)}


async def test_an_image_that_is_no_longer_stored_is_told_in_words(way):
    async with opened(way) as (client, server, model):
        await answer_of(client, request(model, user(GONE, "And this?")))
    assert images_in(server.bodies[0]) == []
    assert "[image file-9: no longer stored]" in json.dumps(server.bodies[0])


async def test_a_model_that_sees_none_is_told_in_words_and_no_file_is_read(way):
    asked = []

    async def source(attachment_id):
        asked.append(attachment_id)
        return PNG

    async with opened(way, source=source) as (client, server, model):
        blind = replace(model, model="openai/m1" if way.is_openai else "anthropic/claude-of-tomorrow")
        await answer_of(client, request(blind, user(PHOTO, "What is this?")))
    assert asked == []
    assert "[image file-1: this model sees no images]" in json.dumps(server.bodies[0])


async def test_an_estimate_counts_images(way):
    unreported = {"prompt_tokens": None} if way.is_openai else {"input_tokens": None}
    async with opened(way, Answer(text="ok", usage=unreported)) as (client, _, model):
        _, plain = await answer_of(client, request(model, user("hi")))
        _, seeing = await answer_of(client, request(model, user("hi", PHOTO, PHOTO)))
    assert plain.usage.estimated
    assert 0 <= seeing.usage.input_tokens - plain.usage.input_tokens - 2 * IMAGE_TOKENS < 100
