"""A whole host on Discord: what a project's channel does with it."""

from __future__ import annotations

import json

from core.sandbox.fake import FakeOutcome
from tests.acceptance.wired_discord import wired_discord
from tests.platforms.discord_guilds import ALICE, BOT, GENERAL
from tests.platforms.model_script import Answer, Call

LINE = "make report"


async def test_a_mention_is_answered_once_in_a_thread_of_its_own(tmp_path):
    """C09: the answer stays in the thread that begins with the question."""
    async with wired_discord(tmp_path, Answer(text="Hello, **Alice**."), Answer(text="Teal.")) as run:
        thread = run.discord.user_says(GENERAL, ALICE, f"<@{BOT}> hello")
        await run.until(lambda: run.texts(thread))
        await run.until_settled()
        assert run.texts(thread) == ["Hello, **Alice**."]
        assert run.texts(GENERAL) == []
        run.discord.user_says(thread, ALICE, f"<@{BOT}> which colour?")
        await run.until(lambda: "Teal." in run.texts(thread))
        await run.until_settled()
        assert len(run.model.requests) == 2


async def test_a_direct_message_is_answered(tmp_path):
    async with wired_discord(tmp_path, Answer(text="Hi.")) as run:
        run.discord.user_says(run.discord.dm(ALICE), ALICE, "hello")
        await run.until(lambda: run.texts(run.discord.dm(ALICE)) == ["Hi."])
        await run.until_settled()


async def test_an_approval_is_given_by_its_button(tmp_path):
    steps = Answer(calls=[Call("call-1", "shell", json.dumps({"command": LINE}))]), Answer(text="It is done.")
    async with wired_discord(tmp_path, *steps, outcomes={LINE: FakeOutcome(output=b"made")}) as run:
        chat = run.discord.dm(ALICE)
        run.discord.user_says(chat, ALICE, "do it")
        await run.until(lambda: any("May I run" in text for text in run.texts(chat)))
        card = next(m for m in run.discord.visible(chat) if "May I run" in m.text)
        press = run.discord.presses(ALICE, chat, card.id, card.buttons["Approve"])
        await run.until(lambda: "It is done." in run.texts(chat))
        await run.until_settled()
        assert not press.failed
