"""The litellm client's own ways; what all clients share is in the contract suite."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.contracts.errors import ModelRejected
from core.contracts.messages import TextPart
from core.models.assemble import Assembler
from core.models.fragments import FinishFragment
from core.models.litellm_client import LiteLLMClient, _call_fragments
from tests.core.models.transcripts import answer_of, assistant, call, request, result, settings, thought, user
from tests.platforms.anthropic_server import AnthropicServer
from tests.platforms.model_script import Answer
from tests.platforms.openai_server import OpenAIServer

ROOT = Path(__file__).parents[3]


def client():
    return LiteLLMClient(resolve_key=lambda _: "key", mask=lambda text: text)


async def body_sent(server_type, model, *contents):
    made = client()
    async with server_type([Answer(text="ok")]) as server:
        await answer_of(made, request(settings(model, server.base_url), *contents))
    await made.aclose()
    return server.bodies[0]


def test_importing_and_constructing_loads_nothing_and_the_environment_stays_clean(tmp_path):
    (tmp_path / ".env").write_text("FROM_DOT_ENV=1\n")
    script = """
import asyncio, logging, os, sys
from core.models.litellm_client import LiteLLMClient
client = LiteLLMClient(resolve_key=lambda _: None, mask=str)
before = "litellm" in sys.modules
asyncio.run(client.warm())
handlers = [h for n in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy") for h in logging.getLogger(n).handlers]
print(before, "litellm" in sys.modules, "FROM_DOT_ENV" in os.environ, len(handlers))
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout.split() == ["False", "True", "False", "0"]
    assert run.stderr == ""


async def test_warming_twice_at_once_loads_once():
    made = client()
    await asyncio.gather(made.warm(), made.warm())
    assert "litellm" in sys.modules


async def test_nothing_is_printed_or_logged_on_an_error(capfd, caplog):
    made = client()
    async with OpenAIServer(key="another") as server:
        with caplog.at_level(logging.WARNING), pytest.raises(ModelRejected):
            await answer_of(made, request(settings("openai/m1", server.base_url)))
    await made.aclose()
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


async def test_markers_reach_anthropic_where_the_direct_client_puts_them():
    contents = (
        user("a"),
        assistant("x"),
        user("b"),
        assistant(call("c1"), call("c2")),
        result("c1", "B"),
        result("c2", "C"),
    )
    body = await body_sent(AnthropicServer, "anthropic/claude-sonnet-4-5", *contents)
    assert "cache_control" in body["system"][-1]
    marked = [["cache_control" in block for block in message["content"]] for message in body["messages"]]
    assert marked == [[False], [False], [True], [False, False], [False, True]]


async def test_no_marker_reaches_an_openai_server():
    contents = (user("a"), assistant(call("c1")), result("c1", "B"))
    body = await body_sent(OpenAIServer, "openai/m1", *contents)
    assert "cache_control" not in json.dumps(body)


async def test_each_request_is_the_previous_one_and_a_tail_on_the_wire():
    """Invariant 4, behind litellm's own conversions."""
    turns = [
        [user("a")],
        [assistant(thought("Hm.", "anthropic", "sig1"), "I read.", call("c1"), call("c2")), result("c1", "A"),
         result("c2", "B"), user("steer")],
        [assistant("x"), user("b")],
        [assistant(call("c3")), result("c3", "")],
    ]  # fmt: skip
    for server_type, model in ((OpenAIServer, "openai/m1"), (AnthropicServer, "anthropic/claude-sonnet-4-5")):
        contents, before = [], []
        for appended in turns:
            contents += appended
            body = _without_markers(await body_sent(server_type, model, *contents))
            blocks = [
                (message["role"], json.dumps(block))
                for message in body["messages"]
                for block in message.get("content") or [0]
            ]
            now = [json.dumps([body.get("tools"), body.get("system")]), *blocks]
            assert now[: len(before)] == before
            before = now


async def test_a_thought_signature_of_gemini_is_kept_apart_from_the_id_and_sent_back():
    """C40's neighbour: litellm hides the signature in the id, where no other provider could bear it."""
    model = settings("gemini/gemini-3-flash")
    assembler = Assembler(reasoning_form="openai:gemini/gemini-3-flash")
    piece = {"index": 0, "id": "call_1__thought__SIG+/=", "function": {"name": "read_file", "arguments": "{}"}}
    for fragment in (*_call_fragments(piece), FinishFragment(reason="stop")):
        assembler.add(fragment)
    parts = assembler.finish().parts
    made = client()
    sent = made._arguments(request(model, user("a"), assistant(*parts), result("call_1", "x")), made.facts(model), {})
    (sent_call,) = sent["messages"][2]["tool_calls"]
    assert sent_call["id"] == "call_1"
    assert sent_call["provider_specific_fields"] == {"thought_signature": "SIG+/="}


async def test_a_hundred_equal_pieces_are_an_answer():
    """Litellm takes them for a model that repeats itself, unless it is told not to."""
    made = client()
    async with OpenAIServer([Answer(text=["----- "] * 300)]) as server:
        _, finished = await answer_of(made, request(settings("openai/m1", server.base_url)))
    await made.aclose()
    assert finished.parts == (TextPart(text="----- " * 300),)


@pytest.mark.parametrize("model", ["nosuch/x", "gemini/gemini-2.5-flash", "azure/x"])
async def test_what_is_not_set_up_is_rejected_and_not_tried_again(model, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("GEMINI", "GOOGLE", "AZURE"))]:
        monkeypatch.delenv(name)
    made = LiteLLMClient(resolve_key=lambda _: None, mask=lambda text: text)
    with pytest.raises(ModelRejected) as caught:
        await answer_of(made, request(settings(model)))
    await made.aclose()
    assert "Traceback" not in caught.value.detail


async def test_a_warmed_client_answers():
    made = client()
    await made.warm()
    async with OpenAIServer() as server:
        _, finished = await answer_of(made, request(settings("openai/m1", server.base_url)))
    await made.aclose()
    assert finished.parts == (TextPart(text="ok"),)


def _without_markers(value):
    if isinstance(value, dict):
        return {key: _without_markers(item) for key, item in value.items() if key != "cache_control"}
    return [_without_markers(item) for item in value] if isinstance(value, list) else value
