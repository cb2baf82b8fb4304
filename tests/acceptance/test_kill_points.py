"""kill -9 of the real host at named points: nothing lost, no tool twice, no second answer, and it goes on.

Every point is reached from outside: by what Telegram and the model see, by what stands in the
database, or by a command that ends its own host. Where a file or a person is waited for, the
fakes hold the call; nothing in the product knows of these tests.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from bot.conversations.outbox import ANSWER_IN_DOUBT
from tests.acceptance.kill_kit import (
    BEGUN,
    RULES,
    WAIT,
    happens,
    let_pass,
    outcomes,
    require_sound,
    scene,
    serving_host,
    starting_host,
    until,
)
from tests.acceptance.processes import OWNER
from tests.platforms.telegram_faults import Fault

UNSAFE = f'{RULES}[sandbox]\nkind = "unsafe_host_shell"\n'
EFFECT = "echo {} >> ran.txt"
SLOW = "echo errand >> ran.txt; while [ ! -e go ]; do sleep 0.02; done"
STARTS = (0.2, 0.5, 0.8, 1.1, 1.5)
"""How long hosts live that are killed while they start."""
LOOKED_AWAY_MICROS = 61_000_000


async def test_killed_after_the_inbox_commit_and_before_the_update_is_confirmed(tmp_path):
    """Point 1."""
    async with scene(tmp_path) as lives:
        async with serving_host(lives.place) as host:
            await lives.telegram.wait_for(lambda: lives.telegram.updates.is_polled, timeout=WAIT)
            confirming = lives.telegram.gate_next("getUpdates")
            lives.says("hello")
            await happens(confirming.entered)
            await host.kill()
        assert len(lives.telegram.updates.unconfirmed) == 1
        assert lives.rows("SELECT count(*) FROM inbox") == [(1,)]
        await require_sound(lives)
        assert lives.rows("SELECT count(*) FROM inbox") == [(2,)]


@pytest.mark.parametrize("commands", [(), (EFFECT.format("errand"),)], ids=["first step", "behind a tool"])
async def test_killed_during_the_model_call(tmp_path, commands):
    """Point 2."""
    async with scene(tmp_path, commands={"errand": commands}) as lives:
        async with serving_host(lives.place) as host:
            if not commands:
                lives.model.hold_next()
            lives.says("errand")
            await lives.asked(1)
            if commands:
                lives.model.hold_next()
                await lives.asked(2)
            await host.kill()
        await require_sound(lives)
        assert lives.ran() == ["errand"] * len(commands)


async def test_killed_between_two_pieces_of_an_answer_whose_preview_is_visible(tmp_path):
    """Point 3: the answer takes the place of the preview."""
    async with scene(tmp_path) as lives:
        lives.model.hold_next(piece=1)
        async with serving_host(lives.place) as host:
            lives.says("hello")
            await until(lambda: shown_live(lives))
            assert lives.shown() == [BEGUN]
            await host.kill()
        await require_sound(lives)
        assert lives.shown() == ["Heard hello.", "Heard afterwards."]


async def test_killed_before_the_preview_that_is_visible_is_on_record(tmp_path):
    """Point 3: the one double of a text; what is left of the preview stays above the answer."""
    async with scene(tmp_path) as lives:
        lives.model.hold_next(piece=1)
        async with serving_host(lives.place) as host:
            posting = lives.telegram.gate_answer("sendMessage")
            lives.says("hello")
            await happens(posting.entered)
            await host.kill()
        await require_sound(lives)
        assert lives.shown() == [BEGUN, "Heard hello.", "Heard afterwards."]


def shown_live(lives) -> bool:
    """Whether the database knows the message that a preview is shown in."""
    return bool(lives.rows("SELECT 1 FROM outbox WHERE state = 'live' AND external_id IS NOT NULL"))


async def test_killed_after_the_effect_of_a_tool_and_before_its_result_is_stored(tmp_path):
    """Point 4: the command itself ends the host; the calls before it keep their results."""
    commands = {}
    async with scene(tmp_path, commands=commands, more=UNSAFE) as lives:
        async with serving_host(lives.place) as host:
            kills = f"{EFFECT.format('second')}; kill -9 {host.process.pid}"
            commands["errand"] = (f"{EFFECT.format('first')}; echo fine", kills, EFFECT.format("third"))
            lives.says("errand")
            async with asyncio.timeout(WAIT):
                assert await host.process.wait() == -9
        await require_sound(lives)
        assert lives.ran() == ["first", "second", "third"]
        first, second, third = (text for _, text in outcomes(lives.requests[-1].body["messages"]))
        assert "fine" in first
        assert "unknown" in second
        assert "unknown" not in third


async def card_of(lives):
    """Wait for the card of the first question."""
    await lives.telegram.wait_for(lambda: cards(lives), timeout=WAIT)
    return cards(lives)[0]


def cards(lives):
    return [message for message in lives.telegram.visible(OWNER) if "May I run" in message.text]


@pytest.mark.parametrize("is_on_record", [True, False], ids=["on record", "not on record"])
async def test_killed_while_an_approval_waits_its_old_card_decides(tmp_path, is_on_record):
    """Point 5."""
    async with scene(tmp_path, commands={"errand": (EFFECT.format("errand"),)}, more="") as lives:
        async with serving_host(lives.place) as host:
            posting = None if is_on_record else lives.telegram.gate_answer("sendMessage")
            lives.says("errand")
            card = await card_of(lives)
            if posting is None:
                await until(lambda: lives.rows("SELECT 1 FROM turns WHERE state = 'parked'"))
                await until(lambda: lives.rows("SELECT 1 FROM outbox WHERE state = 'sent'"))
            else:
                await happens(posting.entered)
            await host.kill()
        lives.telegram.press(OWNER, card.id, card.buttons["Approve"])
        await require_sound(lives)
        assert lives.ran() == ["errand"]
        assert len(lives.shown()) == (3 if is_on_record else 4)  # a card, or its double, and two answers
        # The card that nobody recorded keeps its look; what it asks about is decided all the same.
        assert len(cards(lives)) == (0 if is_on_record else 1)


async def test_killed_when_a_decision_is_stored_and_its_press_is_not_answered(tmp_path):
    """Point 5: it is decided once, whatever is pressed again afterwards."""
    async with scene(tmp_path, commands={"errand": (EFFECT.format("errand"),)}, more="") as lives:
        async with serving_host(lives.place) as host:
            lives.says("errand")
            card = await card_of(lives)
            answering = lives.telegram.gate_next("answerCallbackQuery")
            approve = card.buttons["Approve"]
            lives.telegram.press(OWNER, card.id, approve)
            await happens(answering.entered)
            await until(lives.ran)  # Killed between its beginning and its effect, it would rightly not be repeated.
            await host.kill()
        lives.telegram.press(OWNER, card.id, card.buttons.get("Deny", approve), stale=True)
        await require_sound(lives)
        assert lives.ran() == ["errand"]
        assert len(lives.shown()) == 3


async def test_killed_when_an_answer_is_due_and_its_request_does_nothing(tmp_path):
    """Point 6: it is sent once, after the next start."""
    async with scene(tmp_path) as lives:
        async with serving_host(lives.place) as host:
            sending = lives.telegram.gate_next("sendMessage")
            lives.says("hello")
            await happens(sending.entered)
            await host.kill()
        assert lives.shown() == []
        await require_sound(lives)


async def test_killed_when_the_request_was_lost_and_the_answer_waits_for_another_try(tmp_path):
    """Point 6: one try with an unknown outcome is on record, the next host makes the second."""
    async with scene(tmp_path) as lives:
        async with serving_host(lives.place) as host:
            lives.telegram.fault("sendMessage", Fault.LOST_REQUEST)
            lives.says("hello")
            await until(lambda: lives.rows("SELECT 1 FROM outbox WHERE unknown_sends = 1 AND not_before > 0"))
            await host.kill()
        await require_sound(lives)


@pytest.mark.parametrize("kills", [1, 2])
async def test_killed_between_the_send_and_its_record_a_text_is_seen_twice_at_most(tmp_path, kills):
    """Point 7: nobody can ask Telegram; a second kill there makes no third message."""
    async with scene(tmp_path) as lives:
        for _ in range(kills):
            sent = lives.telegram.gate_answer("sendMessage")
            async with serving_host(lives.place) as host:
                if not lives.said:
                    lives.says("hello")
                await happens(sent.entered)
                await host.kill()
        await require_sound(lives, doubles=1)
        assert lives.heard() == {"hello": 2, "afterwards": 1}
        assert lives.shown().count(ANSWER_IN_DOUBT) == kills - 1


async def test_killed_again_and_again_while_it_starts(tmp_path):
    """Point 8: at growing delays, then inside the model call that a start repeats."""
    async with scene(tmp_path, commands={"errand": (EFFECT.format("errand"),)}) as lives:
        async with serving_host(lives.place) as host:
            lives.says("errand")
            await lives.asked(1)
            lives.model.hold_next()
            await lives.asked(2)
            await host.kill()
        for seconds in STARTS:
            lives.model.hold_next()
            async with starting_host(lives.place):
                await let_pass(lives.telegram, seconds)
        async with starting_host(lives.place):
            await lives.asked(len(lives.requests) + 1)
        lives.model.hold_none()
        await require_sound(lives)
        assert lives.ran() == ["errand"]


@pytest.mark.parametrize("moment", ["waits", "taken", "asked"])
async def test_killed_around_the_boundary_at_which_a_steering_message_enters(tmp_path, moment):
    """Point 9: before it is taken, right after, and when the model has got it."""
    async with scene(tmp_path, commands={"errand": (SLOW,)}) as lives:
        async with serving_host(lives.place) as host:
            lives.says("errand")
            await until(lives.ran)
            lives.says("more")
            await until(lambda: lives.rows("SELECT 1 FROM inbox WHERE state = 'queued'"))
            lives.model.hold_next()
            if moment != "waits":
                (lives.place.workspace / "go").touch()
            if moment == "taken":
                await until(lambda: lives.rows("SELECT 1 FROM inbox WHERE step > 0"))
            if moment == "asked":
                await lives.asked(2)
            await host.kill()
        lives.model.hold_none()
        await require_sound(lives)
        assert lives.ran() == ["errand"]
        assert lives.rows("SELECT count(DISTINCT turn_id) FROM inbox") == [(2,)]


async def test_killed_while_a_file_is_downloaded(tmp_path):
    """Point 10: it is fetched anew, and its message is answered before the one behind it."""
    data = b"all of it " * 20_000
    async with scene(tmp_path) as lives:
        file = lives.telegram.files.keep(data, name="notes.txt", media_type="text/plain")
        slow = lives.telegram.fault("download", Fault.SLOW, seconds=3600)
        async with serving_host(lives.place) as host:
            lives.says("look", **file.as_json())
            lives.says("hello")
            await happens(slow.entered)
            await until(lambda: [path for path in lives.place.data.rglob("*.part") if path.stat().st_size])
            await host.kill()
        await require_sound(lives)
        assert [path.read_bytes() for path in lives.place.data.rglob("*notes.txt*")] == [data]
        assert str(lives.requests[-1].body["messages"]).count("With what follows came") == 1


async def test_killed_between_a_late_answer_and_the_removal_of_its_preview(tmp_path):
    """Point 11: the host was down for so long that the answer became a message of its own."""
    async with scene(tmp_path) as lives:
        lives.model.hold_next(piece=1)
        async with serving_host(lives.place) as host:
            lives.says("hello")
            await until(lambda: shown_live(lives))
            await host.kill()
        let_look_away(lives)
        removing = lives.telegram.gate_next("deleteMessage")
        async with serving_host(lives.place) as host:
            await happens(removing.entered)
            await host.kill()
        assert lives.shown() == [BEGUN, "Heard hello."]
        await require_sound(lives)
        assert lives.shown() == ["Heard hello.", "Heard afterwards."]


def let_look_away(lives) -> None:
    """Let the preview be older than it is, as after a minute without a host."""
    with closing(sqlite3.connect(lives.place.data / "host.db")) as connection, connection:
        connection.execute("UPDATE outbox SET shown_at = shown_at - ? WHERE state = 'live'", (LOOKED_AWAY_MICROS,))
