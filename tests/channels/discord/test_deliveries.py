"""What an outbox may ask for, and what becomes of it over the wire."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.discord.limits import NONCE_LIFE
from core.contracts.addresses import Button, CardContent, TextContent
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, TextTooLong
from tests.channels.discord.sending import ELSEWHERE, YES, card, file, item, opened, reaction, removal, text, thread_of
from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_guilds import ALICE, BOB, BOT, BOT_ROLE, GENERAL, RANDOM
from tests.platforms.discord_permissions import Overwrite
from tests.platforms.telegram_faults import Fault

MINUTE = timedelta(minutes=1)
LOUD = (
    "notify @everyone and @here, <!channel>, <@7002>, <@&9300>, role <@&9301>; if a < b && b > c:"
    " see https://example.org/x?y=1&z=2 [docs](https://example.org/d_(1)) **bold**"
)


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


def asked(world, channel=GENERAL):
    return str(world.server.user_says(channel, ALICE, "done?"))


def reactions_to(world, message):
    return dict(world.server.messages.by_channel[GENERAL][int(message)].reactions)


async def test_a_text_is_sent_and_edited(world):
    shown = await world.deliver(text("**one**"))
    again = await world.deliver(text("two", external_id=shown))

    assert again == shown
    assert [message.versions for message in world.server.visible(GENERAL)] == [["**one**", "two"]]


async def test_an_edit_of_a_message_that_is_gone_is_a_new_one(world):
    shown = await world.deliver(text("one"))
    world.server.user_deletes(GENERAL, int(shown))
    again = await world.deliver(text("two", external_id=shown, id="same"))

    assert again != shown
    assert world.texts() == ["two"]


async def test_a_message_that_is_gone_is_not_given_back_by_its_nonce(world):
    item_sent = text("one")
    shown = await world.deliver(item_sent)
    world.server.user_deletes(GENERAL, int(shown))
    again = await world.deliver(replace(item_sent, external_id=shown, content=TextContent(markdown="two")))

    assert again != shown
    assert len({call.body["nonce"] for call in world.server.calls_of("create_message")}) == 2
    assert world.texts() == ["two"]


async def test_a_reply_refers_to_its_message_and_to_none_that_is_gone(world):
    message = asked(world)
    await world.deliver(text("yes", reply_to=message))
    await world.deliver(text("no", reply_to="12345"))

    assert [sent.reply_to for sent in world.server.visible(GENERAL)] == [(GENERAL, int(message)), None]


async def test_a_silent_text_rings_nobody(world):
    await world.deliver(text("psst", silent=True))

    assert world.server.visible(GENERAL)[0].content.flags & 4096


async def test_nothing_that_is_shown_notifies_or_unfolds_on_any_path_c17(world, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a")
    shown = await world.deliver(text(LOUD))
    await world.deliver(text(f"{LOUD} again", external_id=shown))
    await world.deliver(card(text=LOUD, code="@everyone"))
    await world.deliver(file(path, caption=LOUD))
    async with world.replies.open(ELSEWHERE, world.on_sent) as reply:
        await reply.show(LOUD)
        await world.pass_time(2)
        await reply.show(f"{LOUD} more")
        await world.pass_time(2)

    messages = [*world.server.visible(GENERAL), *world.server.visible(RANDOM)]
    assert len(messages) == 4
    assert [(m.mentions.users, m.mentions.roles, m.mentions.everyone) for m in messages] == [([], [], False)] * 4
    assert [message.content.flags & 4 for message in messages] == [4] * 4
    assert "[docs](https://example.org/d_(1)) **bold** again" in messages[0].text


async def test_a_text_that_discord_counts_as_too_long_is_told_so_c14(world):
    with pytest.raises(TextTooLong):
        await world.deliver(text("a" * 2001))
    world.server.fail_next(
        "create_message",
        400,
        {
            "code": 50035,
            "message": "Invalid Form Body",
            "errors": {"content": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH"}]}},
        },
    )
    with pytest.raises(TextTooLong):
        await world.deliver(text("a" * 1999))

    assert [call.status for call in world.server.calls] == [400]


@pytest.mark.parametrize(
    "content",
    [
        CardContent(text="Run it?", code="x" * 6000, rows=((YES,),)),
        CardContent(text="Write заметки/планы-на-неделю.md?", rows=((YES, Button(token="a" * 40, label="ж" * 90)),)),
        CardContent(text="*" * 3000, code="`" * 3000, rows=((YES,),)),
    ],
    ids=["C", "B", "A"],
)
async def test_every_card_is_sent_can_be_pressed_and_is_settled_c26(world, content):
    shown = await world.deliver(item(content))
    (message,) = world.server.visible(GENERAL)
    assert message.takes("k" * 40)
    await world.deliver(item(replace(content, rows=()), external_id=shown))

    assert message.buttons == {}
    assert len(world.server.visible(GENERAL)) == 1


async def test_a_card_that_cannot_be_sent_says_so_at_once_c26(world):
    with pytest.raises(SendRejected):
        await world.deliver(card(rows=((YES, YES),)))


async def test_a_reaction_is_set_replaced_and_taken_back(world):
    message = asked(world)
    seen = []
    for emoji in ("\N{THUMBS UP SIGN}", "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}", ""):
        external_id = await world.deliver(reaction(emoji, message))
        seen.append(list(reactions_to(world, message)))

    assert seen == [["\N{THUMBS UP SIGN}"], ["\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}"], []]
    assert external_id == f"reaction/{message}"


async def test_a_reaction_that_stands_already_is_left_and_those_of_others_too(world):
    message = asked(world)
    world.server.user_reacts(GENERAL, int(message), BOB, "\N{EYES}")
    for _ in range(2):
        await world.deliver(reaction("\N{THUMBS UP SIGN}", message))

    assert reactions_to(world, message) == {"\N{EYES}": [BOB], "\N{THUMBS UP SIGN}": [BOT]}
    assert len(world.server.calls_of("react")) == 1


async def test_an_emoji_is_tried_as_discord_spells_it(world):
    message = asked(world)
    world.server.fail_next("react", 400, {"code": 10014, "message": "Unknown Emoji"})
    await world.deliver(reaction("\N{HEAVY BLACK HEART}", message))

    assert list(reactions_to(world, message)) == ["\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}"]


async def test_what_is_no_emoji_is_refused_in_words(world):
    with pytest.raises(SendRejected, match="emoji"):
        await world.deliver(reaction("thumbs", asked(world)))


@pytest.mark.parametrize("message", ["999", None, "abc"])
async def test_a_reaction_needs_a_message_that_is_there(world, message):
    with pytest.raises(SendRejected):
        await world.deliver(reaction("\N{THUMBS UP SIGN}", message))


async def test_a_removal_takes_a_message_away_once_and_for_all(world):
    shown = await world.deliver(text("progress"))
    for _ in range(2):
        assert await world.deliver(removal(shown)) == shown

    assert world.texts() == []
    with pytest.raises(SendRejected):
        await world.deliver(removal(None))


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_what_has_one_effect_however_often_it_is_made_is_tried_again(world, fault):
    message = asked(world)
    shown = await world.deliver(text("one"))
    for route, wanted in (
        ("react", reaction("\N{THUMBS UP SIGN}", message)),
        ("edit_message", text("two", external_id=shown)),
        ("delete_message", removal(shown)),
    ):
        world.server.fault(route, fault)
        with pytest.raises(SendLimited):
            await world.deliver(wanted)
        await world.deliver(wanted)

    assert world.texts() == []
    assert list(reactions_to(world, message)) == ["\N{THUMBS UP SIGN}"]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.ANSWERED])
async def test_a_send_of_unknown_outcome_is_made_again_and_shown_once(world, fault):
    world.server.fault("create_message", fault, times=3)
    once = text("once")
    for tried in range(3):
        with pytest.raises(SendLimited):
            await world.deliver(replace(once, attempts=tried))
    shown = await world.deliver(replace(once, attempts=3))

    assert [(str(message.id), message.text) for message in world.server.visible(GENERAL)] == [(shown, "once")]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_after_the_life_of_the_nonce_it_is_looked_for_and_shown_once(world, fault):
    world.server.fault("create_message", fault)
    once = text("once", reply_to=asked(world))
    with pytest.raises(SendLimited):
        await world.deliver(once)
    await world.clock.advance(10 * NONCE_LIFE)
    shown = await world.deliver(replace(once, attempts=1))

    assert [str(message.id) for message in world.server.visible(GENERAL)] == [shown]


async def test_an_outage_of_an_hour_costs_nothing_and_doubles_nothing(world):
    world.server.fault("create_message", Fault.LOST_RESPONSE)
    world.server.fail_next("create_message", 503, times=200)
    world.server.fail_next("get_messages", 503, times=40)
    once, tried = text("once"), 0
    while True:
        try:
            shown = await world.deliver(replace(once, attempts=tried))
            break
        except SendLimited as error:
            tried += 1
            await world.clock.advance(error.retry_after)

    assert [str(message.id) for message in world.server.visible(GENERAL)] == [shown]
    assert world.clock.monotonic() > 1800


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_text_card_or_file_of_an_earlier_process_is_found_or_is_not(world, tmp_path, is_there):
    path = tmp_path / "my file.txt"
    path.write_text("a")
    for number, wanted in enumerate((text("once"), card(), file(path, caption="see"), text("in it", thread_of(1)))):
        if is_there:
            shown = await world.deliver(wanted)
        world.begin_anew()
        await world.clock.advance(10 * MINUTE)
        found = await world.in_time(world.deliveries.find(wanted))

        assert found == (shown if is_there else None), number


async def test_what_an_earlier_process_sent_is_not_sent_again(world):
    once = text("once")
    shown = await world.deliver(once)
    world.begin_anew()
    await world.clock.advance(10 * MINUTE)

    assert await world.deliver(replace(once, attempts=1)) == shown
    assert world.texts() == ["once"]


async def test_the_same_text_twice_is_two_messages(world):
    await world.deliver(text("Done."))
    world.server.fault("create_message", Fault.LOST_REQUEST)
    second = text("Done.")
    with pytest.raises(SendLimited):
        await world.deliver(second)
    await world.clock.advance(10 * MINUTE)
    assert await world.in_time(world.deliveries.find(second)) is None
    await world.deliver(replace(second, attempts=1))

    assert world.texts() == ["Done.", "Done."]


async def test_what_cannot_be_looked_for_is_not_found_and_nothing_is_raised(world):
    world.server.fail_next("get_messages", 503)
    assert await world.in_time(world.deliveries.find(text("once"))) is None
    assert await world.in_time(world.deliveries.find(text("a" * 3000))) is None
    assert await world.in_time(world.deliveries.find(reaction("\N{EYES}", "5"))) is None
    assert await world.in_time(world.deliveries.find(text("edit", external_id="5"))) is None


async def test_a_text_that_changed_while_its_outcome_was_open_is_shown_as_it_is_now(world):
    world.server.fault("create_message", Fault.LOST_RESPONSE)
    first = text("half of it")
    with pytest.raises(SendLimited):
        await world.deliver(first)
    await world.deliver(replace(first, content=TextContent(markdown="all of it"), attempts=1))

    assert world.texts() == ["all of it"]


async def test_a_message_that_was_taken_away_while_its_outcome_was_open_is_not_shown_again(world):
    world.server.fault("create_message", Fault.LOST_RESPONSE)
    first = text("once")
    with pytest.raises(SendLimited):
        await world.deliver(first)
    world.server.fail_next("edit_message", 404, {"code": 10008, "message": "Unknown Message"})

    assert await world.deliver(replace(first, attempts=1)) == str(world.server.visible(GENERAL)[0].id)
    assert len(world.server.visible(GENERAL)) == 1


async def test_a_limit_of_one_chat_is_kept_and_holds_no_other_c15(world):
    world.server.fault("create_message", Fault.FLOODED, seconds=149)
    once = text("at last")
    with pytest.raises(SendLimited) as raised:
        await world.deliver(once)
    assert raised.value.retry_after == timedelta(seconds=149)
    waiting = asyncio.create_task(world.deliveries.deliver(replace(once, attempts=1)))
    await world.settle()
    await world.deliveries.deliver(text("another chat", ELSEWHERE))
    assert (world.texts(GENERAL), world.texts(RANDOM)) == ([], ["another chat"])
    await world.clock.advance(timedelta(seconds=148.9))
    await world.settle()
    assert len(world.server.calls_of("create_message", GENERAL)) == 1
    await world.clock.advance(timedelta(seconds=0.1))
    await waiting

    assert world.texts() == ["at last"]


async def test_a_small_limit_is_kept_too_c15(world):
    world.server.fault("create_message", Fault.FLOODED, seconds=0.35)
    with pytest.raises(SendLimited) as raised:
        await world.deliver(text("soon"))

    assert raised.value.retry_after == timedelta(seconds=0.35)


async def test_a_limit_on_everything_is_told_to_every_chat_c15(world):
    world.server.fault("create_message", Fault.FLOODED, seconds=3, is_global=True)
    for address in (ELSEWHERE, text("x").address):
        with pytest.raises(SendLimited):
            await world.deliveries.deliver(text("x", address))
    await world.pass_time(4)

    assert len(world.server.calls) == 1
    assert await world.deliver(text("x"))


async def test_deliveries_keep_the_pace_of_their_chat_and_the_budget_c15(world):
    world.server.pace.enforced = True
    message = asked(world)
    wanted = [text(str(number)) for number in range(8)] + [reaction("\N{EYES}", message)]
    for each in wanted:
        await world.deliver(each)

    times = [call.at for call in world.server.calls_of("create_message")]
    assert times[-1] - times[0] >= 1.25 * 6 - 0.01
    assert {call.status for call in world.server.calls} <= {200, 204}


async def test_an_old_message_that_may_not_be_edited_now_is_shown_below_and_taken_away(world):
    shown = await world.deliver(card())
    world.server.fail_next(
        "edit_message", 429, {"message": "Maximum number of edits", "code": 30046, "retry_after": 900}
    )
    again = await world.deliver(card(rows=(), text="Allowed.", external_id=shown))

    assert again != shown
    assert [(message.text, message.buttons) for message in world.server.visible(GENERAL)] == [("Allowed.", {})]


async def test_a_file_is_sent_and_takes_the_place_of_a_message(world, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "a.txt"
    path.write_text("content")
    shown = await world.deliver(text("progress"))
    world.server.fail_next("delete_message", 403, {"code": 50013, "message": "Missing Permissions"})
    await world.deliver(file(path, external_id=shown))
    await world.deliver(file(path, external_id=shown, caption="*see*"))

    assert [message.text for message in world.server.visible(GENERAL)] == ["", "\\*see\\*"]
    assert [message.attachments[0].data for message in world.server.visible(GENERAL)] == [b"content"] * 2
    assert "discord_message_not_replaced" in caplog.text


async def test_a_file_of_unknown_outcome_is_sent_once(world, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("content")
    world.server.fault("create_message", Fault.LOST_RESPONSE)
    once = file(path)
    with pytest.raises(SendLimited):
        await world.deliver(once)
    await world.deliver(replace(once, attempts=1))

    assert [message.attachments[0].data for message in world.server.visible(GENERAL)] == [b"content"]


@pytest.mark.parametrize(
    ("permission", "words"),
    [(allowed.VIEW_CHANNEL, "View Channel"), (allowed.SEND_MESSAGES, "lacks a permission")],
)
async def test_a_channel_that_is_closed_to_the_bot_says_so_in_words(world, permission, words):
    world.server.directory.channel(GENERAL).overwrites = [Overwrite(BOT_ROLE, deny=permission)]
    with pytest.raises(SendRejected, match=words):
        await world.deliver(text("hello"))


async def test_a_person_who_takes_no_messages_says_so_in_words(world):
    channel = world.server.dm(BOB)
    world.server.directory.users[BOB].takes_messages = False
    with pytest.raises(SendRejected, match="takes no direct messages"):
        await world.deliver(text("hello", replace(ELSEWHERE, chat=str(channel), space=None)))


async def test_a_refused_token_is_told_as_such(world):
    world.server.account.revoked = True
    with pytest.raises(ChannelDown):
        await world.deliver(text("hello"))


async def test_an_address_of_another_platform_is_refused(world):
    with pytest.raises(SendRejected):
        await world.deliver(text("hello", replace(ELSEWHERE, chat="C0ROOM")))


async def test_an_open_outcome_at_the_end_of_the_nonce_is_told_as_open(world):
    held = world.server.gate_next("create_message")
    world.server.fault("create_message", Fault.LOST_RESPONSE)
    sending = asyncio.create_task(world.deliveries.deliver(text("slow")))
    await held.entered.wait()
    await world.clock.advance(NONCE_LIFE)
    held.opened.set()
    with pytest.raises(SendUnknown):
        await sending
