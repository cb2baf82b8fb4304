"""Two-way sessions with the real program: messages, approvals, tools of the client, and what a kill leaves."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import httpx
import pytest

from bot.sockets import socket_path
from tests.acceptance.processes import lodger, make_place, openai_model, running_host
from tests.acceptance.session_client import BOUND_SECONDS, require_whole, resumed, session
from tests.platforms.model_script import Answer, Call
from tests.platforms.openai_server import OpenAIServer

WEATHER = {
    "name": "weather",
    "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ALLOWED = '[permissions]\nrules = [{ tool = "weather", action = "allow" }]'


class Model:
    """Answers by what was said last. `gate` holds back the second half of what it says to "slowly"."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.server = OpenAIServer([self._step])
        self._calls = 0

    @property
    def bodies(self) -> list[dict]:
        return self.server.bodies

    def _step(self, body) -> Answer:
        said = [_text(message) for message in body["messages"]]
        if body["messages"][-1]["role"] == "tool":
            return Answer(text=f"The tool said: {said[-1]}")
        words = said[-1]
        if "slowly" in words:
            return Answer(text=["First half, ", "second half."], gates={1: self.gate})
        if "weather" in words:
            return self._call("weather", {"city": "Kiel"})
        if "run" in words:
            return self._call("shell", {"command": "echo ran >> ran.txt"})
        return Answer(text=f"You said: {words.splitlines()[-1]}")

    def _call(self, tool: str, arguments: dict) -> Answer:
        self._calls += 1
        return Answer(text="Let me.", calls=[Call(f"call-{self._calls}", tool, json.dumps(arguments))])

    async def asked(self, words: str) -> None:
        """Wait until it was asked something."""
        async with asyncio.timeout(BOUND_SECONDS):
            while not any(words in _text(body["messages"][-1]) for body in self.bodies):
                await asyncio.sleep(0.005)


def _text(message) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


@asynccontextmanager
async def scripted(tmp_path, more: str = ""):
    model = Model()
    async with model.server as server:
        yield model, make_place(tmp_path, model=openai_model(server.base_url), more=more)


async def test_a_whole_session(tmp_path):
    async with scripted(tmp_path) as (model, place), running_host(place), session(place) as client:
        await client.send("ping", id="are you there?")
        await client.send("user", id="m1", text="slowly")
        assert (await client.wait("pong"))["id"] == "are you there?"
        delta = await client.wait("text_delta")
        await client.send("user", id="m2", text="hello", mode="after_turn")
        await client.wait("queued", lambda line: line["id"] == "m2")
        assert not client.all("result"), "the first half is told while the second is not even written"
        model.gate.set()
        assert delta["text"] == "First half, "
        assert (await client.answer_to("m1"))["text"] == "First half, second half."
        assert (await client.answer_to("m2"))["text"] == "You said: hello"
        assert await client.end() == 0
    lines = require_whole(client)
    assert client.lines[-1] == {"type": "end", "exit_code": 0}
    deltas = [line["text"] for line in lines if line["type"] == "text_delta"]
    assert "".join(deltas) == "First half, second half.You said: hello"


async def test_calls_are_approved_and_denied(tmp_path):
    async with scripted(tmp_path) as (_, place), running_host(place), session(place) as client:
        for input_id, choice in (("m1", "approve"), ("m2", "deny")):
            await client.send("user", id=input_id, text="run it")
            call = f"call-{input_id[1]}"
            asked = await client.wait("approval_opened", lambda line, call=call: line["call_id"] == call)
            assert (asked["tool"], json.loads(asked["shown"])) == ("shell", {"command": "echo ran >> ran.txt"})
            assert "approve" in asked["choices"]
            await client.send("decision", approval_id=asked["approval_id"], choice=choice, feedback="as I said")
            await client.answer_to(input_id)
        await client.send("decision", approval_id=asked["approval_id"], choice="approve")
        assert "already" in (await client.wait("error"))["reason"]
        assert await client.end() == 0
    require_whole(client)
    assert [line["state"] for line in client.all("approval_settled")] == ["approved", "denied"]
    assert [line["outcome"] for line in client.all("call_finished")] == ["ok"]
    assert (place.workspace / "ran.txt").read_text() == "ran\n"
    assert "as I said" in client.all("result")[1]["text"]


async def test_what_is_said_while_a_turn_runs_enters_it_behind_its_tools(tmp_path):
    async with scripted(tmp_path) as (model, place), running_host(place), session(place) as client:
        await client.send("user", id="m1", text="run it")
        asked = await client.wait("approval_opened")
        await client.send("user", id="m2", text="and hello", mode="steer")
        await client.wait("queued", lambda line: line["id"] == "m2")
        await client.send("decision", approval_id=asked["approval_id"], choice="approve")
        result = await client.answer_to("m2")
        assert await client.end() == 0
    require_whole(client)
    (steered,) = client.all("steered")
    assert (steered["inputs"], steered["turn_id"]) == (["m2"], result["turn_id"])
    assert len(client.all("turn_started")) == 1
    assert "You said: and hello" in result["text"]
    assert [_text(message) for message in model.bodies[-1]["messages"]][-1].endswith("and hello")


async def test_a_turn_is_cancelled_and_a_message_goes_before_it(tmp_path):
    async with scripted(tmp_path) as (_, place), running_host(place), session(place) as client:
        for input_id in ("m1", "m2"):
            await client.send("user", id=input_id, text="slowly")
            await client.wait("turn_started", lambda line, input_id=input_id: input_id in line["inputs"])
            if input_id == "m1":
                await client.send("cancel")
            else:
                await client.send("user", id="m3", text="hello", mode="interrupt")
            assert (await client.answer_to(input_id))["outcome"] == "cancelled"
        assert (await client.answer_to("m3"))["text"] == "You said: hello"
        await client.send("cancel")
        assert (await client.wait("error"))["reason"] == "no turn is open"
        assert await client.end() == 0
    require_whole(client)


async def test_a_tool_of_the_client_is_run_by_the_client(tmp_path):
    async with scripted(tmp_path, ALLOWED) as (model, place), running_host(place), session(place) as client:
        await client.send("user", id="m0", text="hello")
        await client.answer_to("m0")
        await client.send("tools", tools=[WEATHER])
        await client.wait("tools")
        for number, reply in enumerate(({"text": "12 degrees"}, {"text": "no such city", "is_error": True}), start=1):
            await client.send("user", id=f"m{number}", text="the weather?")
            call = f"call-{number}"
            request = await client.wait("tool_request", lambda line, call=call: line["call_id"] == call)
            assert (request["name"], request["arguments"]) == ("weather", {"city": "Kiel"})
            await client.send("tool_result", call_id=call, **reply)
            assert (await client.answer_to(f"m{number}"))["text"].endswith(f"The tool said: {reply['text']}")
        await client.send("tool_result", call_id="call-1", text="again")
        assert (await client.wait("error"))["reason"] == "no tool request 'call-1' is open"
        assert await client.end() == 0
    lines = require_whole(client)
    assert [line["outcome"] for line in client.all("call_finished")] == ["ok", "error"]
    reasons = [line["reason"] for line in lines if line["type"] == "prompt_recompiled"]
    assert reasons == ["new conversation", "tools changed"]
    offered = [[tool["function"]["name"] for tool in body["tools"]] for body in model.bodies]
    assert offered[1] == [*offered[0], "weather"]


async def test_another_conversation_has_not_the_tools_of_a_session(tmp_path):
    async with scripted(tmp_path) as (model, place), running_host(place), session(place) as first:
        await first.send("tools", tools=[WEATHER])
        await first.wait("tools")
        async with session(place) as second:
            await second.send("user", id="m1", text="hello")
            await second.answer_to("m1")
            assert await second.end() == 0
    assert "weather" not in json.dumps(model.bodies[-1]["tools"])


async def test_a_host_that_is_killed_in_a_turn_goes_on_and_no_line_is_lost_or_doubled(tmp_path):
    async with scripted(tmp_path) as (model, place):
        async with running_host(place) as host, session(place) as before:
            await before.send("user", id="m1", text="hello")
            await before.answer_to("m1")
            await before.send("user", id="m2", text="slowly")
            await before.wait("text_delta", lambda line: "First" in line["text"])
            await host.kill()
            assert await before.left() == 1
            assert f"--after {before.last_seq} when it runs again" in await before.errors()
        model.gate.set()
        async with running_host(place), session(place, *resumed(before)) as after:
            await after.send("user", id="m2", text="slowly")
            await after.send("user", id="m3", text="bye")
            assert (await after.answer_to("m3"))["text"] == "You said: bye"
            assert await after.end() == 0
    lines = require_whole(before, after)
    results = [line["text"] for line in lines if line["type"] == "result"]
    assert results == ["You said: hello", "First half, second half.", "You said: bye"]
    assert [line for line in lines if line["type"] == "queued" and line["duplicate"]] != []
    ends = [line["error"] for line in lines if line["type"] == "run_finished"]
    assert ends == ["", "interrupted", "", ""]


async def test_a_question_survives_a_killed_host_and_is_asked_of_the_next_client(tmp_path):
    async with scripted(tmp_path) as (_, place):
        async with running_host(place) as host, session(place) as before:
            await before.send("user", id="m1", text="run it")
            asked = await before.wait("approval_opened")
            await host.kill()
            await before.left()
        async with running_host(place), session(place, *resumed(before)) as after:
            (again,) = after.session["approvals"]
            assert (again["approval_id"], again["shown"]) == (asked["approval_id"], asked["shown"])
            await after.send("decision", approval_id=again["approval_id"], choice="approve")
            assert "tool said" in (await after.wait("result"))["text"]
            assert await after.end() == 0
    require_whole(before, after)
    assert (place.workspace / "ran.txt").read_text() == "ran\n"


async def test_a_tool_request_that_a_killed_host_left_is_withdrawn(tmp_path):
    async with scripted(tmp_path, ALLOWED) as (model, place):
        async with running_host(place) as host, session(place) as before:
            await before.send("tools", tools=[WEATHER])
            await before.send("user", id="m1", text="the weather?")
            await before.wait("tool_request")
            await host.kill()
            await before.left()
        async with running_host(place), session(place, *resumed(before)) as after:
            withdrawn = await after.wait("tool_withdrawn")
            assert (withdrawn["call_id"], withdrawn["reason"]) == ("call-1", "host_stopped")
            assert "unknown" in (await after.wait("result"))["text"]
            assert await after.end() == 0
    require_whole(before, after)
    assert "weather" in json.dumps(model.bodies[-1]["tools"]), "the tools are kept with the conversation"


async def test_an_ended_input_leaves_an_open_question_to_others(tmp_path):
    async with scripted(tmp_path) as (_, place), running_host(place):
        async with session(place) as client:
            await client.send("user", id="m1", text="run it")
            client.process.stdin.close()
            assert await client.left() == 3
        (asked,) = client.all("approval_opened")
        decided = await lodger(place, "approvals", asked["approval_id"], "deny", "--reason", "not today")
        assert (decided.code, decided.out) == (0, "Denied.\n")
        async with session(place, *resumed(client)) as again:
            assert "not today" in (await again.wait("result"))["text"]
            assert await again.end() == 0
    require_whole(client, again)
    (settled,) = again.all("approval_settled")
    assert (settled["state"], settled["feedback"]) == ("denied", "not today")


async def test_broken_input_is_answered_by_its_line_and_ends_nothing(tmp_path):
    broken = [
        b"{",
        b'["user"]',
        b"\xff\xfe",
        b'{"type": "shout"}',
        b'{"type": "user"}',
        b'{"type": "user", "text": "x", "mood": "bad"}',
        b'{"type": "user", "text": "' + b"x" * 10_000_000 + b'"}',
        b'{"type": "decision", "approval_id": "apr-0", "choice": "approve"}',
        b'{"type": "tools", "tools": [{"name": "shell", "description": "d", "parameters": {"type": "object"}}]}',
    ]
    async with scripted(tmp_path) as (_, place), running_host(place), session(place) as client:
        for line in broken:
            await client.send_raw(line)
        await client.send("user", id="m1", text="hello")
        assert (await client.answer_to("m1"))["text"] == "You said: hello"
        assert await client.end() == 0
    errors = client.all("error")
    assert [error["line"] for error in errors] == list(range(1, len(broken) + 1))
    reasons = [
        "not JSON", "not a JSON object", "not UTF-8", "unknown type 'shout'", "'user' needs 'text'", "no field 'mood'",
        "longer than 10000000 bytes", "no approval 'apr-0'", "a built-in tool 'shell'",
    ]  # fmt: skip
    assert [reason in error["reason"] for reason, error in zip(reasons, errors, strict=True)] == [True] * len(broken)


async def test_a_limit_of_messages_ends_the_session_behind_the_last_answer(tmp_path):
    async with scripted(tmp_path) as (_, place), running_host(place), session(place, "--max-turns", "1") as client:
        await client.send("user", id="m1", text="hello")
        await client.send("user", id="m1", text="hello")
        await client.send("user", id="m2", text="more")
        assert await client.left() == 4
    assert [line["text"] for line in client.all("result")] == ["You said: hello"]
    assert "limit of 1" in client.all("error")[0]["reason"]


async def test_ctrl_c_stops_the_turn_and_once_more_leaves(tmp_path):
    async with scripted(tmp_path) as (_, place), running_host(place), session(place) as client:
        await client.send("user", id="m1", text="slowly")
        await client.wait("text_delta")
        await client.signal(signal.SIGINT)
        assert (await client.answer_to("m1"))["outcome"] == "cancelled"
        await client.send("user", id="m2", text="hello")
        assert (await client.answer_to("m2"))["outcome"] == "completed"
        await client.signal(signal.SIGINT)
        assert await client.left() == 130
    assert client.lines[-1] == {"type": "end", "exit_code": 130}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGKILL, -9)])
async def test_without_a_host_a_session_runs_one_and_leaves_its_turn_for_the_next(tmp_path, number, code):
    async with scripted(tmp_path) as (model, place):
        async with session(place) as before:
            await before.send("user", id="m1", text="slowly")
            await before.wait("text_delta")
            await before.signal(number)
            assert await before.left() == code
            assert await before.errors() == ""
        model.gate.set()
        async with session(place, *resumed(before)) as after:
            assert (await after.wait("result"))["text"] == "First half, second half."
            assert await after.end() == 0
    require_whole(before, after)


async def test_no_secret_of_the_host_is_told_or_asked_of_the_model(tmp_path):
    """Invariant 10."""
    key = "sk-" + "a" * 20
    tool = {**WEATHER, "description": f"Needs {key}."}
    async with scripted(tmp_path, ALLOWED) as (model, place), running_host(place), session(place) as client:
        await client.send("tools", tools=[tool])
        await client.send("user", id="m1", text=f"the weather? {key}")
        await client.wait("tool_request")
        await client.send("tool_result", call_id="call-1", text=f"sunny {key}")
        await client.answer_to("m1")
        assert await client.end() == 0
    assert key not in json.dumps(client.lines) + json.dumps(model.bodies)
    assert "sunny [secret " in client.all("result")[0]["text"]


@pytest.mark.parametrize("wrong", [("--agent", "nobody"), ("--conversation", "conv-none", "--after", "3")])
async def test_a_wrong_name_is_one_line_and_no_session(tmp_path, wrong):
    async with scripted(tmp_path) as (_, place), running_host(place):
        process = await asyncio.create_subprocess_exec(
            *place.command("run", "--input-format", "stream-json", "--output-format", "stream-json", *wrong),
            env=place.environment,
            cwd=place.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
    assert (process.returncode, out, err.count(b"\n")) == (1, b"", 1)
    assert err.startswith(b"lodger: no ")


async def test_a_program_may_speak_with_the_hosts_socket_itself(tmp_path):
    async with scripted(tmp_path) as (_, place), running_host(place):
        transport = httpx.AsyncHTTPTransport(uds=str(socket_path(place.data)))
        async with httpx.AsyncClient(transport=transport, base_url="http://host", timeout=BOUND_SECONDS) as http:
            opened = (await http.post("/sessions", json={"agent": "lodger"})).json()
            path = f"/sessions/{opened['conversation_id']}"
            async with http.stream("GET", f"{path}/lines?after=0") as response:
                said = await http.post(f"{path}/input", json={"type": "user", "id": "m1", "text": "hello"})
                assert said.json() == {"lines": []}
                told = []
                async for line in response.aiter_lines():
                    told += [json.loads(line)] if line else []
                    if told and told[-1]["type"] == "result":
                        break
            assert told[-1]["text"] == "You said: hello"
            assert [line["seq"] for line in told] == list(range(1, len(told) + 1))
            state = (await http.get(path)).json()
            assert (state["state"], state["last_seq"]) == ("idle", len(told))
            refused = await http.get(f"{path}/lines?after=1000")
            assert (refused.status_code, refused.json()["error"]) == (
                400,
                f"there is no line 1000 yet: the last is {len(told)}",
            )
