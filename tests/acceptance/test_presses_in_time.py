"""C27: a press on Telegram is acknowledged before any slow work, and its decision counts once.

The real host as a process. Nothing here is timed: what would be slow is held until the
acknowledgement was seen.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import contextmanager

import pytest

from tests.acceptance.processes import OWNER, lodger, make_place, openai_model, running_host
from tests.acceptance.test_telegram_host import WAIT, said
from tests.platforms.model_script import Answer, Call
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_server import TOKEN, TelegramServer


@pytest.fixture
async def telegram():
    async with TelegramServer(TOKEN) as server:
        yield server


def asks(command: str) -> Answer:
    return Answer(calls=[Call("c1", "shell", f'{{"command":"{command}"}}')])


@contextmanager
def database_held(place):
    """Hold the write lock of the host's database, as a slow disk or a backup would."""
    other = sqlite3.connect(place.data / "host.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def test_a_press_is_acknowledged_while_the_database_cannot_be_written(tmp_path, telegram):
    """C27 (a)."""
    async with OpenAIServer([asks("echo ran >> out.txt"), Answer(text="It ran.")]) as model:
        place = make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(model.base_url))
        async with running_host(place):
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            with database_held(place):
                query = telegram.press(OWNER, card.id, card.buttons["Approve"])
                await telegram.wait_for(lambda: query in telegram.answers, timeout=WAIT)
                assert not (place.workspace / "out.txt").exists()
            await said(telegram, "It ran.")
            assert "Approved by" in (await said(telegram, "Approved by")).text
        assert (place.workspace / "out.txt").read_text() == "ran\n"
        assert len(model.bodies) == 2


async def test_a_press_is_acknowledged_while_the_approved_command_still_runs(tmp_path, telegram):
    """C27 (c)."""
    wait = "while [ ! -e go ]; do sleep 0.05; done; echo went >> out.txt"
    async with OpenAIServer([asks(wait), Answer(text="It went.")]) as model:
        place = make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(model.base_url))
        async with running_host(place):
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            query = telegram.press(OWNER, card.id, card.buttons["Approve"])
            await telegram.wait_for(lambda: query in telegram.answers, timeout=WAIT)
            settled = await said(telegram, "Approved by")
            assert settled.id == card.id
            assert not (place.workspace / "out.txt").exists()
            (place.workspace / "go").touch()
            await said(telegram, "It went.")
        assert (place.workspace / "out.txt").read_text() == "went\n"


async def test_a_press_is_acknowledged_while_other_turns_run(tmp_path, telegram):
    """C27 (b): twenty turns wait for their model."""
    gate = asyncio.Event()

    def answer(body):
        asked = str(body["messages"])
        if "do it" not in asked:
            return Answer(text="later", gates={0: gate})
        return Answer(text="It ran.") if "'tool'" in asked else asks("echo ran >> out.txt")

    async with OpenAIServer([answer]) as model:
        more = 'direct_messages = "open"'
        place = make_place(
            tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(model.base_url), more=more
        )
        async with running_host(place):
            for person in range(500, 520):
                telegram.user_says(person, "hello")
            async with asyncio.timeout(WAIT):
                while len(model.bodies) < 20:
                    await asyncio.sleep(0.01)
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            query = telegram.press(OWNER, card.id, card.buttons["Approve"])
            await telegram.wait_for(lambda: query in telegram.answers, timeout=WAIT)
            await said(telegram, "It ran.")
            gate.set()
            for person in range(500, 520):
                await said(telegram, "later", person)
        assert (place.workspace / "out.txt").read_text() == "ran\n"


async def test_an_acknowledgement_that_fails_loses_no_decision(tmp_path, telegram):
    """C27, last line: the platform says the query is too old; the card changes by an edit."""
    async with OpenAIServer([asks("echo ran >> out.txt"), Answer(text="It ran.")]) as model:
        place = make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(model.base_url))
        async with running_host(place):
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            too_old = {"ok": False, "error_code": 400, "description": "Bad Request: query is too old"}
            telegram.fail_next("answerCallbackQuery", 400, too_old, times=3)
            telegram.press(OWNER, card.id, card.buttons["Approve"])
            assert (await said(telegram, "Approved by")).id == card.id
            await said(telegram, "It ran.")
        assert (place.workspace / "out.txt").read_text() == "ran\n"


async def test_an_approval_that_somebody_else_pressed_times_out_as_undecided(tmp_path, telegram):
    """C24 C: the press is rejected, then time is up; the result names no person."""
    async with OpenAIServer([asks("rm -rf build"), Answer(text="Nobody decided.")]) as model:
        place = make_place(
            tmp_path,
            telegram_base=telegram.api_base,
            token=TOKEN,
            model=openai_model(model.base_url),
            more='allow = ["telegram:222"]\n[permissions]\ndeadline = "2s"\nremind_after = "1s"',
        )
        async with running_host(place):
            telegram.user_says(OWNER, "clean up")
            card = await said(telegram, "May I run")
            query = telegram.press(OWNER, card.id, card.buttons["Approve"], user=222)
            await telegram.wait_for(lambda: query in telegram.answers, timeout=WAIT)
            assert "Expired" in (await said(telegram, "Expired")).text
            await said(telegram, "Nobody decided.")
            waiting = await lodger(place, "approvals")
            assert "Nothing waits" in waiting.out
        told = model.bodies[1]["messages"][-1]["content"]
        assert "timed out" in str(told)
        assert "Bob" not in str(told)
