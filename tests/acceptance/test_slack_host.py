"""A whole host on Slack: what a team does with it."""

from __future__ import annotations

import json

from core.sandbox.fake import FakeOutcome
from tests.acceptance.wired_slack import wired_slack
from tests.platforms.model_script import Answer, Call
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, ROOM

LINE = "make report"


async def test_a_mention_is_answered_once_in_its_thread(tmp_path):
    """C02, C09: message and app_mention are one; the answer stays in the thread of its root."""
    async with wired_slack(tmp_path, Answer(text="Hello, **Alice**."), Answer(text="Teal.")) as run:
        root = run.slack.user_says(ROOM, ALICE, "<@U0BOT> hello")
        await run.until(lambda: run.texts(ROOM, root))
        await run.until_settled()
        assert run.texts(ROOM, root) == ["Hello, *Alice*."]
        run.slack.user_says(ROOM, BOB, "<@U0BOT> which colour?", thread_ts=root)
        await run.until(lambda: "Teal." in run.texts(ROOM, root))
        await run.until_settled()
        assert len(run.model.requests) == 2


async def test_a_direct_message_is_answered_below_it(tmp_path):
    async with wired_slack(tmp_path, Answer(text="Hi.")) as run:
        root = run.slack.user_says(ALICE_DM, ALICE, "hello")
        await run.until(lambda: "Hi." in run.texts(ALICE_DM, root))
        await run.until_settled()


async def test_an_approval_is_given_by_its_button(tmp_path):
    steps = Answer(calls=[Call("call-1", "shell", json.dumps({"command": LINE}))]), Answer(text="It is done.")
    async with wired_slack(tmp_path, *steps, outcomes={LINE: FakeOutcome(output=b"made")}) as run:
        root = run.slack.user_says(ROOM, ALICE, "<@U0BOT> do it")
        await run.until(lambda: any("May I run" in text for text in run.texts(ROOM, root)))
        card = next(m for m in run.slack.visible(ROOM, root) if "May I run" in m.text)
        run.slack.presses(ALICE, ROOM, card.ts, "Approve")
        await run.until(lambda: "It is done." in run.texts(ROOM, root))
        await run.until_settled()
