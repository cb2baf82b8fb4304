"""Commands about turns on Telegram, and the menus that offer them, with the real host."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.acceptance.processes import OWNER, running_host
from tests.acceptance.telegram_talk import WAIT, new_part, talking
from tests.platforms.model_script import Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory):
    async with talking(tmp_path_factory.mktemp("commands"), more='direct_messages = "open"') as running:
        yield running


async def busy(talk, person: int) -> asyncio.Event:
    """Begin a turn of that person that lasts until the event is set."""
    release = asyncio.Event()
    work = f"work of {person}"
    talk.mind.on(work, Answer(text=["Begun. ", f"Done with {person}."], gates={1: release}))
    talk.telegram.user_says(person, work)
    await talk.telegram.wait_for(lambda: talk.mind.asked(work), timeout=WAIT)
    return release


async def test_a_pause_keeps_what_is_written_until_the_conversation_is_resumed(talk):
    talk.telegram.user_says(601, "/pause")
    await talk.said("Paused. What I am doing now", 601)
    for words in ("first", "second"):
        talk.telegram.user_says(601, f"{words} while paused")
    await talk.said("your message waits", 601)
    talk.telegram.user_says(601, "/status")
    assert "2 queued" in (await talk.said("queued", 601)).text
    assert talk.mind.asked("while paused") == []
    talk.telegram.user_says(601, "/resume")
    await talk.said("I heard: second while paused", 601)
    assert len(talk.shown("I heard", 601)) == 2
    assert len(talk.shown("your message waits", 601)) == 1


async def test_cancel_stops_the_turn_and_keeps_the_queue(talk):
    release = await busy(talk, 602)
    talk.telegram.user_says(602, "next please")
    talk.telegram.user_says(602, "/cancel")
    await talk.said("Stopping. Queued messages stay.", 602)
    await talk.said("I heard: next please", 602)
    release.set()
    assert talk.shown("Done with", 602) == []


async def test_in_interrupt_mode_a_message_stops_the_turn_and_goes_next(talk):
    talk.telegram.user_says(603, "/queue")
    await talk.said("Queue mode steer.", 603)
    talk.telegram.user_says(603, "/queue interrupt")
    await talk.said("Queue mode of this conversation: interrupt.", 603)
    release = await busy(talk, 603)
    talk.telegram.user_says(603, "no, this")
    await talk.said("I heard: no, this", 603)
    release.set()
    assert talk.shown("Done with", 603) == []
    assert "work of 603" not in new_part(talk.mind.asked("no, this")[0])


async def test_menus_are_set_for_three_scopes_and_not_again_after_a_restart(talk):
    telegram = talk.telegram
    telegram.user_says(OWNER, "/whoami")
    await talk.said("owner", OWNER)
    scopes = (("all_private_chats", None), ("all_group_chats", None), ("chat", OWNER))
    await telegram.wait_for(lambda: all(telegram.menus.shown(*scope) for scope in scopes), timeout=WAIT)
    direct, groups, own = (telegram.menus.shown(*scope) for scope in scopes)
    assert ("pair" in own, "pair" in direct, "pair" in groups) == (True, False, False)
    assert {"help", "new", "cancel", "status"} <= set(groups) < set(direct) < set(own)
    assert await talk.host.stop() == 0
    before, asked = len(telegram.calls_of("setMyCommands")), len(telegram.calls_of("getMyCommands"))
    async with running_host(talk.place):
        await telegram.wait_for(lambda: len(telegram.calls_of("getMyCommands")) >= asked + 3, timeout=WAIT)
        telegram.user_says(OWNER, "after the restart")
        await talk.said("after the restart", OWNER)
    assert len(telegram.calls_of("setMyCommands")) == before == 3
