"""kill -9 of the real host at named points on Slack: nothing lost, no tool twice, and no text twice at all.

Every point is reached from outside: by what Slack and the model see, or by what stands in the
database. Slack is asked after a restart what became of a send, so that no kill doubles a text.
"""

from __future__ import annotations

from tests.acceptance.kill_kit import BEGUN, happens, serving_host, until
from tests.acceptance.slack_kit import SlackScene, require_sound_on_slack, slack_scene
from tests.platforms.slack_faults import Fault

COMMANDS = {"errand": ("echo errand >> ran.txt",)}
SHOWN_LIVE = "SELECT 1 FROM outbox WHERE state = 'live' AND external_id IS NOT NULL"
"""Whether the database knows the message that a preview is shown in."""


async def test_a_message_whose_host_is_killed_at_every_point_of_its_way_has_one_turn_and_one_answer(tmp_path):
    """One life for each point; Slack tells again what was not acknowledged."""
    async with slack_scene(tmp_path) as lives:
        slack = lives.slack
        # No preview, however slow the machine is: the answer is a post.
        slack.refuse_next("chat.startStream", "internal_error", times=9)
        async with serving_host(lives.place) as host:  # behind the inbox, before the ack, in the model call
            await until(lambda: slack.sockets.is_open)
            slack.fault("ack", Fault.LOST_REQUEST)
            lives.model.hold_next()
            told = lives.says("hello")
            await lives.asked(1)
            await host.kill()
        assert told.acked_at is None
        assert (lives.rows("SELECT count(*) FROM inbox"), lives.sends()) == ([(1,)], [])
        slack.redeliver(told)
        await killed_when_it_calls(lives, slack.gate_next("chat.postMessage"))  # marked, not sent
        assert told.acked_at is not None
        assert (lives.shown(), lives.sends()) == ([], ["attempted"])
        await killed_when_it_calls(lives, slack.gate_answer("chat.postMessage"))  # sent, not marked
        assert (lives.shown(), lives.sends()) == (["Heard hello."], ["attempted"])
        await killed_when_it_calls(lives, slack.gate_answer("conversations.replies"))  # found, not marked
        assert lives.sends() == ["attempted"]
        await require_sound_on_slack(lives)
        assert lives.shown() == ["Heard hello.", "Heard afterwards."]
        assert lives.rows("SELECT count(*), count(DISTINCT turn_id) FROM inbox") == [(2, 2)]
        assert [call.status for call in slack.calls_of("chat.postMessage")] == [0, 0, 200]


async def killed_when_it_calls(lives: SlackScene, gate) -> None:
    """Start a host and kill it when it is at a gate."""
    async with serving_host(lives.place) as host:
        await happens(gate.entered)
        await host.kill()


async def test_killed_between_two_pieces_of_a_stream_that_is_not_and_one_that_is_on_record(tmp_path):
    """What nobody recorded stays as it is above the answer; a stream on record becomes the answer."""
    async with slack_scene(tmp_path) as lives:
        lives.model.hold_next(piece=1)
        async with serving_host(lives.place) as host:
            starting = lives.slack.gate_answer("chat.startStream")
            lives.says("hello")
            await happens(starting.entered)
            await host.kill()
        async with serving_host(lives.place) as host:
            await lives.hears("hello")
            lives.model.hold_next(piece=1)
            lives.says("more")
            await until(lambda: lives.shown()[-1] == BEGUN and lives.rows(SHOWN_LIVE))
            streamed = lives.visible()[-1]
            assert (streamed.text, streamed.stream) == (BEGUN, "streaming")
            await host.kill()
        await require_sound_on_slack(lives)
        assert lives.shown() == [BEGUN, "Heard hello.", "Heard more.", "Heard afterwards."]
        assert lives.visible()[2].ts == streamed.ts


async def test_killed_while_an_approval_waits_its_old_card_decides(tmp_path):
    async with slack_scene(tmp_path, commands=COMMANDS, more="") as lives:
        async with serving_host(lives.place) as host:
            lives.says("errand")
            card = await lives.card()
            await until(lambda: lives.sends() == ["sent"])
            await until(lambda: lives.rows("SELECT 1 FROM turns WHERE state = 'parked'"))
            await host.kill()
        approve = card.buttons["Approve"]
        assert lives.ran() == []
        await require_sound_on_slack(lives, once_up=lambda: lives.presses(card, approve))
        require_approved_once(lives, card.ts)


async def test_killed_before_a_card_is_on_record_and_again_before_its_press_is_answered(tmp_path):
    """The card is found again, so there is one; it decides once, whatever is pressed afterwards."""
    async with slack_scene(tmp_path, commands=COMMANDS, more="") as lives:
        async with serving_host(lives.place) as host:
            posting = lives.slack.gate_answer("chat.postMessage")
            lives.says("errand")
            card = await lives.card()
            buttons = dict(card.buttons)
            await happens(posting.entered)
            await host.kill()
        answering = lives.slack.gate_next("respond")
        async with serving_host(lives.place) as host:
            await until(lambda: lives.slack.sockets.is_open)
            lives.presses(card, buttons["Approve"])
            await happens(answering.entered)
            await until(lives.ran)  # else it may be killed when the command is begun and has done nothing
            await host.kill()
        await require_sound_on_slack(lives, once_up=lambda: lives.presses(card, buttons["Deny"]))
        require_approved_once(lives, card.ts)


def require_approved_once(lives: SlackScene, card_ts: str) -> None:
    """The command ran once, and its one card is settled where it was."""
    assert lives.ran() == ["errand"]
    assert lives.cards() == []
    assert lives.visible()[0].ts == card_ts
    assert [text.partition(" by ")[0] for text in lives.shown()] == ["Approved", "Heard errand.", "Heard afterwards."]
