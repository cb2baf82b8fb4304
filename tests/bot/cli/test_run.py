"""`lodger run`: what it prints, and how it ends, as a process against a scripted model server."""

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import pytest

from tests.acceptance.processes import lodger, make_place, openai_model, running_host
from tests.platforms.model_script import Answer, Call, Status
from tests.platforms.openai_server import OpenAIServer

BOUND_SECONDS = 60
FOREVER = asyncio.Event()
SESSION = ("--input-format", "stream-json", "--output-format", "stream-json")
TOUCHING = Call(id="call_1", name="shell", arguments='{"command": "touch here"}')
ANSWERS = {
    "hello": Answer(text=["Hel", "\u2028lo."]),
    "a file": Answer(text="I would make it.", calls=[TOUCHING]),
    "write a book": Answer(text="Once upon", finish="length"),
    "something bad": Answer(text="", finish="content_filter"),
    "break": Status(401, '{"error": {"message": "Incorrect API key provided."}}'),
    "wait": Answer(text=["I ", "wait"], gates={1: FOREVER}),
}


def answer_to(body):
    """Answer the last thing that was said; a tool's result is only taken note of."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Answer(text="I may not, then.")
    said = json.dumps(last["content"])
    return next(answer for words, answer in ANSWERS.items() if words in said)


@asynccontextmanager
async def scripted_place(tmp_path):
    async with OpenAIServer([answer_to]) as model:
        yield model, make_place(tmp_path, model=openai_model(model.base_url))


async def start(place, *words):
    return await asyncio.create_subprocess_exec(
        *place.command(*words),
        env=place.environment,
        cwd=place.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def interrupted(model, process, number=signal.SIGINT):
    """Press Ctrl-C, or send another signal, when the model was asked; return code, output and errors."""
    async with asyncio.timeout(BOUND_SECONDS):
        while not any("wait" in json.dumps(body["messages"][-1]) for body in model.bodies):
            await asyncio.sleep(0.01)
        process.send_signal(number)
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_a_running_host_takes_the_turn_and_the_exit_code_tells_how_it_ended(tmp_path):
    async with scripted_place(tmp_path) as (_, place), running_host(place):
        ended = {said: await lodger(place, "run", "-p", said) for said in ANSWERS if said != "wait"}

    assert {said: command.code for said, command in ended.items()} == {
        "hello": 0,
        "a file": 3,
        "write a book": 4,
        "something bad": 1,
        "break": 1,
    }
    assert ended["hello"].out == "Hel\u2028lo.\n"
    assert ended["a file"].out == "I would make it.\n\nI may not, then.\n"
    assert ended["write a book"].out.startswith("Once upon\n\n(The answer was cut off")
    assert ended["something bad"].out == "The model refused to answer this.\n"
    assert ended["break"].out.startswith("Something went wrong")
    assert {command.err for command in ended.values()} == {""}


async def test_json_is_one_object_and_its_conversation_can_be_continued_from_standard_input(tmp_path):
    async with scripted_place(tmp_path) as (model, place), running_host(place):
        first = await lodger(place, "run", "--output-format", "json", stdin="hello\n")
        result = json.loads(first.out)
        again = await lodger(place, "run", "--conversation", result["conversation_id"], "-p", "break, then hello")
        unknown = await lodger(place, "run", "--conversation", "conv-none", "-p", "hello")

    assert (first.code, first.out.count("\n")) == (0, 1)
    told = {name: result[name] for name in ("type", "outcome", "text", "exit_code", "error")}
    assert told == {"type": "result", "outcome": "completed", "text": "Hel\u2028lo.", "exit_code": 0, "error": ""}
    assert result["usage"]["output_tokens"] == 5
    assert again.code == 0
    said = [json.dumps(message["content"]) for message in model.bodies[-1]["messages"] if message["role"] == "user"]
    assert ["hello" in text for text in said] == [True, True]
    assert (unknown.code, unknown.out, unknown.err) == (1, "", "lodger: no conversation 'conv-none'\n")


async def test_stream_json_without_a_host_tells_everything_in_order_and_the_result_last(tmp_path):
    async with scripted_place(tmp_path) as (_, place):
        ended = await lodger(place, "run", "--output-format", "stream-json", "-p", "a file")
    events = [json.loads(line) for line in ended.out.splitlines()]

    assert (ended.code, ended.err) == (3, "")
    assert ended.out.isascii()
    assert events[0]["type"] == "started"
    assert [event["type"] for event in events].count("result") == 1
    assert events[-1]["type"] == "result"
    assert (events[-1]["exit_code"], events[-1]["conversation_id"]) == (3, events[0]["conversation_id"])
    kinds = {event["type"] for event in events}
    assert {"text_delta", "call_requested", "message", "usage", "run_finished"} <= kinds
    assert "call_started" not in kinds, "a call that was denied never started"
    runs = {}
    for event in events:
        if "run_id" in event:
            runs.setdefault(event["run_id"], []).append(event["seq"])
    assert len(runs) == 2
    for numbers in runs.values():
        assert numbers == list(range(1, len(numbers) + 1))


async def test_ctrl_c_ends_the_command_at_once_and_says_nothing(tmp_path):
    async with scripted_place(tmp_path) as (model, place):
        assert await interrupted(model, await start(place, "run", "-p", "wait")) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_the_turn_in_a_running_host_and_nothing_else(tmp_path, number):
    async with scripted_place(tmp_path) as (model, place), running_host(place) as host:
        assert await interrupted(model, await start(place, "run", "-p", "wait"), number) == (130, "", "")
        async with asyncio.timeout(BOUND_SECONDS):
            await model.requests[-1].closed.wait()
        assert (await lodger(place, "run", "-p", "hello")).code == 0
        assert await host.stop() == 0
        assert "Waiting for running turns" not in host.output


async def test_a_host_that_dies_under_a_turn_is_told_in_one_line(tmp_path):
    async with scripted_place(tmp_path) as (model, place), running_host(place) as host:
        process = await start(place, "run", "-p", "wait")
        async with asyncio.timeout(BOUND_SECONDS):
            while not model.requests:
                await asyncio.sleep(0.01)
            await host.kill()
            out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err == b"lodger: the host stopped before the turn ended\n"


@pytest.mark.parametrize("words", [(), ("-p", "  ")])
async def test_with_nothing_to_say_it_is_a_usage_error(tmp_path, words):
    ended = await lodger(make_place(tmp_path), "run", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "lodger: nothing to say: use -p TEXT or standard input\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--input-format", "stream-json"), "--input-format stream-json needs --output-format stream-json"),
        (("-p", "x", "--after", "3"), "--after needs --input-format stream-json and --conversation"),
        (("-p", "x", "--max-turns", "0"), "--max-turns counts from 1"),
        ((*SESSION, "-p", "x"), "-p TEXT is for one turn; a session is told on standard input"),
        ((*SESSION, "--after", "3"), "--after needs --input-format stream-json and --conversation"),
        ((*SESSION, "--conversation", "c", "--after", "-1"), "--after counts from 0"),
    ],
)
async def test_options_that_do_not_go_together_are_a_usage_error(tmp_path, words, told):
    ended = await lodger(make_place(tmp_path), "run", *words)
    assert (ended.code, ended.out, ended.err) == (2, "", f"lodger: {told}\n")


async def test_an_unknown_agent_is_one_line_and_the_host_of_the_command_is_gone(tmp_path):
    place = make_place(tmp_path)
    ended = await lodger(place, "run", "--agent", "nobody", "-p", "hello")
    assert (ended.code, ended.out, ended.err) == (1, "", "lodger: no agent 'nobody'\n")
    assert not (place.data / "host.sock").exists()


async def test_a_wrong_configuration_and_a_wrong_option_are_usage_errors(tmp_path):
    place = make_place(tmp_path)
    wrong = await lodger(place, "run", "--output-format", "xml", "-p", "hello")
    assert (wrong.code, wrong.out) == (2, "")
    assert "invalid choice: 'xml'" in wrong.err
    place.config.write_text("[hosts]\n")
    ended = await lodger(place, "run", "-p", "hello")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("lodger: ")
