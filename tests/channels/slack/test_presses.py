"""Answers to acts of people on the fake Slack, over the wire; what comes too late is logged and left."""

from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from channels.contract import Form, FormField
from channels.slack.acts import ASK, QUESTION, Reply, parse_command, parse_form, parse_press, parse_shortcut, unpacked
from channels.slack.forms import FORM
from channels.slack.presses import Replies
from core.contracts.addresses import Button, CardContent, CommandBody, OutboundItem, PressBody
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown
from tests.channels.slack import sending
from tests.channels.slack.sending import CHANNEL
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, ROOM

CARD = CardContent(text="Run?", rows=((Button(token="t-deny", label="Deny"),),))
REASON = Form(token="t-deny", title="Deny", fields=(FormField(name="reason", label="Why?", lines=3),))
LATE = timedelta(minutes=30, seconds=1)
LATE_FOR_A_FORM = timedelta(seconds=4)


@asynccontextmanager
async def opened():
    """Give a scene, and what answers acts in it."""
    async with sending.opened() as scene:
        yield scene, Replies(scene.api)


async def pressed(scene, by=ALICE):
    """Let somebody press the button of a card, and return the press as it is handed over."""
    ts = await scene.deliver(OutboundItem(id="t/card", address=CHANNEL, content=CARD))
    act = parse_press(scene.server.presses(by, ROOM, ts, "Deny").payload)
    return PressBody(token=act.token, card=act.card, acknowledge=act.reply.packed())


def commanded(scene, by=ALICE, channel=ROOM):
    """Let somebody give a command, and return it as it is handed over."""
    act, words = parse_command(scene.server.runs_command("/lodger", "status", by, channel).payload)
    return CommandBody(text=words, acknowledge=act.reply.packed())


def answers(scene, channel=ROOM):
    return [(message.shown_to, message.text) for message in scene.server.ephemeral(channel)]


# Answers


async def test_a_press_is_answered_to_whoever_pressed_and_the_card_stays():
    async with opened() as (scene, replies):
        press = await pressed(scene, by=BOB)
        await replies.answer(press, "**Denied**, not `run` & done.")

        assert answers(scene) == [(BOB, "*Denied*, not `run` &amp; done.")]
        assert [message.text for message in scene.server.visible(ROOM)] == ["Run?"]
        assert scene.server.visible(ROOM)[0].buttons == {"Deny": "t-deny"}


@pytest.mark.parametrize("channel", [ROOM, ALICE_DM])
async def test_a_command_is_answered_to_its_giver_alone(channel):
    async with opened() as (scene, replies):
        await replies.answer(commanded(scene, channel=channel), "Nothing runs.")

        assert answers(scene, channel) == [(ALICE, "Nothing runs.")]
        assert scene.server.visible(channel) == []


async def test_a_form_that_was_sent_is_answered_like_the_press_that_opened_it():
    async with opened() as (scene, replies):
        await replies.open_form(await pressed(scene), REASON)
        _, act = parse_form(scene.server.submits(ALICE, {"reason": "no"}).payload)
        await replies.answer(PressBody(token=act.token, card=act.card, acknowledge=act.reply.packed()), "Denied.")

        assert answers(scene) == [(ALICE, "Denied.")]


async def test_an_answer_mentions_nobody_and_shows_no_previews():
    async with opened() as (scene, replies):
        await replies.answer(commanded(scene), "<!channel> <@U0BOB> https://example.com/")
        (call,) = scene.server.calls_of("respond")

        assert "<!channel>" not in call.params["text"]
        assert "<@U0BOB>" not in call.params["text"]
        assert (call.params["unfurl_links"], call.params["unfurl_media"]) == (False, False)
        assert call.params["response_type"] == "ephemeral"
        assert call.token == ""


async def test_a_long_answer_comes_in_as_many_parts_as_slack_takes():
    async with opened() as (scene, replies):
        await replies.answer(commanded(scene), "word " * 1500)
        shown = [text for _, text in answers(scene)]
        await replies.answer(commanded(scene), "word " * 9000)
        cut = [text for _, text in answers(scene)][len(shown) :]

        assert 1 < len(shown) < 5
        assert " ".join(shown).split() == ["word"] * 1500
        assert len(cut) == 5
        assert "cut" in cut[-1]
        assert {call.status for call in scene.server.calls_of("respond")} == {200}


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_answer_says_nothing(text):
    async with opened() as (scene, replies):
        await replies.answer(await pressed(scene), text)

        assert scene.server.calls_of("respond") == []


@pytest.mark.parametrize(
    "acknowledge",
    [None, "", "x", "{}", Reply(trigger="1.2.3").packed(), "12345678"],
)
async def test_an_act_without_an_address_is_not_answered(acknowledge):
    async with opened() as (scene, replies):
        await replies.answer(PressBody(token="t", card="", acknowledge=acknowledge), "Denied.")

        assert scene.server.calls == []


async def test_an_answer_that_comes_too_late_is_logged_and_left(caplog):
    caplog.set_level("INFO")
    async with opened() as (scene, replies):
        press = await pressed(scene)
        await scene.clock.advance(LATE)
        await replies.answer(press, "Denied.")

        assert [call.error for call in scene.server.calls_of("respond")] == ["expired_url"]
        assert answers(scene) == []
    (record,) = (record for record in caplog.records if record.message == "slack_act_not_answered")
    assert "expired_url" in record.detail
    assert record.levelname == "INFO"


async def test_a_sixth_answer_to_one_act_is_logged_and_left(caplog):
    caplog.set_level("INFO")
    async with opened() as (scene, replies):
        press = await pressed(scene)
        for number in range(7):
            await replies.answer(press, f"answer {number}")

        assert [text for _, text in answers(scene)] == [f"answer {number}" for number in range(5)]
    assert caplog.text.count("slack_act_not_answered") == 2


@pytest.mark.parametrize(
    "fault",
    [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.ANSWERED, Fault.FLOODED],
)
async def test_an_answer_that_may_be_lost_is_logged_and_not_sent_twice(fault, caplog):
    caplog.set_level("INFO")
    async with opened() as (scene, replies):
        scene.server.fault("respond", fault, seconds=5)
        press = await pressed(scene)
        await replies.answer(press, "word " * 1500)

        assert len(scene.server.calls_of("respond")) == 1
        await replies.answer(press, "Denied.")
        assert (ALICE, "Denied.") in answers(scene)
    assert caplog.text.count("slack_act_not_answered") == 1


@pytest.mark.parametrize("url", ["nowhere", "http://[", "http://127.0.0.1:1/actions"])
async def test_an_address_that_is_none_is_logged_and_left(url, caplog):
    caplog.set_level("INFO")
    async with opened() as (_, replies):
        await replies.answer(PressBody(token="t", card="", acknowledge=Reply(url=url).packed()), "Denied.")

    assert "slack_act_not_answered" in caplog.text


async def test_an_answer_never_tells_its_address_in_the_log(caplog):
    caplog.set_level("DEBUG")
    async with opened() as (scene, replies):
        press = await pressed(scene)
        secret = unpacked(press.acknowledge).url.rpartition("/")[2]
        await scene.clock.advance(LATE)
        await replies.answer(press, "Denied.")

    assert "slack_act_not_answered" in caplog.text
    assert not [record for record in caplog.records if secret in str(vars(record))]


# Forms


async def test_a_press_opens_a_form_that_remembers_it():
    async with opened() as (scene, replies):
        press = await pressed(scene)
        await replies.open_form(press, REASON)
        view = scene.server.views.opened(ALICE)
        callback, act = parse_form(scene.server.submits(ALICE, {"reason": "too risky"}).payload)
        reply = unpacked(press.acknowledge)

        assert (view.title, [block["block_id"] for block in view.blocks]) == ("Deny", ["reason"])
        assert (callback, act.token, act.values) == (FORM, "t-deny", (("reason", "too risky"),))
        assert (act.card, act.channel, act.reply.url) == (press.card, ROOM, reply.url)


async def test_a_form_for_a_press_that_is_too_old_is_refused():
    async with opened() as (scene, replies):
        press = await pressed(scene)
        await scene.clock.advance(LATE_FOR_A_FORM)
        with pytest.raises(SendRejected, match="expired_trigger_id"):
            await replies.open_form(press, REASON)

        assert scene.server.views.opened(ALICE) is None


async def test_one_press_opens_one_form():
    async with opened() as (scene, replies):
        press = await pressed(scene)
        await replies.open_form(press, REASON)
        with pytest.raises(SendRejected, match="exchanged_trigger_id"):
            await replies.open_form(press, REASON)


@pytest.mark.parametrize("acknowledge", [None, "", "x", Reply(url="https://example.com/r").packed()])
async def test_a_form_cannot_be_opened_for_what_is_no_press(acknowledge):
    async with opened() as (scene, replies):
        with pytest.raises(SendRejected, match="for a press alone"):
            await replies.open_form(PressBody(token="t", card="", acknowledge=acknowledge), REASON)

        assert scene.server.calls == []


async def test_a_form_that_slack_cannot_show_is_refused_before_it_is_asked():
    async with opened() as (scene, replies):
        press = await pressed(scene)
        long = Form(token="t", title="Edit", fields=(FormField(name="code", label="Code", value="x" * 3001),))
        with pytest.raises(SendRejected, match="Code is longer"):
            await replies.open_form(press, long)

        assert scene.server.calls_of("views.open") == []


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        (lambda server: server.fail_next("views.open", 503), SendUnknown),
        (lambda server: server.flood("views.open", 5), SendLimited),
        (lambda server: server.revoke(), ChannelDown),
    ],
)
async def test_a_form_that_did_not_open_is_told_to_whoever_asked_for_it(fails, error):
    async with opened() as (scene, replies):
        press = await pressed(scene)
        fails(scene.server)
        with pytest.raises(error):
            await replies.open_form(press, REASON)


# Questions about a message


def about(scene, text="a plan"):
    """Let Bob say something and Alice choose the shortcut on it; return the trigger and what is remembered."""
    ts = scene.server.user_says(ROOM, BOB, text)
    return ts, *parse_shortcut(scene.server.uses_shortcut(ASK, ALICE, ROOM, ts).payload)


@pytest.mark.parametrize("text", ["a plan", "Ж" * 3000, "🙂" * 3000, '"\\' * 1500])
async def test_a_message_of_any_length_and_script_can_be_asked_about(text, caplog):
    async with opened() as (scene, replies):
        ts, trigger, memory = about(scene, text)
        await replies.ask_about(trigger, memory)
        view = scene.server.views.opened(ALICE)
        callback, act = parse_form(scene.server.submits(ALICE, {QUESTION: "Why?"}).payload)

        assert (view.title, view.content["callback_id"]) == ("Ask about this", ASK)
        assert (callback, act.values, act.card) == (ASK, ((QUESTION, "Why?"),), ts)
        assert text.startswith(act.quote[0])
        assert (len(act.quote[0]) >= 100 or act.quote[0] == text, act.quote[1]) == (True, BOB)
    assert "slack_question_not_asked" not in caplog.text


@pytest.mark.parametrize(
    "fails",
    [
        pytest.param(lambda server: server.refuse_next("views.open", "expired_trigger_id"), id="too late"),
        pytest.param(lambda server: server.fail_next("views.open", 503), id="503"),
        pytest.param(lambda server: server.flood("views.open", 5), id="429"),
        pytest.param(lambda server: server.fault("views.open", Fault.LOST_REQUEST), id="lost"),
        pytest.param(lambda server: server.revoke(), id="no token"),
    ],
)
async def test_a_question_that_cannot_be_asked_is_logged_and_left(fails, caplog):
    caplog.set_level("INFO")
    async with opened() as (scene, replies):
        _, trigger, memory = about(scene)
        fails(scene.server)
        await replies.ask_about(trigger, memory)

        assert scene.server.views.opened(ALICE) is None
    assert caplog.text.count("slack_question_not_asked") == 1


async def test_a_question_for_a_shortcut_that_is_too_old_is_logged_and_left(caplog):
    caplog.set_level("INFO")
    async with opened() as (scene, replies):
        _, trigger, memory = about(scene)
        await scene.clock.advance(LATE_FOR_A_FORM)
        await replies.ask_about(trigger, memory)
        await replies.ask_about("", memory)
        await replies.ask_about(trigger, "x" * 3000)

        assert scene.server.views.opened(ALICE) is None
    assert caplog.text.count("slack_question_not_asked") == 3
    assert "expired_trigger_id" in str([vars(record).get("detail") for record in caplog.records])
