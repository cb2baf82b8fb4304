"""Broken tool calls on their whole way: a server's stream, client, backend, loop, the real write tool, the chat."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from bot.config.model import ClientKind, ModelSection
from core.contracts.agents import PermissionMode
from core.contracts.messages import ReturnOutcome
from core.contracts.runs import TurnOutcome
from core.models.direct import DirectClient
from core.models.litellm_client import LiteLLMClient
from core.sandbox.fake import FakeOutcome
from core.turns.outcomes import OUTCOMES
from tests.bot.conversations.hosting import hosting, make_settings
from tests.core.models.test_odd_streams import FORMS
from tests.platforms.model_script import Answer, Call, Raw
from tests.platforms.openai_server import DONE, OpenAIServer, chunk

GOOD = '{"path":"good.md","text":"fine"}'
MALFORMED = {
    "quotes inside": '{"path":"a.md","text":"he said "hi""}',
    "cut": '{"path":"a',
    "nothing": "",
    "null": "null",
    "a list": '["a.md"]',
    "a text": '"a.md"',
    "a comma too many": '{"path":"a.md","text":"x",}',
    "two objects": '{"path":"a.md","text":"x"}{"path":"b.md","text":"x"}',
    "no number": '{"path":"a.md","text":NaN}',
    "a key twice": '{"path":"a.md","text":"x","path":"b.md"}',
    "another language": "{'path':'a.md','text':'x'}",
    "very deep": "[" * 500_000,
}
CLIENTS = {"direct": DirectClient, "litellm": LiteLLMClient}


@asynccontextmanager
async def served(directory, *script, client="direct", **more):
    """Open a host whose model is a server, and that may write files without asking."""
    async with OpenAIServer(script) as server:
        speaking = CLIENTS[client](resolve_key=lambda _: "key", mask=str)
        section = ModelSection(model="openai/m1", api_base=server.base_url, client=ClientKind(client))
        settings = make_settings(directory, models={"main": section})
        try:
            async with hosting(
                directory, model=speaking, settings=settings, mode=PermissionMode.UNRESTRICTED, **more
            ) as host:
                yield host, server, directory / "workspace"
        finally:
            await speaking.aclose()


def files(workspace) -> dict[str, str]:
    return {path.name: path.read_text() for path in workspace.rglob("*") if path.is_file()}


def assert_every_request_was_valid(server) -> None:
    assert [seen.refusal for seen in server.requests] == [""] * len(server.requests)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("arguments", MALFORMED.values(), ids=list(MALFORMED))
async def test_unusable_arguments_run_nothing_and_the_turn_goes_on(tmp_path, arguments, client):
    """C30: the sibling with good arguments runs, and every later request is valid."""
    calls = [Call("call_a", "write", arguments), Call("call_b", "write", GOOD)]
    async with served(tmp_path, Answer(calls=calls), Answer(text="ok"), client=client) as (host, server, workspace):
        await host.says("write it")
        assert files(workspace) == {"good.md": "fine"}
        refused, fine = await host.returns()
        assert (refused.call_id, refused.outcome) == ("call_a", ReturnOutcome.ERROR)
        assert (fine.call_id, fine.outcome) == ("call_b", ReturnOutcome.OK)
        assert len(refused.parts[0].text) < 1_500
        assert host.texts() == ["ok"]
        assert_every_request_was_valid(server)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("form", list(FORMS))
async def test_parallel_calls_of_every_form_are_two_calls_that_each_ran(tmp_path, form, client):
    """C31: pieces of two calls are never glued together, and none disappears."""
    pieces = [chunk({"role": "assistant"}), *(chunk({"tool_calls": deltas}) for deltas in FORMS[form])]
    stream = Raw([*pieces, chunk({}, "tool_calls"), DONE])
    async with served(tmp_path, stream, Answer(text="ok"), client=client) as (host, server, workspace):
        for name in ("a.md", "b.md"):
            (workspace / name).write_text(f"this is {name}")
        await host.says("read both")
        results = await host.returns()
        assert len({result.call_id for result in results}) == 2
        assert [result.outcome for result in results] == [ReturnOutcome.ERROR] * 2  # there is no tool read_file
        asked = [part for message in await host.transcript() for part in message.parts if hasattr(part, "arguments")]
        assert [call.arguments for call in asked] == ['{"path":"a.md"}', '{"path":"b.md"}']
        assert host.texts() == ["ok"]
        assert_every_request_was_valid(server)


CUT = '{"path":"r.md","text":"line 1\\nline 2'
LIMITED = {
    "A cut": [Answer(calls=[Call("call_a", "write", CUT)], finish="length")],
    "B cut, said to be whole": [Answer(calls=[Call("call_a", "write", CUT)], finish="tool_calls")],
    "C whole but incomplete": [Answer(calls=[Call("call_a", "write", '{"path":"r.md"}')], finish="length")],
    "D one whole, one cut": [
        Answer(calls=[Call("call_a", "write", GOOD), Call("call_b", "write", CUT)], finish="length")
    ],
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("script", LIMITED.values(), ids=list(LIMITED))
async def test_a_call_cut_at_the_output_limit_writes_no_file(tmp_path, script, client):
    """C33 A to D: of an answer that was cut, no call runs, complete or not."""
    async with served(tmp_path, *script, Answer(text="I see."), client=client) as (host, server, workspace):
        await host.says("write it")
        assert files(workspace) == {}
        assert {result.outcome for result in await host.returns()} == {ReturnOutcome.ERROR}
        assert host.texts() == ["I see."]
        assert_every_request_was_valid(server)


async def test_the_model_is_told_to_send_a_smaller_piece(tmp_path):
    async with served(tmp_path, *LIMITED["A cut"], Answer(text="I see.")) as (host, _, _):
        await host.says("write it")
        (told,) = await host.returns()
        assert "output limit" in told.parts[0].text
        assert "smaller" in told.parts[0].text


async def test_a_model_that_repeats_its_cut_call_is_stopped_with_a_word(tmp_path):
    """C33 E."""
    async with served(tmp_path, *LIMITED["A cut"] * 10) as (host, server, workspace):
        await host.says("write it")
        assert len(server.requests) == 3
        assert files(workspace) == {}
        assert host.texts() == [OUTCOMES[TurnOutcome.ERROR].notice]


async def test_a_text_cut_at_the_limit_is_delivered_with_a_mark(tmp_path):
    """C33 F."""
    async with served(tmp_path, Answer(text="The answer is", finish="length")) as (host, _, _):
        await host.says("ask")
        assert host.texts() == [f"The answer is\n\n{OUTCOMES[TurnOutcome.CUT].notice}"]


async def test_a_file_that_is_written_is_the_one_that_was_meant(tmp_path):
    """The way itself works: what the cases above refuse, a good call does."""
    async with served(tmp_path, Answer(calls=[Call("call_a", "write", GOOD)]), Answer(text="ok")) as (
        host,
        _,
        workspace,
    ):
        await host.says("write it")
        assert files(workspace) == {"good.md": "fine"}
        assert host.texts() == ["ok"]


ODD = {
    "NUL": ("a\u0000b", "a"),
    "half an emoji": ("bad \ud83d end", "bad "),
    "a pair in halves": ("\ud83c\udf78", "\U0001f378"),
    "a line separator": ("one\u2028two", "one"),
    "a noncharacter": ("x\ufffey", "x"),
    "right to left": ("\u202eabc", "abc"),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("odd", "kept"), ODD.values(), ids=list(ODD))
async def test_odd_characters_pass_from_a_person_to_the_model_and_back(tmp_path, odd, kept, client):
    """C80 as user message and model text, over the wire of a provider, and the next turn works."""
    script = [Answer(text=f"You said: {odd}"), Answer(text="still here")]
    async with served(tmp_path, *script, client=client) as (host, server, _):
        await host.says(odd)
        (answer,) = host.texts()
        answer.encode()
        assert "\0" not in answer
        assert kept in answer
        await host.says("and now?")
        assert host.texts()[-1] == "still here"
        assert_every_request_was_valid(server)


@pytest.mark.parametrize(
    "output", [b"W\x00s\x00l\x00", b"a\x00b", b"\xff\xfe", b"\xed\xa0\xbd half", "é".encode() * 500_000]
)
async def test_odd_bytes_of_a_command_reach_the_model_as_text(tmp_path, output):
    """C80 as a tool result."""
    script = [Answer(calls=[Call("call_a", "shell", '{"command":"show"}')]), Answer(text="seen")]
    async with served(tmp_path, *script, outcomes={"show": FakeOutcome(output=output)}) as (host, server, _):
        await host.says("run it")
        (result,) = await host.returns()
        result.parts[0].text.encode()
        assert "\0" not in result.parts[0].text
        assert host.texts() == ["seen"]
        assert_every_request_was_valid(server)
