import asyncio
import logging
from datetime import timedelta

import pytest

from channels.contract import CommandMenu, Form, FormField, MenuScope
from channels.discord.commands import ASK_ABOUT_THIS
from channels.discord.inbound_interactions import QUESTION_FIELD
from core.contracts.addresses import CommandBody, MessageBody, PressBody
from core.contracts.errors import ChannelError, SendRejected, StoreUnavailable
from tests.channels.discord.taking import direct, discord_channel, opened, place
from tests.platforms.discord_guilds import ALICE, BOB, GENERAL, PRIVATE
from tests.platforms.discord_interactions import RESPONSE_DEADLINE, TOKEN_LIFE, Reply
from tests.platforms.telegram_faults import Fault

MENUS = (CommandMenu(scope=MenuScope.DIRECT, commands=(("stop", "stop what runs"), ("status", "say how it is"))),)
GO = "k" * 40
FORM = Form(token="t" * 40, title="Change it", fields=(FormField(name="line", label="What to run", value="ls"),))
LONG = "\n\n".join(f"## Part {number}\n\n" + f"word{number} " * 250 for number in range(4))


def card(world, channel=GENERAL):
    """Let the bot post a card with one button and return its id."""
    button = {"type": 2, "style": 1, "label": "Yes", "custom_id": GO}
    body = {"content": "Run it?", "components": [{"type": 1, "components": [button]}]}
    return int(world.server.messages.send(channel, body, [])["id"])


async def taken(world, kind=PressBody, count=1):
    """Return the body of the newest press or command when there are so many."""
    await world.until(lambda: sum(isinstance(body, kind) for body in world.sink.bodies) >= count)
    return [body for body in world.sink.bodies if isinstance(body, kind)][-1]


async def pressed(world):
    """Let Alice press a button and return what she sees of it, and what was handed over."""
    await world.listen()
    pressing = world.server.presses(ALICE, GENERAL, card(world), GO)
    return pressing, await taken(world)


async def commanded(world, name="status"):
    await world.listen()
    await world.until(lambda: world.server.commands.writes)
    running = world.server.runs_command(ALICE, GENERAL, name)
    return running, await taken(world, CommandBody)


def in_time(interaction):
    """Whether Discord had its answer soon enough."""
    return interaction.responded_at is not None and interaction.responded_at - interaction.made_at <= RESPONSE_DEADLINE


# What is handed over


async def test_a_press_tells_which_button_of_which_card_and_by_whom():
    async with opened() as world:
        await world.listen()
        shown = card(world)
        world.server.presses(BOB, GENERAL, shown, GO)
        body = await taken(world)
        event = world.sink.events[-1]

        assert (body.token, body.card, body.values) == (GO, str(shown), ())
        assert (event.address, event.sender.identity, event.external_id) == (place(), f"discord:{BOB}", str(shown))


async def test_a_command_tells_what_would_be_typed():
    async with opened(menus=MENUS) as world:
        await world.listen()
        await world.until(lambda: world.server.commands.writes)
        world.server.runs_command(ALICE, world.server.dm(ALICE), "stop", {"text": " everything  "})
        body = await taken(world, CommandBody)

        assert body.text == "/stop everything"
        assert world.sink.events[-1].address == direct(world.server, ALICE)


async def test_a_press_that_is_told_twice_has_one_key_and_one_answer():
    async with opened() as world:
        await world.listen()
        world.server.fault("INTERACTION_CREATE", Fault.DUPLICATED)
        world.server.presses(ALICE, GENERAL, card(world), GO)
        await world.until(lambda: len(world.sink.offers) == 3)
        await world.pass_time(2)

        assert len(world.sink.bodies) == 1
        assert [call.status for call in world.server.calls_of("callback")] == [204]


# The first three seconds


async def test_a_press_that_nobody_answers_ends_discords_waiting_in_time_and_says_nothing():
    async with opened() as world:
        pressing, _ = await pressed(world)
        await world.pass_time(4)

        assert in_time(pressing)
        assert (pressing.reply, pressing.texts, pressing.failed) == (Reply.DEFERRED_UPDATE, [], False)


async def test_a_press_is_answered_in_time_even_while_the_store_hangs_c27():
    async with opened() as world:
        await world.listen()
        world.sink.gate = asyncio.Event()
        pressing = world.server.presses(ALICE, GENERAL, card(world), GO)
        await world.until(lambda: world.sink.held)
        await world.pass_time(4)
        assert in_time(pressing)
        assert not pressing.failed
        world.sink.gate.set()

        assert (await taken(world)).token == GO


async def test_a_command_is_answered_in_time_even_while_the_store_hangs_c27():
    async with opened(menus=MENUS) as world:
        await world.listen()
        await world.until(lambda: world.server.commands.writes)
        world.sink.gate = asyncio.Event()
        running = world.server.runs_command(ALICE, GENERAL, "stop")
        await world.until(lambda: world.sink.held)
        await world.pass_time(4)

        assert in_time(running)
        assert running.is_loading
        assert running.is_private


async def test_a_press_does_not_wait_behind_other_events_c27():
    async with opened() as world:
        await world.listen()
        shown = card(world)
        world.sink.errors = [StoreUnavailable("locked")] * 3
        for number in range(30):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        await world.until(lambda: len(world.sink.refused) == 1)
        world.sink.errors = []
        pressing = world.server.presses(ALICE, GENERAL, shown, GO)
        body = await taken(world)
        assert world.sink.texts == []
        await world.channel.acknowledge(body, "Approved.")
        await world.in_time(lambda: len(world.sink.texts) == 30)

        assert in_time(pressing)
        assert pressing.texts == ["Approved."]


async def test_a_press_is_answered_by_a_text_that_only_the_presser_sees():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.channel.acknowledge(body, "Only **Bob** may do that. @everyone")
        await world.pass_time(2)

        assert (pressing.reply, pressing.is_private) == (Reply.MESSAGE, True)
        assert pressing.texts == ["Only **Bob** may do that. @everyone"]
        assert not pressing.original.mentions.everyone
        assert len(world.server.visible(GENERAL)) == 1


async def test_a_text_that_comes_after_the_grace_follows():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.pass_time(1)
        await world.channel.acknowledge(body, "Approved.")

        assert (pressing.reply, pressing.texts) == (Reply.DEFERRED_UPDATE, ["Approved."])
        assert pressing.followups[0].content.flags & 64


async def test_an_empty_text_ends_the_waiting_at_once_and_a_later_one_follows():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.channel.acknowledge(body, "")
        assert pressing.reply is Reply.DEFERRED_UPDATE
        await world.channel.acknowledge(body, "")
        await world.channel.acknowledge(body, "First.")
        await world.channel.acknowledge(body, "Second.")
        await world.pass_time(2)

        assert pressing.texts == ["First.", "Second."]
        assert [call.status for call in world.server.calls_of("callback")] == [204]


async def test_a_command_is_answered_by_a_text():
    async with opened(menus=MENUS) as world:
        running, body = await commanded(world)
        await world.channel.acknowledge(body, "All is well.")
        await world.pass_time(2)

        assert (running.reply, running.is_private, running.texts) == (Reply.MESSAGE, True, ["All is well."])


async def test_a_command_that_takes_its_time_shows_that_it_thinks_and_then_its_answer():
    async with opened(menus=MENUS) as world:
        running, body = await commanded(world)
        await world.pass_time(1)
        assert running.is_loading
        await world.pass_time(60, step=5)
        await world.channel.acknowledge(body, "All is well.")

        assert (running.reply, running.is_private) == (Reply.DEFERRED_MESSAGE, True)
        assert (running.is_loading, running.texts) == (False, ["All is well."])


@pytest.mark.parametrize("thinks_for", [0, 1], ids=["at once", "after it thought"])
async def test_a_command_may_answer_long_markdown_in_its_order(thinks_for):
    async with opened(menus=MENUS) as world:
        running, body = await commanded(world)
        if thinks_for:
            await world.pass_time(thinks_for)
        await world.channel.acknowledge(body, LONG)
        whole = "\n".join(running.texts)

        assert len(running.texts) > 2
        assert all(len(text) <= 2000 for text in running.texts)
        assert [whole.count(f"word{number} ") + whole.count(f"word{number}\n") for number in range(3)] == [250] * 3
        assert [whole.index(f"Part {number}") for number in range(4)] == sorted(
            whole.index(f"Part {number}") for number in range(4)
        )
        assert all(message.content.flags & 64 for message in [running.original, *running.followups])
        assert world.server.visible(GENERAL) == []


# Too late, lost, or nothing to answer


async def test_an_answer_after_discord_gave_up_is_logged_and_never_raises(caplog):
    caplog.set_level(logging.INFO)
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.pass_time(1)
        await world.clock.advance(TOKEN_LIFE + timedelta(seconds=1))
        await world.channel.acknowledge(body, "Approved.")

        assert pressing.texts == []
        assert "discord_interaction_not_answered" in caplog.text
        assert pressing.token not in caplog.text


async def test_a_press_that_is_heard_of_too_late_is_handed_over_all_the_same(caplog):
    caplog.set_level(logging.INFO)
    async with opened() as world:
        await world.listen()
        shown = card(world)
        world.server.gateway.cut()
        pressing = world.server.presses(ALICE, GENERAL, shown, GO)
        await world.hears(well=False)
        await world.clock.advance(timedelta(seconds=10))
        await world.in_time(lambda: world.sink.bodies)
        body = await taken(world)
        await world.channel.acknowledge(body, "Approved.")

        assert pressing.failed
        assert body.token == GO
        assert "discord_interaction_not_answered" in caplog.text


async def test_an_answer_whose_fate_is_unknown_counts_as_given_and_the_next_follows():
    async with opened() as world:
        pressing, body = await pressed(world)
        world.server.fault("callback", Fault.LOST_RESPONSE)
        await world.channel.acknowledge(body, "First.")
        await world.channel.acknowledge(body, "Second.")

        assert pressing.texts == ["First.", "Second."]
        assert len(world.server.calls_of("callback")) == 1


async def test_an_answer_that_surely_failed_is_given_by_the_grace():
    async with opened() as world:
        pressing, body = await pressed(world)
        world.server.fault("callback", Fault.FLOODED, seconds=2.5)
        await world.channel.acknowledge(body, "First.")
        assert pressing.reply is None
        await world.pass_time(2.75)

        assert in_time(pressing)
        assert pressing.reply is Reply.DEFERRED_UPDATE


async def test_an_answer_that_a_short_limit_refuses_is_given_after_it():
    async with opened() as world:
        pressing, press = await pressed(world)
        world.server.fault("callback", Fault.FLOODED, seconds=1.0)
        answering = asyncio.create_task(world.channel.acknowledge(press, "Noted."))
        await world.in_time(answering.done)

        assert pressing.texts == ["Noted."]
        assert in_time(pressing)


async def test_what_carries_no_ticket_of_ours_is_answered_by_nothing():
    async with opened() as world:
        await world.listen()
        for ticket in (None, "", "press", "press/1/2", "press/x/2/token", "shout/1/2/token"):
            await world.channel.acknowledge(PressBody(token=GO, card="1", acknowledge=ticket), "hello")

        assert world.server.calls_of("callback") == []
        assert world.server.calls_of("followup") == []


async def test_every_ticket_is_answered_for_itself():
    async with opened() as world:
        await world.listen()
        shown = card(world)
        presses = [world.server.presses(user, GENERAL, shown, GO) for user in (ALICE, BOB)]
        await taken(world, count=2)
        first, second = world.sink.bodies
        await world.channel.acknowledge(second, "to Bob")
        await world.channel.acknowledge(first, "to Alice")

        assert [pressing.texts for pressing in presses] == [["to Alice"], ["to Bob"]]


# After a restart


async def test_a_press_from_before_a_restart_is_answered_after_it():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.pass_time(1)
        await world.stop(world.tasks[0])
        async with discord_channel(world.server, world.clock) as anew:
            await anew.acknowledge(body, "Approved.")

        assert (pressing.reply, pressing.texts) == (Reply.DEFERRED_UPDATE, ["Approved."])


async def test_a_command_from_before_a_restart_is_answered_after_it():
    async with opened(menus=MENUS) as world:
        running, body = await commanded(world)
        await world.pass_time(1)
        await world.stop(world.tasks[0])
        async with discord_channel(world.server, world.clock) as anew:
            await anew.acknowledge(body, "")
            assert running.is_loading
            await anew.acknowledge(body, LONG)

        assert not running.is_loading
        assert "".join(running.texts).count("Part ") == 4


async def test_a_press_from_before_a_restart_that_nobody_answered_yet_is_answered_if_there_is_time():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.stop(world.tasks[0])
        assert pressing.reply is None
        async with discord_channel(world.server, world.clock) as anew:
            await anew.acknowledge(body, "Approved.")

        assert (pressing.reply, pressing.texts) == (Reply.MESSAGE, ["Approved."])


# Forms


async def test_a_press_can_be_answered_by_a_form_and_what_is_sent_comes_back():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.channel.open_form(body, FORM)
        await world.pass_time(2)
        assert pressing.reply is Reply.MODAL
        sending = world.server.submits_modal(pressing, {"line": "ls -l"})
        sent = await taken(world, count=2)
        await world.channel.acknowledge(sent, "Approved with changes.")

        assert (sent.token, sent.values, sent.card) == (FORM.token, (("line", "ls -l"),), body.card)
        assert (sending.texts, sending.is_private) == (["Approved with changes."], True)
        assert pressing.texts == []


async def test_a_form_that_is_sent_and_that_nobody_answers_ends_discords_waiting_in_time():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.channel.open_form(body, FORM)
        sending = world.server.submits_modal(pressing, {})
        await taken(world, count=2)
        await world.pass_time(4)

        assert in_time(sending)
        assert (sending.reply, sending.texts) == (Reply.DEFERRED_UPDATE, [])


async def test_a_form_can_be_followed_by_a_text():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.channel.open_form(body, FORM)
        await world.channel.acknowledge(body, "It was settled meanwhile.")

        assert (pressing.reply, pressing.texts) == (Reply.MODAL, ["It was settled meanwhile."])
        assert pressing.followups[0].content.flags & 64


async def test_a_form_comes_too_late_behind_another_answer():
    async with opened() as world:
        _, body = await pressed(world)
        await world.pass_time(1)
        with pytest.raises(SendRejected, match="cannot be shown any more"):
            await world.channel.open_form(body, FORM)

        assert [call.body["type"] for call in world.server.calls_of("callback")] == [Reply.DEFERRED_UPDATE]


async def test_a_form_that_discord_does_not_take_any_more_says_so():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.stop(world.tasks[0])
        await world.clock.advance(timedelta(seconds=4))
        with pytest.raises(ChannelError):
            await world.channel.open_form(body, FORM)

        assert pressing.failed


async def test_no_form_is_opened_for_a_form_that_was_sent_or_for_what_has_no_ticket():
    async with opened() as world:
        pressing, body = await pressed(world)
        await world.channel.open_form(body, FORM)
        world.server.submits_modal(pressing, {})
        sent = await taken(world, count=2)
        for refused in (sent, PressBody(token=GO, card="1", acknowledge=None)):
            with pytest.raises(SendRejected, match="for a press alone"):
                await world.channel.open_form(refused, FORM)


# A store that fails


async def test_whoever_presses_is_told_that_it_was_not_stored_and_can_press_again():
    async with opened() as world:
        await world.listen()
        shown = card(world)
        world.sink.errors = [StoreUnavailable("locked")]
        pressing = world.server.presses(ALICE, GENERAL, shown, GO)
        await world.server.wait_for(lambda: pressing.texts)
        red = await world.channel.probe()
        world.server.presses(ALICE, GENERAL, shown, GO)
        await taken(world)

        assert "could not store this" in pressing.texts[0]
        assert pressing.is_private
        assert "cannot be stored" in red.detail
        assert (await world.hears()).healthy
        assert len(world.sink.bodies) == 1


async def test_whoever_calls_a_command_is_told_that_it_was_not_stored():
    async with opened(menus=MENUS) as world:
        await world.listen()
        await world.until(lambda: world.server.commands.writes)
        world.sink.errors = [StoreUnavailable("locked")]
        running = world.server.runs_command(ALICE, GENERAL, "stop")
        await world.server.wait_for(lambda: running.texts)

        assert "could not store this" in running.texts[0]
        assert world.sink.bodies == []


async def test_a_bug_behind_one_press_does_not_stop_the_next(caplog):
    async with opened() as world:
        await world.listen()
        shown = card(world)
        world.sink.errors = [RuntimeError("a bug")]
        first = world.server.presses(ALICE, GENERAL, shown, GO)
        await world.until(lambda: world.sink.refused)
        world.server.presses(BOB, GENERAL, shown, GO)
        await taken(world)
        await world.pass_time(1)

        assert in_time(first)
        assert caplog.text.count("discord_event_crashed") == 1
        assert len(world.sink.bodies) == 1


# Questions about messages


async def asking(world, channel=GENERAL, text="The sky is blue."):
    """Let Bob say something and Alice ask about it; return the message and what she sees."""
    await world.listen()
    await world.until(lambda: world.server.commands.writes)
    said = world.server.user_says(channel, BOB, text) if channel == GENERAL else card(world, channel)
    return said, world.server.uses_message_command(ALICE, channel, ASK_ABOUT_THIS, said)


async def test_somebody_asks_about_a_message_by_its_menu():
    async with opened(menus=MENUS) as world:
        said, menu = await asking(world)
        await world.server.wait_for(lambda: menu.modal)
        question = world.server.submits_modal(menu, {QUESTION_FIELD: " Is it? "})
        await world.server.wait_for(lambda: question.texts)
        event = world.sink.messages[-1]

        assert in_time(menu)
        assert event.address == place(GENERAL, said)
        assert (event.body.text, event.body.addressed) == ("Is it?", True)
        assert (event.body.quote.text, event.body.quote.external_id) == ("The sky is blue.", str(said))
        assert event.body.quote.author == "Bob"
        assert (event.sender.identity, event.external_id) == (f"discord:{ALICE}", str(said))
        assert question.texts == ["I answer in the thread of that message."]
        assert question.is_private


async def test_a_question_about_a_message_of_the_bots_says_so():
    async with opened(menus=MENUS) as world:
        _, menu = await asking(world, PRIVATE)
        await world.server.wait_for(lambda: menu.modal)
        world.server.submits_modal(menu, {QUESTION_FIELD: "Why?"})
        (event,) = await world.heard(1)

        assert event.body.quote.by_agent


async def test_a_question_about_a_message_that_is_gone_is_asked_all_the_same():
    async with opened(menus=MENUS) as world:
        said, menu = await asking(world)
        await world.server.wait_for(lambda: menu.modal)
        world.server.user_deletes(GENERAL, said)
        world.server.submits_modal(menu, {QUESTION_FIELD: "Is it?"})
        await world.until(lambda: "Is it?" in world.sink.texts)
        (body,) = [body for body in world.sink.bodies if isinstance(body, MessageBody) and body.quote]

        assert "cannot be read any more" in body.quote.text


async def test_a_question_that_takes_its_time_is_deferred_and_then_answered():
    async with opened(menus=MENUS) as world:
        _, menu = await asking(world)
        await world.server.wait_for(lambda: menu.modal)
        held = world.server.gate_next("get_message")
        question = world.server.submits_modal(menu, {QUESTION_FIELD: "Is it?"})
        await held.entered.wait()
        await world.pass_time(4)
        assert in_time(question)
        assert question.is_loading
        held.opened.set()
        await world.server.wait_for(lambda: question.texts)

        assert question.texts == ["I answer in the thread of that message."]


async def test_whoever_asks_is_told_that_it_was_not_stored():
    async with opened(menus=MENUS) as world:
        _, menu = await asking(world)
        await world.server.wait_for(lambda: menu.modal)
        await world.heard(1)
        world.sink.errors = [StoreUnavailable("locked")]
        question = world.server.submits_modal(menu, {QUESTION_FIELD: "Is it?"})
        await world.server.wait_for(lambda: question.texts)

        assert "could not store this" in question.texts[0]


async def test_a_form_for_a_question_that_cannot_be_shown_is_logged(caplog):
    caplog.set_level(logging.INFO)
    async with opened(menus=MENUS) as world:
        await world.listen()
        await world.until(lambda: world.server.commands.writes)
        world.server.fail_next("callback", 400)
        await asking(world)
        await world.until(lambda: "discord_question_not_asked" in caplog.text)

        assert (await world.channel.probe()).healthy
