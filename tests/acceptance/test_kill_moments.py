"""kill -9 of the real host at random moments: nothing lost, no tool twice, every message answered once.

A person gives errands over Telegram, one after the other; the model runs a command for each and
then says so. Some errands have to be approved first, which the person does as soon as a card asks;
behind others the person has one more thing to say while they are under way. The host is killed
while it fetches, thinks, asks, runs, answers or starts up again.
`LODGER_KILLS` sets the number of kills, 8 by default; the seeds are fixed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from bot.conversations.outbox import ANSWER_IN_DOUBT
from tests.acceptance.kill_kit import (
    BEGUN,
    RULES,
    Model,
    Scene,
    heard,
    let_pass,
    outcomes,
    require_transcript,
    segments,
    serving_host,
    starting_host,
    unanswered,
    until,
    words_in,
)
from tests.acceptance.processes import OWNER, make_place, openai_model
from tests.platforms.telegram_server import TOKEN, TelegramServer

logger = logging.getLogger(__name__)

KILLS_A_SEED = 4
SEEDS = range(max(1, int(os.environ.get("LODGER_KILLS", "8")) // KILLS_A_SEED))

KINDS = ("plain", "plain", "asked", "steered")
"""Before an asked errand stands a card; while a steered one is under way more is said."""
SHARE_OF_STARTS = 0.2
"""How many of the kills hit a host that has hardly started."""
LONGEST_START_SECONDS = 1.5
THINKING_SECONDS = 0.06
LONGEST_LIFE_SECONDS = 3600.0
ASK = f'{RULES}[[permissions.rules]]\ntool = "shell"\nmatch = "sh asked.sh"\naction = "always_ask"\n'
SCRIPT = "sleep 0.05; echo $1 >> ran.txt; sleep 0.05\n"
OF_THE_HOST = ("May I run", "Approved by", "Your message is queued")


def commands_of(word: str) -> list[str]:
    """Return what an errand runs; whatever else is said is only heard."""
    kind = word.partition("-")[0]
    return [f"sh {kind}.sh {word}"] if kind in KINDS else []


def thinking() -> asyncio.Event:
    """Return an event that is set a moment later."""
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(THINKING_SECONDS, event.set)
    return event


@dataclass(frozen=True)
class Moments:
    """When to kill: at a stage of an errand, or soon behind it, however fast the machine is."""

    scene: Scene

    async def reach(self, errand: str, chance: random.Random) -> None:
        """Wait for a random stage of the errand, and a random moment longer."""
        stages = (self._fetched, self._thinks, self._asks, self._ran, self._concludes, self._sends)
        stage = chance.choice(stages)
        await until(lambda: stage(errand))
        await let_pass(self.scene.telegram, chance.uniform(0.0, 0.15))

    def _fetched(self, errand: str) -> bool:
        """Its update was handed out; what an earlier kill left undone may go on as well."""
        return not self.scene.telegram.updates.is_polled

    def _thinks(self, errand: str) -> bool:
        return any(word == errand for seen in self.scene.requests for word, _ in segments(seen.body["messages"]))

    def _asks(self, errand: str) -> bool:
        return any(errand in text for text in self.scene.shown()) or self._ran(errand)

    def _ran(self, errand: str) -> bool:
        return errand in self.scene.ran() or self._concludes(errand)

    def _concludes(self, errand: str) -> bool:
        told = [command for seen in self.scene.requests for command, _ in outcomes(seen.body["messages"])]
        return any(command.endswith(errand) for command in told)

    def _sends(self, errand: str) -> bool:
        """The call has arrived; whether its answer still reaches the host is chance."""
        texts = [call.params.get("text", "") for call in self.scene.telegram.calls if "Message" in call.method]
        return any(f"Heard {errand}." in text for text in texts)


@asynccontextmanager
async def approving(scene: Scene) -> AsyncIterator[None]:
    """Press "Approve" once on every card that shows it, for the length of the block."""
    pressed: set[int] = set()

    def fresh() -> list[int]:
        shown = scene.telegram.visible(OWNER)
        return [message.id for message in shown if "Approve" in message.buttons and message.id not in pressed]

    async def press_all() -> None:
        while True:
            number = (await scene.telegram.wait_for(fresh, timeout=LONGEST_LIFE_SECONDS))[0]
            pressed.add(number)
            message = next(message for message in scene.telegram.visible(OWNER) if message.id == number)
            scene.telegram.press(OWNER, number, message.buttons["Approve"])

    task = asyncio.create_task(press_all())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def run_errands(scene: Scene, chance: random.Random) -> None:
    """Give an errand and kill the host, several times; the last one is undisturbed."""
    for number in range(KILLS_A_SEED):
        kind = chance.choice(KINDS)
        errand = f"{kind}-{number}"
        if number and chance.random() < SHARE_OF_STARTS:
            scene.says(errand)
            async with starting_host(scene.place):
                await let_pass(scene.telegram, chance.uniform(0.2, LONGEST_START_SECONDS))
            continue
        async with serving_host(scene.place):
            scene.says(errand)
            await Moments(scene).reach(errand, chance)
            if kind == "steered":
                scene.says(f"more-{number}")
                await Moments(scene).reach(errand, chance)
    async with serving_host(scene.place) as host:
        await scene.hears(*scene.said)
        scene.says("plain-last")
        await scene.hears("plain-last")
        assert await host.stop() == 0
        assert "Traceback" not in host.output


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_is_lost_and_nothing_happens_twice_whenever_the_host_is_killed(tmp_path, seed):
    """Invariants 1, 3, 4 and 11."""
    model = Model(commands_of, hesitate=thinking)
    async with TelegramServer(TOKEN) as telegram, model.server as server:
        settings = openai_model(server.base_url)
        place = make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=settings, more=ASK)
        for kind in KINDS:
            (place.workspace / f"{kind}.sh").write_text(SCRIPT)
        scene = Scene(place, telegram, model)
        async with approving(scene):
            await run_errands(scene, random.Random(seed))
        require_transcript(scene)
        require_one_run_each(scene)
        doubles = require_chat(scene)
        figures = {"kills": KILLS_A_SEED, "events": len(scene.said), "ran": len(scene.ran()), "doubles": doubles}
        logger.info("killed %s", figures)


def require_one_run_each(scene: Scene) -> None:
    """Every errand has one call with one result; it ran once, or is told to be unknown."""
    lines = Counter(scene.ran())
    told = outcomes(scene.requests[-1].body["messages"])
    assert sorted(command for command, _ in told) == sorted(c for word in scene.said for c in commands_of(word))
    for command, result in told:
        count = lines[command.split()[-1]]
        assert count == 1 or (count == 0 and "unknown" in result), (command, result)


def require_chat(scene: Scene) -> int:
    """Return how many texts were doubled, by kills between a send and its record; all else is seen once."""
    last = scene.requests[-1].body["messages"]
    answers = {text for _, behind in segments(last) for text in words_in(behind)}
    answers.add(heard(unanswered(last)))
    seen = Counter(text for text in scene.shown() if not any(mark in text for mark in OF_THE_HOST))
    begun = seen.pop(BEGUN, 0)
    doubted = scene.doubted()
    assert seen.pop(ANSWER_IN_DOUBT, 0) == len(doubted)
    assert answers - set(doubted) <= seen.keys() <= answers
    assert max(seen.values()) <= 2, seen
    doubles = seen.total() - len(seen) + begun
    assert doubles <= KILLS_A_SEED, seen
    return doubles
