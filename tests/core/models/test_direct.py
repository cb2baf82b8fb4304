"""The direct client's own ways over HTTP."""

import asyncio
import json
from base64 import b64encode

import pytest

from core.contracts.agents import ModelSettings
from core.contracts.errors import ModelRejected, ModelUnreachable
from core.contracts.messages import ImagePart, ReasoningPart, TextPart
from core.models.direct import DirectClient
from core.models.wire import endpoint
from tests.core.models.transcripts import answer_of, assistant, call, request, result, settings, thought, user
from tests.core.tools.image_samples import PNG
from tests.platforms.anthropic_server import AnthropicServer, block, end, start
from tests.platforms.model_script import Answer, Raw, Status
from tests.platforms.openai_server import DONE, OpenAIServer, chunk


@pytest.fixture
async def client():
    made = DirectClient(resolve_key=lambda _: "key", mask=lambda text: text)
    yield made
    await made.aclose()


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("", "/v1/messages", "https://d/v1/messages"),
        ("http://h", "/v1/messages", "http://h/v1/messages"),
        ("http://h/", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v1", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v1/messages", "/v1/messages", "http://h/v1/messages"),
        ("http://h/v1", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "/chat/completions", "http://h/v1/chat/completions"),
    ],
)
def test_the_address_is_found_however_the_base_is_written(base, path, url):
    model = ModelSettings(name="m", model="openai/m1", api_base=base)
    assert endpoint(model, default_base="https://d", path=path) == url


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Status(200, '{"error":{"message":"no stream here"}}'), ModelUnreachable),
        (Status(200, '{"choices":[]}'), ModelUnreachable),
        (Status(302, "moved", {"location": "/elsewhere"}, "text/html"), ModelRejected),
        (Status(200, "<html>Sign in</html>", content_type="text/html"), ModelUnreachable),
    ],
    ids=["error with 200", "no stream", "redirect", "a page"],
)
async def test_an_answer_that_is_no_stream_is_an_error(client, reply, expected):
    async with OpenAIServer([reply]) as server:
        with pytest.raises(expected):
            await answer_of(client, request(settings("openai/m1", server.base_url)))


@pytest.mark.parametrize("base", ["ftp://h/v1", "no address", "http://[::1/v1"])
async def test_an_address_that_cannot_be_used_is_rejected(client, base):
    with pytest.raises(ModelRejected):
        await answer_of(client, request(settings("openai/m1", base)))


async def test_connections_are_used_again_and_the_client_may_be_closed_in_between(client):
    async with OpenAIServer([Answer(text="ok")]) as server:
        model_request = request(settings("openai/m1", server.base_url))
        for _ in range(3):
            _, finished = await answer_of(client, model_request)
        await client.aclose()
        _, finished = await answer_of(client, model_request)
    assert finished.parts == (TextPart(text="ok"),)
    assert len(server.requests) == 4
    assert server.connections == 2


@pytest.mark.parametrize("cut", [False, True], ids=["held open", "broken"])
async def test_what_follows_the_end_of_an_answer_does_not_matter(client, cut):
    behind = [] if cut else [asyncio.Event()]
    items = [chunk({"content": "ok"}), chunk({}, "stop"), DONE, *behind]
    async with asyncio.timeout(60), OpenAIServer([Raw(items, cut=cut)]) as server:
        _, finished = await answer_of(client, request(settings("openai/m1", server.base_url)))
    assert finished.parts == (TextPart(text="ok"),)


async def test_the_same_request_is_the_same_bytes(client):
    async with OpenAIServer() as server:
        model_request = request(settings("openai/m1", server.base_url))
        await answer_of(client, model_request)
        await answer_of(client, model_request)
    assert server.requests[0].raw == server.requests[1].raw


async def test_a_key_is_sent_only_if_there_is_one():
    client = DirectClient(resolve_key=lambda _: None, mask=lambda text: text)
    async with OpenAIServer() as server:
        await answer_of(client, request(settings("openai/m1", server.base_url)))
    await client.aclose()
    assert "Authorization" not in server.requests[0].headers


async def test_images_are_read_for_models_that_see():
    async def source(attachment_id):
        return PNG

    client = DirectClient(resolve_key=lambda _: "key", mask=lambda text: text, images=source)
    image = ImagePart(attachment_id="att-1", media_type="image/png")
    async with OpenAIServer() as server:
        for model in ("openai/gpt-4o", "openai/blind"):
            await answer_of(client, request(settings(model, server.base_url), user(image)))
    await client.aclose()
    seeing, blind = (body["messages"][1]["content"][0] for body in server.bodies)
    assert seeing["image_url"]["url"] == f"data:image/png;base64,{b64encode(PNG).decode()}"
    assert blind["text"] == "[image att-1: this model sees no images]"


async def test_interleaved_thinking_keeps_its_places(client):
    """C40: signed and redacted blocks, text and call in the model's order, and back again."""
    items = [
        start(),
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": "Hm."}, {"type": "signature_delta", "signature": "sig1"},
        ]),
        *block(1, {"type": "redacted_thinking", "data": "ZZ"}, []),
        *block(2, {"type": "text", "text": ""}, [{"type": "text_delta", "text": "So."}]),
        *block(3, {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}, []),
        *end("tool_use"),
    ]  # fmt: skip
    async with AnthropicServer([Raw(items), Answer(text="done")], needs_thinking=True) as server:
        model = settings("anthropic/claude-sonnet-4-5", server.base_url)
        _, first = await answer_of(client, request(model))
        transcript = (user("hello"), assistant(*first.parts), result("toolu_1", "A"))
        await answer_of(client, request(model, *transcript))
    assert first.parts[:2] == (
        ReasoningPart(text="Hm.", form="anthropic", signature="sig1"),
        ReasoningPart(text="", form="anthropic", redacted="ZZ"),
    )
    assert [block["type"] for block in server.bodies[1]["messages"][1]["content"]] == [
        "thinking", "redacted_thinking", "text", "tool_use",
    ]  # fmt: skip


async def test_a_switch_of_provider_is_accepted_by_every_strict_server(client):
    """C40 R: what one provider made never troubles the next."""
    transcript = (
        user("a"),
        assistant(thought("Q.", "openai:openai/q"), thought("P.", "anthropic", "sig1"), call("functions.read:0")),
        result("functions.read:0", ""),
        assistant(thought("only", "openai:openai/q")),
        user(" "),
    )
    async with OpenAIServer() as r, AnthropicServer() as p:
        for model in (settings("openai/r", r.base_url), settings("anthropic/claude-sonnet-4-5", p.base_url)):
            await answer_of(client, request(model, *transcript))
    assert [seen.refusal for seen in (*r.requests, *p.requests)] == ["", ""]
    assert "reasoning" not in json.dumps(r.bodies)
