"""A person on Telegram and the real host: approval, memory, pairing, commands, kill -9."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.acceptance.processes import OWNER, STRANGER, lodger, make_place, openai_model, running_host, texts
from tests.platforms.model_script import Answer, Call
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_server import TOKEN, TelegramServer

WAIT = 40.0


@pytest.fixture
async def telegram():
    async with TelegramServer(TOKEN) as server:
        yield server


def place_for(tmp_path, telegram, **more):
    return make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, **more)


def last(telegram, chat=OWNER):
    return telegram.visible(chat)[-1]


async def said(telegram, part: str, chat=OWNER):
    """Wait for a visible message that holds `part` and return it."""
    await telegram.wait_for(lambda: [m for m in telegram.visible(chat) if part in m.text], timeout=WAIT)
    return next(m for m in reversed(telegram.visible(chat)) if part in m.text)


async def test_a_command_waits_for_its_owner_runs_in_the_sandbox_and_the_answer_is_delivered(tmp_path, telegram):
    place = place_for(tmp_path, telegram)
    (place.workspace / "plan.txt").write_text("ship it")
    async with running_host(place):
        telegram.user_says(OWNER, "list files")
        card = await said(telegram, "May I run")
        assert "ls -la && echo hello from the sandbox" in card.text
        telegram.press(OWNER, card.id, card.buttons["Approve"])
        answer = await said(telegram, "this came back")
        assert "plan.txt" in answer.text
        settled = await said(telegram, "Approved by")
        assert settled.id == card.id
        assert settled.buttons == {}
        assert "ls -la" in settled.text


async def test_a_fact_told_in_one_conversation_is_known_in_the_next(tmp_path, telegram):
    place = place_for(tmp_path, telegram)
    async with running_host(place):
        telegram.user_says(OWNER, "remember that I like green tea")
        line = await said(telegram, "Remembered:")
        assert set(line.buttons) == {"Diff", "Undo"}
        assert line.silent
        telegram.user_says(OWNER, "/new")
        await said(telegram, "A new conversation")
        telegram.user_says(OWNER, "what do you remember?")
        assert "green tea" in (await said(telegram, "From my memory")).text
        telegram.press(OWNER, line.id, line.buttons["Undo"])
        await said(telegram, "Undone by")
        telegram.user_says(OWNER, "what do you remember?")
        await said(telegram, "nothing")


async def test_a_stranger_gets_a_code_and_talks_after_an_owner_accepted_it(tmp_path, telegram):
    place = place_for(tmp_path, telegram)
    async with running_host(place):
        telegram.user_says(STRANGER, "hello")
        greeting = await said(telegram, "Give my owner this code", STRANGER)
        code = greeting.text.split("code: ")[1].split()[0]
        accepted = await lodger(place, "pair", code)
        assert "may talk to me now" in accepted.out
        again = await lodger(place, "pair", code)
        assert "no open code" in again.out
        telegram.user_says(STRANGER, "hello")
        await said(telegram, "scripted demo model", STRANGER)
        telegram.user_says(STRANGER, "/mode unrestricted")
        await said(telegram, "You may not set mode", STRANGER)


@pytest.mark.parametrize("command", ["/help", "/status", "/mode", "/memory", "/whoami", "/why", "/cancel", "/nonsense"])
async def test_every_command_is_answered(tmp_path, telegram, command):
    place = place_for(tmp_path, telegram)
    async with running_host(place):
        telegram.user_says(OWNER, command)
        await telegram.wait_for(lambda: telegram.visible(OWNER), timeout=WAIT)
        assert len(texts(telegram.visible(OWNER))) == 1


async def test_an_approval_outlives_kill_9_and_its_command_runs_once(tmp_path, telegram):
    """C23, and the kill -9 half of C21."""
    script = [
        Answer(calls=[Call("c1", "shell", '{"command":"echo ran >> out.txt"}')]),
        Answer(text="It ran."),
    ]
    async with OpenAIServer(script) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        async with running_host(place) as host:
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            await host.kill()
        async with running_host(place):
            telegram.press(OWNER, card.id, card.buttons["Approve"])
            telegram.press(OWNER, card.id, card.buttons["Approve"], stale=True)
            await said(telegram, "It ran.")
        assert (place.workspace / "out.txt").read_text() == "ran\n"
        assert len(model.bodies) == 2


async def test_updates_that_were_fetched_before_a_kill_are_answered_once_each(tmp_path, telegram):
    """C04: nothing is confirmed before it is stored, nothing is answered twice."""
    async with OpenAIServer([Answer(text=f"answer {n}") for n in range(9)]) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        gate = telegram.gate_next("sendMessage")
        async with running_host(place) as host:
            for word in ("one", "two", "three"):
                telegram.user_says(OWNER, word)
            await asyncio.wait_for(gate.entered.wait(), WAIT)
            gate.opened.set()
            await said(telegram, "answer 0")
            await host.kill()
        async with running_host(place):
            await telegram.wait_for(lambda: len(telegram.visible(OWNER)) >= 3, timeout=WAIT)
            telegram.user_says(OWNER, "four")
            await telegram.wait_for(lambda: len(telegram.visible(OWNER)) >= 4, timeout=WAIT)
        questions = [words for body in model.bodies for words in user_texts(body)[-1:]]
        assert sorted(questions) == sorted(["one", "two", "three", "four"])


def user_texts(body):
    """Return what people said in a request, reminders left out."""
    found = []
    for message in body["messages"]:
        if message["role"] == "user":
            blocks = message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]
            found.extend(b["text"] for b in blocks if not b["text"].startswith("<system-"))
    return found


async def test_a_message_that_arrives_while_a_decision_is_awaited_is_queued_and_answered_after(tmp_path, telegram):
    script = [
        Answer(calls=[Call("c1", "shell", '{"command":"make x"}')]),
        Answer(text="I did not."),
        Answer(text="Yes, I am here."),
    ]
    async with OpenAIServer(script) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        async with running_host(place):
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            telegram.user_says(OWNER, "are you there?")
            notice = await said(telegram, "Your message is queued")
            telegram.press(OWNER, notice.id, notice.buttons["Deny and read my message"])
            await said(telegram, "Yes, I am here.")
            assert "Denied by" in next(m for m in telegram.visible(OWNER) if m.id == card.id).text
        assert user_texts(model.bodies[2])[-1] == "are you there?"


async def test_only_an_approver_decides_and_only_on_the_card_of_that_chat(tmp_path, telegram):
    """C22 A, B and C."""
    script = [Answer(calls=[Call("c1", "shell", '{"command":"make x"}')]), Answer(text="Done.")]
    async with OpenAIServer(script) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        async with running_host(place):
            telegram.user_says(OWNER, "do it")
            card = await said(telegram, "May I run")
            token = card.buttons["Approve"]
            telegram.user_says(STRANGER, "hi")
            other = await said(telegram, "We have not met", STRANGER)
            for query in (
                telegram.press(OWNER, card.id, token, user=STRANGER),
                telegram.press(STRANGER, other.id, token, user=STRANGER, stale=True),
                telegram.press(STRANGER, other.id, token, user=OWNER, stale=True),
            ):
                await telegram.wait_for(lambda q=query: q in telegram.answers, timeout=WAIT)
            assert len(model.bodies) == 1
            audit = await lodger(place, "approvals")
            assert "make x" in audit.out
            telegram.press(OWNER, card.id, token)
            await said(telegram, "Done.")


async def test_a_second_host_on_the_directory_is_refused_with_the_reason(tmp_path, telegram):
    place = place_for(tmp_path, telegram)
    async with running_host(place):
        second = await lodger(place, "up")
        assert second.code == 1
        assert "in use by process" in second.err
        assert "Traceback" not in second.err


async def test_sigterm_ends_the_host_cleanly(tmp_path, telegram):
    place = place_for(tmp_path, telegram)
    async with running_host(place) as host:
        telegram.user_says(OWNER, "hello")
        await said(telegram, "scripted demo model")
        assert await host.stop() == 0
        assert "Traceback" not in host.output


async def told_to_stop(host) -> None:
    """Send SIGTERM, and return when the host has ended or has had the time for it."""
    host.process.send_signal(signal.SIGTERM)
    for _ in range(150):  # far less than it waits for a message that is being sent
        await asyncio.sleep(0.01)
        if "Lodger has stopped." in host.lines:
            return


async def test_an_answer_that_is_being_sent_at_sigterm_is_seen_once_also_after_the_next_start(tmp_path, telegram):
    """Cut off before the platform answers, the send would be made again."""
    async with OpenAIServer([Answer(text="the answer"), Answer(text="the next answer")]) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        async with running_host(place) as host:
            gate = telegram.gate_answer("sendMessage")
            telegram.user_says(OWNER, "hi")
            await asyncio.wait_for(gate.entered.wait(), WAIT)
            await told_to_stop(host)
            gate.opened.set()
            assert await host.process.wait() == 0
            assert "Traceback" not in host.output
        async with running_host(place):
            telegram.user_says(OWNER, "and now?")
            await said(telegram, "the next answer")
        assert texts(telegram.visible(OWNER)) == ["the answer", "the next answer"]
