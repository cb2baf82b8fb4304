import asyncio

import pytest

from tests.channels.slack.sending import CHANNEL, DIRECT, opened
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE_DM, ROOM


def calls(scene, method="assistant.threads.setStatus"):
    return len(scene.server.calls_of(method))


async def test_what_slack_refuses_is_tried_no_further_and_told_once(caplog):
    caplog.set_level("INFO")
    async with opened() as scene:
        direct, room = scene.asked(), scene.asked(CHANNEL)
        scene.server.refuse_next("assistant.threads.setStatus", "not_allowed")
        for _ in range(3):
            await scene.statuses.show(direct, "thinking")
            await scene.statuses.show(room, "thinking")

        # Direct messages and channels are two things.
        assert calls(scene) == 1 + 3
        assert scene.server.agents.status(ROOM, room.thread) == "is thinking…"
    assert caplog.text.count("slack_status_refused") == 1


@pytest.mark.parametrize("word", ["not_in_channel", "invalid_thread_ts", "message_not_found"])
async def test_a_refusal_of_one_place_says_nothing_of_others(word):
    async with opened() as scene:
        thread = scene.asked()
        scene.server.refuse_next("assistant.threads.setStatus", word)
        for _ in range(2):
            await scene.statuses.show(thread, "thinking")

        assert calls(scene) == 2


async def test_a_limit_is_kept_and_then_over_c15():
    async with opened() as scene:
        thread = scene.asked()
        scene.server.fault("assistant.threads.setStatus", Fault.FLOODED, seconds=10)
        for _ in range(3):
            await scene.statuses.show(thread, "thinking")
        await scene.pass_time(10)
        await scene.statuses.show(thread, "thinking")

        assert calls(scene) == 2


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.ANSWERED])
async def test_what_fails_is_nobodys_concern(fault):
    async with opened() as scene:
        scene.server.fault("agents.sessions.setStatus", fault)
        thread = scene.asked()
        await scene.statuses.begin(thread)
        await scene.statuses.begin(thread)

        assert scene.server.agents.sessions[ALICE_DM, thread.thread].status == "processing"


async def test_a_status_names_nobody_and_is_cut_c17():
    async with opened() as scene:
        thread = scene.asked()
        await scene.statuses.show(thread, "running <!channel> " + "x" * 200)
        (call,) = scene.server.calls_of("assistant.threads.setStatus")

        assert "<!" not in call.params["status"]
        assert len(call.params["status"]) <= 104


async def test_a_session_has_the_first_line_of_what_was_asked_as_its_title():
    async with opened() as scene:
        thread = scene.asked()
        await scene.statuses.begin(thread)
        await scene.statuses.entitle(thread, "\n What is <this>?\nmore")
        assert scene.server.agents.sessions[ALICE_DM, thread.thread].title == "What is <this>?"
        await scene.statuses.entitle(thread, "x" * 300)
        assert len(scene.server.agents.sessions[ALICE_DM, thread.thread].title) == 200
        await scene.statuses.entitle(thread, " ")
        await scene.statuses.entitle(DIRECT, "no thread")

        assert calls(scene, "agents.sessions.rename") == 2


async def test_at_most_four_prompts_are_offered():
    async with opened() as scene:
        await scene.statuses.suggest(ALICE_DM, ["a", " ", "b", "c", "d", "e"])
        await scene.statuses.suggest(ALICE_DM, [])
        prompts = scene.server.agents.prompts[ALICE_DM, ""]

        assert [prompt["message"] for prompt in prompts] == ["a", "b", "c", "d"]
        assert calls(scene, "assistant.threads.setSuggestedPrompts") == 1


async def test_a_title_that_comes_before_its_session_is_set_when_that_begins():
    async with opened() as scene:
        early, late = scene.asked(text="What is this?"), scene.asked(text="And that?")
        await scene.statuses.entitle(early, "What is this?")
        assert (ALICE_DM, early.thread) not in scene.server.agents.sessions
        await scene.statuses.begin(early)
        await scene.statuses.begin(early)
        await scene.statuses.begin(late)
        await scene.statuses.entitle(late, "And that?")
        sessions = scene.server.agents.sessions

        assert sessions[ALICE_DM, early.thread].title == "What is this?"
        # The early one cost no session of others its title.
        assert sessions[ALICE_DM, late.thread].title == "And that?"
        assert calls(scene, "agents.sessions.rename") == 3


async def test_a_session_that_begins_while_its_title_is_refused_has_it_all_the_same():
    async with opened() as scene:
        thread = scene.asked()
        gate = scene.server.gate_answer("agents.sessions.rename")
        entitling = asyncio.create_task(scene.statuses.entitle(thread, "Early"))
        await gate.entered.wait()
        await scene.statuses.begin(thread)
        gate.opened.set()
        await entitling

        assert scene.server.agents.sessions[ALICE_DM, thread.thread].title == "Early"
