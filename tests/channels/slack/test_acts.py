"""Presses, forms and questions on Slack: taken at once, stored once, and answered to whoever acted."""

import asyncio
from datetime import timedelta

import pytest

from channels.contract import Form, FormField
from core.contracts.addresses import (
    Button,
    CardContent,
    CommandBody,
    MessageBody,
    OutboundItem,
    PressBody,
    Privacy,
    Quote,
    TextContent,
)
from core.contracts.errors import StoreUnavailable
from tests.channels.slack.taking import opened, place
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, PRIVATE, ROOM

ROWS = ((Button(token="allow-1", label="Allow"), Button(token="deny-1", label="Deny")),)
ASKING = Form(token="why-1", title="Deny", fields=(FormField(name="reason", label="Why?"),), send_label="Deny")


async def shown(world, address, text="Run it?", rows=ROWS, code=""):
    """Show a card; return its external id and its ts."""
    card = await world.sends(address, CardContent(text=text, rows=rows, code=code))
    return card, card.rpartition(":")[2]


async def test_a_press_says_which_button_on_which_card_by_whom():
    async with opened() as world:
        await world.listen()
        card, ts = await shown(world, place(ROOM))
        world.server.presses(BOB, ROOM, ts, "Allow")
        (event,) = await world.heard(1)

        assert (event.body.token, event.body.card, event.body.values) == ("allow-1", card, ())
        assert (event.sender.identity, event.privacy) == ("slack:T0TEAM/U0BOB", Privacy.PUBLIC)
        assert event.address == place(ROOM, ts)


async def test_a_press_in_a_thread_belongs_to_the_conversation_of_the_thread():
    async with opened() as world:
        await world.listen()
        root = world.server.user_says(PRIVATE, ALICE, "<@U0BOT> run it")
        (message,) = await world.heard(1)
        card, ts = await shown(world, message.address)
        world.server.presses(ALICE, PRIVATE, ts, "Deny")
        _, press = await world.heard(2)

        assert (press.address, press.privacy) == (message.address, Privacy.PRIVATE_GROUP)
        assert (press.body.card, card) == (f"{root}:{ts}", f"{root}:{ts}")


async def test_two_presses_are_two_and_one_that_is_told_again_is_one():
    async with opened() as world:
        await world.listen()
        _, ts = await shown(world, place(ROOM))
        first = world.server.presses(ALICE, ROOM, ts, "Allow")
        world.server.presses(BOB, ROOM, ts, "Allow")
        world.server.deliveries.redeliver(first)
        await world.until(lambda: len(world.sink.offers) == 3)

        assert len(world.sink.events) == 2


async def test_what_is_pressed_on_a_card_that_changed_meanwhile_is_told_all_the_same():
    async with opened() as world:
        await world.listen()
        _, ts = await shown(world, place(ROOM))
        world.server.presses(ALICE, ROOM, ts, "allow-0", stale=True)
        (event,) = await world.heard(1)

        assert event.body.token == "allow-0"


async def test_a_press_is_answered_to_its_presser_alone_and_an_empty_answer_says_nothing():
    async with opened() as world:
        await world.listen()
        _, ts = await shown(world, place(ROOM))
        world.server.presses(ALICE, ROOM, ts, "Allow")
        (event,) = await world.heard(1)
        await world.channel.acknowledge(event.body, "Only **owners** may.")
        await world.channel.acknowledge(event.body, " ")

        assert [message.text for message in world.server.ephemeral(ROOM, ALICE)] == ["Only *owners* may."]
        assert world.server.ephemeral(ROOM, BOB) == []


@pytest.mark.parametrize("late", [True, False])
async def test_an_answer_that_comes_too_late_or_too_often_fails_nothing(late, caplog):
    caplog.set_level("INFO")
    async with opened() as world:
        await world.listen()
        world.server.runs_command("/lodger", "status")
        (event,) = await world.heard(1)
        if late:
            await world.clock.advance(timedelta(minutes=31))
        for _ in range(1 if late else 6):
            await world.channel.acknowledge(event.body, "Done.")

        assert len(world.server.ephemeral(ROOM, ALICE)) == (0 if late else 5)
        assert caplog.text.count("slack_act_not_answered") == 1


async def test_a_form_opens_for_a_press_and_comes_back_with_its_texts():
    async with opened() as world:
        await world.listen()
        root = world.server.user_says(ROOM, ALICE, "<@U0BOT> run it")
        (message,) = await world.heard(1)
        card, ts = await shown(world, message.address)
        world.server.presses(ALICE, ROOM, ts, "Deny")
        _, press = await world.heard(2)
        await world.channel.open_form(press.body, ASKING)
        sent = world.server.submits(ALICE, {"reason": "Not <today>"})
        *_, form = await world.heard(3)
        await world.server.acked(sent)
        await world.channel.acknowledge(form.body, "Noted.")

        assert (form.body.token, form.body.card) == ("why-1", card)
        assert form.body.values == (("reason", "Not <today>"),)
        assert form.address == message.address == place(ROOM, root)
        assert [note.text for note in world.server.ephemeral(ROOM, ALICE)] == ["Noted."]


async def test_a_form_that_could_not_be_stored_stays_open_to_be_sent_again():
    async with opened() as world:
        await world.listen()
        _, ts = await shown(world, place(ROOM))
        world.server.presses(ALICE, ROOM, ts, "Deny")
        (press,) = await world.heard(1)
        await world.channel.open_form(press.body, ASKING)
        world.sink.errors = [StoreUnavailable("locked")]
        world.server.submits(ALICE, {"reason": "no"})
        await world.until(lambda: world.sink.refused)
        world.server.submits(ALICE, {"reason": "no"})
        _, form = await world.heard(2)

        assert form.body.values == (("reason", "no"),)
        assert form.key == world.sink.refused[0].key


async def test_a_question_about_a_message_quotes_it():
    async with opened() as world:
        await world.listen()
        root = world.server.user_says(ROOM, BOB, f"ask <@{ALICE}>")
        (message,) = await world.heard(1)
        shortcut = world.server.uses_shortcut("ask_about_this", ALICE, ROOM, root)
        await world.server.acked(shortcut)
        await world.server.wait_for(lambda: world.server.calls_of("views.open"))
        await world.until(lambda: world.server.calls_of("views.open")[0].status)
        world.server.submits(ALICE, {"question": "What is this?"})
        _, question = await world.heard(2)

        quote = Quote(text="ask @alice", author="bob", by_agent=False, external_id=root)
        assert question.body == MessageBody(text="What is this?", quote=quote)
        assert question.address == message.address
        assert question.sender.name == "alice"


async def test_a_question_about_the_agents_own_message_says_so():
    async with opened() as world:
        await world.listen()
        said = await world.sends(place(ROOM), TextContent(markdown="Here."))
        world.server.uses_shortcut("ask_about_this", ALICE, ROOM, said)
        await world.server.wait_for(lambda: world.server.calls_of("views.open"))
        await world.until(lambda: world.server.calls_of("views.open")[0].status)
        world.server.submits(ALICE, {"question": "Why?"})
        (question,) = await world.heard(1)

        assert (question.body.quote.by_agent, question.body.quote.external_id) == (True, said)


@pytest.mark.parametrize("callback", ["another_app", "lodger_form"])
async def test_shortcuts_that_are_not_its_own_are_acknowledged_and_left(callback):
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ROOM, BOB, "hello")
        for channel, message in ((ROOM, ts), ("", "")):
            await world.server.acked(world.server.uses_shortcut(callback, ALICE, channel, message))
        await world.heard(1)

        assert world.server.calls_of("views.open") == []
        assert world.sink.texts == ["hello"]


# C26: whatever the card holds, it can be pressed


@pytest.mark.parametrize(
    ("token", "text", "code"),
    [
        ("ap:" + "s" * 120 + ":allow_always", "Run it?", ""),
        ("t" * 2000, "Run it?", ""),
        ("t-1", "Write заметки/планы-на-неделю.md?", ""),
        ("t-1", "Run it?", "cat <<EOF\n" + "x" * 6000),
        ("t-1", "x" * 6000, ""),
    ],
)
async def test_a_card_with_long_parts_can_be_pressed_and_loses_its_buttons_c26(token, text, code):
    async with opened() as world:
        await world.listen()
        content = CardContent(text=text, rows=((Button(token=token, label="Allow"),),), code=code)
        card = await world.sends(place(ALICE_DM), content)
        ts = card.rpartition(":")[2]
        world.server.presses(ALICE, ALICE_DM, ts, "Allow")
        (event,) = await world.heard(1)
        decided = OutboundItem(
            id="turn-1/1",
            address=place(ALICE_DM),
            content=CardContent(text=f"{text}\nAllowed.", code=code),
            external_id=card,
        )
        changing = asyncio.create_task(world.channel.deliver(decided))
        await world.pass_time(5)
        await changing
        (message,) = world.server.visible(ALICE_DM)

        assert event.body.token == token
        assert message.buttons == {}


# C27: the acknowledgement waits for nobody


async def acts(world):
    """Do one of each; return what Slack waits for."""
    _, ts = await shown(world, place(ROOM))
    return [world.server.presses(ALICE, ROOM, ts, "Allow"), world.server.runs_command("/lodger", "status")]


async def test_acts_are_acknowledged_within_a_second_however_slow_the_store_is_c27():
    async with opened() as world:
        await world.listen()
        world.sink.gate = asyncio.Event()
        deliveries = await acts(world)
        await world.until(lambda: len(world.sink.held) == 2)
        await world.pass_time(4, step=0.25)
        for delivery in deliveries:
            await world.server.acked(delivery)
        assert world.sink.offers == []
        world.sink.gate.set()
        await world.heard(2)

        assert [delivery.latency <= 1 for delivery in deliveries] == [True, True]
        assert {type(body) for body in world.sink.bodies} == {PressBody, CommandBody}


async def test_acts_are_acknowledged_at_once_where_the_store_is_quick_and_other_things_are_slow_c27():
    async with opened() as world:
        await world.listen()
        deliveries = await acts(world)
        for delivery in deliveries:
            await world.server.acked(delivery)

        # No time passed, and all of it is stored by now.
        assert [delivery.latency for delivery in deliveries] == [0, 0]
        assert len(world.sink.events) == 2


async def test_an_act_that_cannot_be_stored_at_once_is_not_acknowledged_so_that_slack_says_so_c27(caplog):
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked"), StoreUnavailable("locked")]
        press, command = await acts(world)
        await world.until(lambda: len(world.sink.refused) == 2)
        world.server.user_says(ROOM, ALICE, "hello")
        await world.heard(1)

        assert (press.acked_at, command.acked_at) == (None, None)
        assert "slack_event_not_stored" in caplog.text


async def test_an_act_that_cannot_be_stored_later_breaks_nothing_c27(caplog):
    async with opened() as world:
        await world.listen()
        world.sink.gate = asyncio.Event()
        deliveries = await acts(world)
        await world.until(lambda: len(world.sink.held) == 2)
        await world.pass_time(1)
        for delivery in deliveries:
            await world.server.acked(delivery)
        world.sink.errors = [StoreUnavailable("locked"), StoreUnavailable("locked")]
        world.sink.gate.set()
        await world.until(lambda: len(world.sink.refused) == 2)
        world.server.user_says(ROOM, ALICE, "hello")
        await world.heard(1)

        assert world.sink.texts == ["hello"]
        assert "Traceback" not in caplog.text


async def test_a_decision_is_recorded_though_its_acknowledgement_was_lost_c27():
    async with opened() as world:
        await world.listen()
        world.server.fault("ack", Fault.LOST_REQUEST, times=2)
        press, command = await acts(world)
        await world.heard(2)

        assert (press.acked_at, command.acked_at) == (None, None)
        assert len(world.sink.offers) == 2


async def test_acts_that_are_under_way_end_with_the_channel():
    async with opened() as world:
        task = await world.listen()
        world.sink.gate = asyncio.Event()
        deliveries = await acts(world)
        await world.until(lambda: len(world.sink.held) == 2)
        await world.pass_time(1)
        for delivery in deliveries:
            await world.server.acked(delivery)
        await world.stop(task)
        world.sink.gate.set()
        await world.pass_time(1)

        assert world.sink.offers == []
