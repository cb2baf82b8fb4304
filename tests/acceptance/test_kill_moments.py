"""kill -9 of the real host at random moments: nothing lost, no tool twice, every message answered once.

A person gives errands over Telegram, one after the other; the model runs a command for each and
then says so. The host is killed while it fetches, thinks, runs, answers or starts up again.
`LODGER_KILLS` sets the number of kills, 12 by default; the seeds are fixed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from tests.acceptance.processes import OWNER, HostProcess, Place, make_place, openai_model, running_host
from tests.platforms.model_script import Answer, Call
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_server import TOKEN, TelegramServer

WAIT = 30.0
KILLS_A_SEED = 4
SEEDS = range(max(1, int(os.environ.get("LODGER_KILLS", "12")) // KILLS_A_SEED))

SHARE_OF_STARTS = 0.2
"""How many of the kills hit a host that has hardly started."""
LONGEST_START_SECONDS = 1.5
THINKING_SECONDS = 0.06


class Errands:
    """The model, and what it knows of the errands."""

    def __init__(self) -> None:
        self.server = OpenAIServer([self._step])
        self._calls = 0

    def _step(self, body) -> Answer:
        """Call the tool for an errand that has no result yet; otherwise say that it is done."""
        errand = segments(body["messages"])[-1][0]
        if results(body):
            return Answer(text=["Done ", f"with {errand}."], gates={0: thinking(), 1: thinking()})
        self._calls += 1
        command = f"sleep 0.05; echo {errand} >> ran.txt; sleep 0.05"
        call = Call(f"call-{self._calls}", "shell", json.dumps({"command": command}))
        return Answer(text=[""], calls=[call], gates={0: thinking()})


def thinking() -> asyncio.Event:
    """Return an event that is set a moment later."""
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(THINKING_SECONDS, event.set)
    return event


def segments(messages) -> list[tuple[str, list[dict]]]:
    """Return what a person said, message by message, each with everything that followed it."""
    found: list[tuple[str, list[dict]]] = []
    for message in messages:
        words = _words(message) if message["role"] == "user" else []
        found.extend((word, []) for word in words)
        if not words and message["role"] != "system" and found:
            found[-1][1].append(message)
    return found


def results(body) -> list[str]:
    """Return the results of the newest errand's calls that a request tells."""
    behind = segments(body["messages"])[-1][1]
    return ["\n".join(_texts(message)) for message in behind if message["role"] == "tool"]


def _words(message) -> list[str]:
    return [text for text in _texts(message) if not text.startswith("<system-")]


def _texts(message) -> list[str]:
    content = message.get("content") or []
    return [content] if isinstance(content, str) else [block["text"] for block in content]


def copies(telegram, errand: str) -> int:
    """Return how many visible messages tell that an errand is done."""
    return sum(f"Done with {errand}." in message.text for message in telegram.visible(OWNER))


async def answered(telegram, errand: str) -> None:
    await telegram.wait_for(lambda: copies(telegram, errand), timeout=WAIT)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.005)


async def let_pass(telegram, seconds: float) -> None:
    with suppress(TimeoutError):
        await telegram.wait_for(lambda: False, timeout=seconds)


@dataclass(frozen=True)
class Moments:
    """When to kill: at a stage of an errand, or soon behind it, however fast the machine is."""

    place: Place
    telegram: TelegramServer
    model: OpenAIServer

    async def reach(self, errand: str, chance: random.Random) -> None:
        """Wait for a random stage of the errand, and a random moment longer."""
        stages = (self._fetched, self._thinks, self._ran, self._concludes, self._sends)
        stage = chance.choice(stages)
        await until(lambda: stage(errand))
        await let_pass(self.telegram, chance.uniform(0.0, 0.15))

    def _fetched(self, errand: str) -> bool:
        """Its update was handed out; what an earlier kill left undone may go on as well."""
        return not self.telegram.updates.is_polled

    def _thinks(self, errand: str) -> bool:
        return any(segments(body["messages"])[-1][0] == errand for body in self.model.bodies)

    def _ran(self, errand: str) -> bool:
        file = self.place.workspace / "ran.txt"
        return (file.exists() and errand in file.read_text().split()) or self._concludes(errand)

    def _concludes(self, errand: str) -> bool:
        return any(segments(body["messages"])[-1][0] == errand and results(body) for body in self.model.bodies)

    def _sends(self, errand: str) -> bool:
        """The call has arrived; whether its answer still reaches the host is chance."""
        return any(errand in call.params.get("text", "") for call in self.telegram.calls_of("sendMessage"))


async def killed_while_starting(place: Place, telegram, seconds: float) -> None:
    """Start a host and kill it, most likely before it serves."""
    process = await asyncio.create_subprocess_exec(
        *place.command("up"),
        env=place.environment,
        cwd=place.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    host = HostProcess(process)
    await let_pass(telegram, seconds)
    await host.kill()


async def run_errands(moments: Moments, chance: random.Random) -> list[str]:
    """Give an errand and kill the host, several times; return all errands, the last one undisturbed."""
    place, telegram = moments.place, moments.telegram
    errands = []
    for number in range(KILLS_A_SEED):
        errand = f"errand-{number}"
        errands.append(errand)
        if number and chance.random() < SHARE_OF_STARTS:
            telegram.user_says(OWNER, errand)
            await killed_while_starting(place, telegram, chance.uniform(0.2, LONGEST_START_SECONDS))
            continue
        async with running_host(place) as host:
            if not number:
                await let_everything_run(telegram)
            telegram.user_says(OWNER, errand)
            await moments.reach(errand, chance)
            await host.kill()
    errands.append("errand-last")
    async with running_host(place) as host:
        for errand in errands[:-1]:
            await answered(telegram, errand)
        telegram.user_says(OWNER, errands[-1])
        await answered(telegram, errands[-1])
        assert await host.stop() == 0
        assert "Traceback" not in host.output
    return errands


async def let_everything_run(telegram) -> None:
    telegram.user_says(OWNER, "/mode unrestricted")
    await telegram.wait_for(lambda: [m for m in telegram.visible(OWNER) if "unrestricted" in m.text], timeout=WAIT)


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_is_lost_and_nothing_happens_twice_whenever_the_host_is_killed(tmp_path, seed):
    """Invariants 1, 3, 4 and 11."""
    model = Errands()
    async with TelegramServer(TOKEN) as telegram, model.server as server:
        place = make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(server.base_url))
        errands = await run_errands(Moments(place, telegram, server), random.Random(seed))
        check_transcript(server, errands, (place.workspace / "ran.txt").read_text().split())
        check_chat(telegram, errands)


def check_transcript(server: OpenAIServer, errands: list[str], ran: list[str]) -> None:
    """Every errand stands once in the last request, with one call and one answer behind it."""
    assert [seen.refusal for seen in server.requests if seen.refusal] == []
    talk = segments(server.bodies[-1]["messages"])
    assert [word for word, _ in talk] == errands
    lines = Counter(ran)
    for errand, behind in talk:
        calls = [call for message in behind for call in message.get("tool_calls", ())]
        told = ["\n".join(_texts(message)) for message in behind if message["role"] == "tool"]
        assert len(calls) == len(told) == 1, errand
        assert lines[errand] == 1 or (lines[errand] == 0 and "unknown" in told[0]), (errand, told)
    for errand, behind in talk[:-1]:  # the answer to the last one is in no request yet
        said = ["\n".join(_texts(message)) for message in behind if message["role"] == "assistant"]
        assert [text for text in said if text] == [f"Done with {errand}."]
    for before, after in zip(server.bodies, server.bodies[1:], strict=False):
        assert after["tools"] == before["tools"]
        assert after["messages"][: len(before["messages"])] == before["messages"]


def check_chat(telegram, errands: list[str]) -> None:
    """Every errand is answered once; a kill between a send and its record may double that one text."""
    shown = [message.text for message in telegram.visible(OWNER)]
    doubled = {errand: copies(telegram, errand) - 1 for errand in errands if copies(telegram, errand) > 1}
    assert doubled.keys() <= set(errands[:-1]), shown
    assert sum(doubled.values()) <= KILLS_A_SEED, shown
    answers = {f"Done with {errand}." for errand in errands}
    assert [text for text in shown if text not in answers and "unrestricted" not in text] == []
