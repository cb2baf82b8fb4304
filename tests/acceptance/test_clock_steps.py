"""The wall clock set forward or back by a day in the middle: during a turn, an open approval, a message that waits."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from core.sandbox.fake import FakeOutcome
from tests.acceptance.wired_telegram import Wired, wired
from tests.platforms.model_script import Answer, Call
from tests.platforms.telegram_faults import Fault

OWNER = 111
DAY = timedelta(days=1)
LINE = "make report"
OUTCOMES = {LINE: FakeOutcome(output=b"made")}


def asks_for_a_command() -> tuple[Answer, ...]:
    return Answer(calls=[Call("call-1", "shell", json.dumps({"command": LINE}))]), Answer(text="That is all.")


async def card(run: Wired):
    await run.until(lambda: [m for m in run.telegram.visible(OWNER) if "Approve" in m.buttons])
    return next(m for m in run.telegram.visible(OWNER) if "Approve" in m.buttons)


async def check_one_answer(run: Wired, text: str) -> None:
    await run.until(lambda: text in run.texts(OWNER))
    await run.until_settled()
    assert run.texts(OWNER).count(text) == 1
    assert len(await run.turns_of_messages()) == 1


@pytest.mark.parametrize("step", [DAY, -DAY], ids=["forward", "back"])
async def test_a_step_during_a_turn_changes_nothing(tmp_path, step):
    gate = asyncio.Event()
    async with wired(tmp_path, Answer(text=["The ", "answer."], gates={1: gate})) as run:
        run.telegram.user_says(OWNER, "hello")
        await run.until(lambda: run.model.bodies)
        run.clock.step_wall(step)
        gate.set()
        await check_one_answer(run, "The answer.")
        assert len(run.model.bodies) == 1


async def test_a_step_back_leaves_an_approval_open_and_its_command_runs_once(tmp_path):
    async with wired(tmp_path, *asks_for_a_command(), outcomes=OUTCOMES) as run:
        run.telegram.user_says(OWNER, "do it")
        asked = await card(run)
        run.clock.step_wall(-DAY)
        run.telegram.press(OWNER, asked.id, asked.buttons["Approve"])
        await check_one_answer(run, "That is all.")
        assert len(run.host.sandbox.commands) == 1


async def test_a_step_forward_lets_an_approval_expire_within_half_a_minute_and_nothing_runs(tmp_path):
    """It expires at its time on the wall, as it says itself; the engine looks there every 30 seconds."""
    async with wired(tmp_path, *asks_for_a_command(), outcomes=OUTCOMES) as run:
        run.telegram.user_says(OWNER, "do it")
        asked = await card(run)
        token = asked.buttons["Approve"]
        run.clock.step_wall(DAY)
        await run.passes(timedelta(seconds=31))
        await check_one_answer(run, "That is all.")
        run.telegram.press(OWNER, asked.id, token, stale=True)
        await run.until_settled()
        assert run.host.sandbox.commands == []
        assert len(run.model.bodies) == 2


async def test_a_step_forward_sends_a_message_that_waits_early_and_once(tmp_path):
    async with wired(tmp_path, Answer(text="The answer.")) as run:
        run.telegram.fault("sendMessage", Fault.FLOODED, seconds=149.0)
        run.telegram.user_says(OWNER, "hello")
        await run.until(lambda: run.telegram.calls_of("sendMessage"))
        run.clock.step_wall(DAY)
        await run.passes(timedelta(seconds=31))
        await check_one_answer(run, "The answer.")
        assert len(run.telegram.calls_of("sendMessage")) == 2


async def test_a_step_back_delays_a_message_that_waits_by_the_step_at_most_and_loses_nothing(tmp_path):
    async with wired(tmp_path, Answer(text="The answer.")) as run:
        run.telegram.fault("sendMessage", Fault.FLOODED, seconds=149.0)
        run.telegram.user_says(OWNER, "hello")
        await run.until(lambda: run.telegram.calls_of("sendMessage"))
        run.clock.step_wall(-DAY)
        await run.passes(DAY + timedelta(seconds=180))
        await check_one_answer(run, "The answer.")
        assert len(run.telegram.calls_of("sendMessage")) == 2
