"""kill -9 of the real host at random moments of a session: its client resumes by number, and misses nothing.

The client says one thing after the other; the model has a tool of the client's run for each, and
then answers. `LODGER_KILLS` sets the number of kills, 6 by default; the seeds are fixed.
"""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from tests.acceptance.processes import HostProcess, Place, make_place, openai_model, running_host
from tests.acceptance.session_client import BOUND_SECONDS, SessionClient, require_whole, resumed, session
from tests.acceptance.test_stream_json import ALLOWED, WEATHER
from tests.platforms.model_script import Answer, Call
from tests.platforms.openai_server import OpenAIServer

KILLS_A_SEED = 3
SEEDS = range(max(1, int(os.environ.get("LODGER_KILLS", "6")) // KILLS_A_SEED))
STAGES = (
    "queued",
    "turn_started",
    "message",
    "call_requested",
    "tool_request",
    "call_finished",
    "text_delta",
    "result",
)
LONGEST_SECONDS = 0.05


def step(body) -> Answer:
    """Call the client's tool for what was said last; once it has a result, say so."""
    said = [message for message in body["messages"] if message["role"] == "user"]
    if body["messages"][-1]["role"] == "tool":
        return Answer(text=["It is ", "done."])
    return Answer(text="Let me.", calls=[Call(f"call-{len(said)}", "weather", '{"city": "Kiel"}')])


class Program:
    """The program around the session: sends again what is not known to be queued, and runs its tool."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.clients: list[SessionClient] = []
        self.sent: list[str] = []
        self.ran: list[str] = []

    @property
    def lines(self) -> list[dict]:
        return [line for client in self.clients for line in client.numbered]

    def told(self, kind: str) -> list[dict]:
        return [line for line in self.lines if line["type"] == kind]

    def open(self):
        """Return the next connection, behind the last line that was told."""
        heard = [client for client in self.clients if client.numbered]
        begun = ("--conversation", self.clients[0].session["conversation_id"], "--after", "0") if self.clients else ()
        return session(self.place, *(resumed(heard[-1]) if heard else begun))

    async def speak(self, client: SessionClient, *texts: str) -> None:
        """Send these messages, and before them those that no line says to be queued."""
        queued = {line["id"] for line in self.told("queued")}
        self.sent += texts
        await client.send("tools", tools=[WEATHER])
        for text in self.sent:
            if text not in queued:
                await client.send("user", id=text, text=text)

    async def run_tools(self, client: SessionClient) -> None:
        """Answer requests as they come; what a session had asked before it was opened is not run."""
        seen = 0
        while True:
            for line in client.lines[seen:]:
                seen += 1
                if line["type"] == "tool_request" and line["seq"] > client.session["last_seq"]:
                    self.ran.append(line["call_id"])
                    await client.send("tool_result", call_id=line["call_id"], text="sunny")
            await asyncio.sleep(0.005)


async def until_killed(host: HostProcess, program: Program, client: SessionClient, chance: random.Random) -> None:
    """Let a message come to a random stage, or a moment further, and kill the host."""
    stage, text = chance.choice(STAGES), f"errand-{len(program.sent)}"

    def seen() -> int:
        # A message that enters an earlier turn begins none: then its answer is late enough.
        return len(client.all(stage)) + len(client.all("result"))

    before = seen()
    tools = asyncio.create_task(program.run_tools(client))
    await program.speak(client, text)
    async with asyncio.timeout(BOUND_SECONDS):
        while seen() == before:
            await asyncio.sleep(0.002)
    until = asyncio.get_running_loop().time() + chance.uniform(0, LONGEST_SECONDS)
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.002)
    await host.kill()
    tools.cancel()
    await asyncio.gather(tools, return_exceptions=True)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_client_that_resumes_by_number_misses_nothing_and_hears_nothing_twice(tmp_path, seed):
    chance = random.Random(seed)
    async with OpenAIServer([step]) as server:
        place = make_place(tmp_path, model=openai_model(server.base_url), more=ALLOWED)
        program = Program(place)
        for _ in range(KILLS_A_SEED):
            async with running_host(place) as host, program.open() as client:
                program.clients.append(client)
                await until_killed(host, program, client, chance)
                await client.left()
        async with running_host(place), program.open() as client:
            program.clients.append(client)
            tools = asyncio.create_task(program.run_tools(client))
            await program.speak(client, "errand-last")
            await client.answer_to("errand-last")
            assert await client.end() == 0
            tools.cancel()
            await asyncio.gather(tools, return_exceptions=True)
    require_whole(*program.clients)
    require_all_answered(program)


def require_all_answered(program: Program) -> None:
    """Every message is in one turn, every turn has one result, no call was made twice."""
    entered = [text for line in (*program.told("turn_started"), *program.told("steered")) for text in line["inputs"]]
    assert sorted(entered) == sorted(program.sent)
    assert {line["turn_id"] for line in program.told("result")} == {
        line["turn_id"] for line in program.told("turn_started")
    }
    assert len(set(program.ran)) == len(program.ran)
    requested = [line["call_id"] for line in program.told("tool_request")]
    assert len(set(requested)) == len(requested)
    ended = {line["call_id"] for line in (*program.told("call_finished"), *program.told("tool_withdrawn"))}
    assert set(requested) == ended
