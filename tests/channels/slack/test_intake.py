"""What people say and do on Slack, over a socket, as the events that are handed over."""

import asyncio

import pytest

from core.contracts.addresses import (
    Attachment,
    CommandBody,
    DeleteBody,
    EditBody,
    HomeBody,
    MessageBody,
    Privacy,
    ReactionBody,
    TextContent,
)
from core.contracts.errors import StoreUnavailable
from tests.channels.slack.taking import opened, place
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import (
    ALICE,
    ALICE_DM,
    BOB,
    BOT,
    BOT_USER,
    EXTERNAL,
    GUEST,
    OTHER_BOT,
    OTHER_BOT_USER,
    PRIVATE,
    ROOM,
    SHARED,
    TRIO,
)

MENTION = f"<@{BOT_USER}>"


def raw(text, ts, *, channel=ROOM, kind="message", **fields):
    event = {"type": kind, "channel": channel, "user": ALICE, "ts": ts, "text": text} | fields
    return event | ({"channel_type": "channel"} if kind == "message" else {})


async def next_is_heard(world):
    """Let something follow, and return what was heard before it."""
    count = len(world.sink.events)
    world.server.user_says(ALICE_DM, ALICE, "what follows")
    events = await world.heard(count + 1)
    await world.acked()
    assert events[-1].body.text == "what follows"
    return events[:-1]


# Messages


async def test_a_direct_message_says_who_what_where_and_when():
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ALICE_DM, ALICE, "hello &amp; <https://example.org|welcome>")
        (event,) = await world.heard(1)

        assert event.address == place(ALICE_DM, ts)
        assert event.address.space == "T0TEAM"
        assert (event.key, event.external_id) == (f"m/{ALICE_DM}/{ts}", ts)
        assert (event.sender.identity, event.sender.name) == ("slack:T0TEAM/U0ALICE", "alice")
        assert (event.sender.is_bot, event.sender.is_guest, event.sender.roles) == (False, False, ("slack:S0OPS",))
        assert event.body == MessageBody(text="hello & welcome (https://example.org)", addressed=True)
        assert event.privacy is Privacy.DIRECT
        assert event.sent_at == world.clock.now()


@pytest.mark.parametrize(
    ("channel", "privacy"),
    [
        (ROOM, Privacy.PUBLIC),
        (PRIVATE, Privacy.PRIVATE_GROUP),
        (TRIO, Privacy.PRIVATE_GROUP),
        (SHARED, Privacy.PRIVATE_GROUP),
    ],
)
async def test_who_can_read_a_channel_is_asked_of_slack(channel, privacy):
    async with opened() as world:
        await world.listen()
        world.server.user_says(channel, ALICE, "hello")
        (event,) = await world.heard(1)

        assert event.privacy is privacy
        assert event.body.addressed is False


async def test_a_channel_of_which_slack_tells_nothing_is_what_the_event_says_it_is():
    async with opened() as world:
        await world.listen()
        world.server.take_scope("channels:read", "groups:read")
        world.server.user_says(ROOM, ALICE, "hello")
        world.server.user_says(PRIVATE, ALICE, "hello")
        events = {event.address.chat: event.privacy for event in await world.heard(2)}

        assert events == {ROOM: Privacy.PUBLIC, PRIVATE: Privacy.PRIVATE_GROUP}


async def test_guests_strangers_and_other_bots_are_told_as_such():
    async with opened() as world:
        await world.listen()
        world.server.user_says(ROOM, GUEST, "guest")
        world.server.user_says(SHARED, EXTERNAL, "stranger")
        world.server.user_says(ROOM, OTHER_BOT_USER, "bot")
        world.server.deliver(raw("hook", "1700000001.000100", user="", bot_id="B0HOOK", subtype="bot_message"))
        senders = {event.body.text: event.sender for event in await world.heard(4)}

        assert (senders["guest"].is_guest, senders["guest"].is_bot) == (True, False)
        assert (senders["stranger"].identity, senders["stranger"].is_guest) == ("slack:T0OTHER/U0EXT", True)
        assert (senders["bot"].is_bot, senders["bot"].is_guest) == (True, False)
        assert (senders["hook"].identity, senders["hook"].is_bot) == ("slack:T0TEAM/B0HOOK", True)


async def test_people_are_read_by_their_names():
    async with opened() as world:
        await world.listen()
        world.server.user_says(ROOM, ALICE, f"{MENTION} ask <@{BOB}> and <@U0NOBODY> &lt;now&gt;")
        (event,) = await world.heard(1)

        assert event.body.text == "ask @bob and @U0NOBODY <now>"
        assert event.body.addressed is True


@pytest.mark.parametrize("fault", [Fault.HALF_OPEN, Fault.ANSWERED])
async def test_a_name_that_slack_does_not_tell_holds_up_nothing(fault):
    async with opened() as world:
        await world.listen()
        world.server.fault("users.info", fault)
        world.server.user_says(ALICE_DM, ALICE, "hello")
        (event,) = await world.heard(1)
        await world.acked()

        assert event.sender.identity == "slack:T0TEAM/U0ALICE"
        assert event.sender.name == ALICE


async def test_files_are_told_with_the_handle_that_fetches_them_c07(tmp_path):
    async with opened() as world:
        await world.listen()
        photo = world.server.files.keep(b"\x89PNG\r\n" + b"x" * 60, "photo.png", user=ALICE)
        gone = world.server.files.keep(b"gone", "gone.txt", user=ALICE)
        world.server.user_says(ALICE_DM, ALICE, "", files=(photo,))
        (event,) = await world.heard(1)
        (attachment,) = event.body.attachments
        size = await world.channel.download(attachment, tmp_path / "photo", limit_bytes=100)
        world.server.deliver(
            raw("", "1700000001.000100", channel=ALICE_DM, files=[{"id": gone.id, "mode": "tombstone"}])
        )
        events = await world.heard(2)

        assert attachment == Attachment(handle=photo.id, name="photo.png", media_type="image/png", size_bytes=66)
        assert (size, (tmp_path / "photo").read_bytes()) == (66, photo.data)
        assert event.body.text == ""
        assert (events[1].body.attachments, events[1].body.unsupported) == ((), "a file that Slack does not show")


# Once, and in order


async def test_one_event_that_is_told_again_and_again_is_one_with_and_without_a_restart_c01():
    async with opened() as world:
        task = await world.listen()
        event = raw(f"{MENTION} summarise", "1700000001.000100", kind="app_mention")
        delivery = world.server.deliver(event)
        await world.server.acked(delivery)
        latencies = [delivery.latency]
        for seconds in (4, 71):
            await world.pass_time(seconds, step=1)
            world.server.redeliver(delivery)
            await world.until(lambda: len(world.sink.offers) == len(delivery.envelope_ids))
        await world.stop(task)
        await world.pass_time(235, step=5)
        world.server.redeliver(delivery)
        await world.listen()
        await world.until(lambda: len(world.sink.offers) == 4)

        assert latencies == [0]
        assert {offer.key for offer in world.sink.offers} == {f"m/{ROOM}/1700000001.000100"}
        assert len(set(map(repr, world.sink.offers))) == 1


@pytest.mark.parametrize("thread", [None, "1700000001.000100"])
@pytest.mark.parametrize("kinds", [("app_mention", "message"), ("message", "app_mention")])
@pytest.mark.parametrize("seconds", [0, 2])
async def test_a_mention_that_is_told_as_two_events_is_one_c02(thread, kinds, seconds):
    async with opened() as world:
        await world.listen()
        for kind in kinds:
            fields = {"thread_ts": thread} if thread else {}
            world.server.deliver(raw(f"{MENTION} hello", "1700000010.000100", kind=kind, **fields))
            await world.pass_time(seconds)
        await world.until(lambda: len(world.sink.offers) == 2)
        (event,) = world.sink.events
        first, second = world.sink.offers

        assert event.address == place(ROOM, thread or "1700000010.000100")
        assert (event.body.text, event.body.addressed) == ("hello", True)
        # Whichever is stored, it says the same.
        assert first == second


async def test_the_same_ts_in_two_channels_is_two_messages():
    async with opened() as world:
        await world.listen()
        for channel in (ROOM, PRIVATE):
            world.server.deliver(raw("hello", "1700000010.000100", channel=channel))

        assert len({event.key for event in await world.heard(2)}) == 2


async def test_messages_of_a_channel_keep_their_order_and_do_not_hold_up_others():
    async with opened() as world:
        await world.listen()
        world.sink.gate = asyncio.Event()
        for number in range(5):
            world.server.user_says(ROOM, ALICE, f"{number}")
        world.server.user_says(ALICE_DM, ALICE, "direct")
        await world.until(lambda: len(world.sink.held) == 2)
        world.sink.gate.set()
        events = await world.heard(6)

        assert {event.address.chat for event in world.sink.held[:2]} == {ROOM, ALICE_DM}
        assert [event.body.text for event in events if event.address.chat == ROOM] == ["0", "1", "2", "3", "4"]


# Conversations


async def test_a_root_and_what_is_below_it_are_one_conversation_and_nothing_else_is_c09():
    async with opened() as world:
        await world.listen()
        first = world.server.user_says(ROOM, ALICE, f"{MENTION} remember: colour is teal")
        world.server.user_says(ROOM, BOB, f"{MENTION} which colour?", thread_ts=first)
        world.server.user_says(ROOM, BOB, f"{MENTION} which colour?")
        world.server.user_says(ALICE_DM, ALICE, "which colour?")
        world.server.user_says(TRIO, ALICE, f"{MENTION} which colour?")
        events = sorted(await world.heard(5), key=lambda event: event.sent_at)
        addresses = [event.address for event in events]

        assert addresses[0] == addresses[1] == place(ROOM, first)
        assert len(set(addresses)) == 4
        assert events[1].external_id == f"{first}:{events[1].key.rpartition('/')[2]}"


async def test_where_asked_for_all_of_a_channel_is_one_conversation():
    async with opened(direct="chat", channels="chat") as world:
        await world.listen()
        first = world.server.user_says(ROOM, ALICE, "hello")
        world.server.user_says(ROOM, ALICE, "hello", thread_ts=first)
        world.server.user_says(ALICE_DM, ALICE, "hello")

        assert {event.address for event in await world.heard(3)} == {place(ROOM), place(ALICE_DM)}


async def test_a_direct_message_gives_its_session_a_title_once_that_begins():
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ALICE_DM, ALICE, "What is this?\nTell me.")
        (event,) = await world.heard(1)
        await world.server.wait_for(lambda: world.server.calls_of("agents.sessions.rename"))
        async with world.channel.reply(event.address, lambda _: None):
            await world.until(lambda: world.clock.sleeping)
            await world.pass_time(1)
            await world.server.wait_for(lambda: len(world.server.calls_of("agents.sessions.rename")) == 2)

        assert world.server.agents.sessions[ALICE_DM, ts].title == "What is this?"


# What is no new message


@pytest.mark.parametrize(
    "event",
    [
        {
            "type": "message",
            "subtype": "message_changed",
            "hidden": True,
            "channel": ROOM,
            "ts": "1700000031.000200",
            "message": {
                "type": "message",
                "subtype": "bot_message",
                "bot_id": BOT,
                "text": "see <https://example.org/a>",
                "ts": "1700000030.000100",
                "edited": {"ts": "1700000031.000000"},
            },
        },
        {
            "type": "message",
            "subtype": "message_deleted",
            "channel": ROOM,
            "ts": "1700000033.000200",
            "deleted_ts": "1700000010.000100",
        },
        {"type": "message", "channel": ROOM, "user": ALICE, "ts": "1700000034.000100"},
        {
            "type": "reaction_added",
            "user": ALICE,
            "reaction": "eyes",
            "item": {"type": "message", "channel": ROOM, "ts": "1700000030.000100"},
        },
        {"type": "message"},
        {"type": "message", "channel": ROOM, "user": [], "ts": {}, "text": None, "files": "x"},
        {"type": "reaction_added", "item": None},
        {"type": "agent_session_stopped"},
        {"type": "app_home_opened"},
        {"type": "something_new", "channel": ROOM, "user": ALICE, "text": "hello"},
        raw("<@U0ALICE> has joined", "1700000035.000100", subtype="channel_join"),
        {"type": "channel_left", "channel": ROOM},
    ],
)
async def test_what_says_nothing_is_acknowledged_and_heard_by_nobody_c05(event, caplog):
    async with opened() as world:
        await world.listen()
        delivery = world.server.deliver(event)
        await world.server.acked(delivery)

        assert await next_is_heard(world) == []
        assert [record for record in caplog.records if record.levelname in {"ERROR", "WARNING"}] == []


async def test_an_edit_is_a_correction_of_the_message_and_no_new_one_c05():
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ROOM, ALICE, f"{MENTION} hello")
        await world.heard(1)
        world.server.user_edits(ROOM, ts, f"{MENTION} hello again")
        world.server.redeliver(world.server.deliveries.all[-1])
        await world.until(lambda: len(world.sink.offers) == 4)
        message, edit = world.sink.events

        assert edit.body == EditBody(message_key=message.key, text="hello again")
        assert edit.address == message.address
        assert edit.sent_at > message.sent_at


async def test_the_preview_of_a_link_changes_nothing_c05():
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ROOM, ALICE, "see https://example.com/")
        world.server.link_unfurls(ROOM, ts)
        await world.acked()

        assert [event.body.text for event in await next_is_heard(world)] == ["see https://example.com/"]


async def test_a_deletion_names_the_message_that_it_deletes():
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ALICE_DM, ALICE, "hello")
        world.server.user_deletes(ALICE_DM, ts)
        message, deletion = await world.heard(2)

        assert deletion.body == DeleteBody(message_key=message.key)
        assert (deletion.address, deletion.sender) == (message.address, message.sender)


@pytest.mark.parametrize(
    "fields",
    [
        {"subtype": "bot_message", "bot_id": BOT, "user": "", "bot_profile": {"app_id": "A0APP"}},
        {"user": BOT_USER},
        {"user": BOT_USER, "bot_id": BOT},
    ],
)
async def test_its_own_words_are_never_heard_c08(fields):
    async with opened() as world:
        await world.listen()
        await world.server.acked(world.server.deliver(raw(f"{MENTION} done", "1700000050.000100", **fields)))

        assert await next_is_heard(world) == []


async def test_a_bot_that_answers_is_always_told_as_a_bot_c08():
    async with opened() as world:
        await world.listen()
        fields = {"user": OTHER_BOT_USER, "bot_id": OTHER_BOT}
        for number in range(10):
            world.server.deliver(raw(f"{MENTION} ok, next?", f"1700000060.{number:06d}", **fields))
        world.server.fault("users.info", Fault.ANSWERED, times=10)
        events = await world.heard(10)

        assert all(event.sender.is_bot for event in events)
        assert len({event.sender.identity for event in events}) == 1


# Acts


async def test_a_reaction_to_its_own_message_is_told_and_to_others_is_not():
    async with opened() as world:
        await world.listen()
        theirs = world.server.user_says(ROOM, ALICE, "hello")
        (event,) = await world.heard(1)
        message = await world.sends(event.address, TextContent(markdown="Here."))
        ts = message.rpartition(":")[2]
        world.server.user_reacts(ROOM, ALICE, theirs, "eyes")
        world.server.user_reacts(ROOM, ALICE, ts, "eyes")
        world.server.user_reacts(ROOM, ALICE, ts, "eyes", removed=True)
        _, *reactions = sorted(await world.heard(3), key=lambda event: event.sent_at)
        bodies = {reaction.body for reaction in reactions}

        assert bodies == {ReactionBody(message=message, emoji=("👀",)), ReactionBody(message=message, emoji=())}
        assert {reaction.address for reaction in reactions} == {event.address}


async def test_the_stop_button_is_the_command_to_cancel():
    async with opened() as world:
        await world.listen()
        ts = world.server.user_says(ALICE_DM, ALICE, "hello")
        await world.heard(1)
        delivery = world.server.stops_session(ALICE_DM, ALICE, ts)
        world.server.redeliver(delivery)
        await world.until(lambda: len(world.sink.offers) == 3)
        message, stop = world.sink.events

        assert stop.body == CommandBody(text="/cancel")
        assert (stop.address, stop.sender, stop.privacy) == (message.address, message.sender, Privacy.DIRECT)


@pytest.mark.parametrize(("words", "text"), [("status", "/status"), (" /mode safe ", "/mode safe"), ("", "/help")])
async def test_a_command_holds_for_the_channel_and_is_answered_to_its_giver_alone(words, text):
    async with opened() as world:
        await world.listen()
        delivery = world.server.runs_command("/lodger", words)
        assert await world.server.acked(delivery) == {}
        (event,) = await world.heard(1)
        await world.channel.acknowledge(event.body, "Done.")

        assert (event.body.text, event.address) == (text, place(ROOM))
        assert (event.sender.identity, event.privacy) == ("slack:T0TEAM/U0ALICE", Privacy.PUBLIC)
        assert [message.text for message in world.server.ephemeral(ROOM, ALICE)] == ["Done."]


async def test_who_looks_at_the_home_screen_is_told_each_time():
    async with opened() as world:
        await world.listen()
        for _ in range(2):
            await world.server.acked(world.server.opens_home(ALICE))
        events = await world.heard(2)

        assert [event.body for event in events] == [HomeBody(), HomeBody()]
        assert {event.address for event in events} == {place("home:U0ALICE")}


async def test_who_looks_at_the_direct_channel_is_offered_prompts():
    async with opened(suggested_prompts=("What can you do?",)) as world:
        await world.listen()
        world.server.opens_home(ALICE, tab="messages")
        await world.server.wait_for(lambda: world.server.agents.prompts)

        assert await next_is_heard(world) == []
        assert world.server.agents.prompts[ALICE_DM, ""][0]["message"] == "What can you do?"


async def test_an_event_that_breaks_the_host_stops_no_other(caplog):
    class Broken(RuntimeError):
        """Nobody foresaw it."""

    async with opened() as world:
        await world.listen()
        world.sink.errors = [Broken()]
        world.server.user_says(ROOM, ALICE, "hello")
        await world.until(lambda: world.sink.refused)
        world.server.user_says(ROOM, ALICE, "and on")
        (event,) = await world.heard(1)
        first, second = world.server.deliveries.all
        await world.server.acked(second)

        assert event.body.text == "and on"
        assert first.acked_at is None
        assert (await world.channel.probe()).healthy
        assert "Broken" in caplog.text


async def test_what_cannot_be_stored_is_noted_once_while_it_lasts(caplog):
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked") for _ in range(3)]
        for _ in range(3):
            world.server.user_says(ROOM, ALICE, "hello")
        await world.until(lambda: len(world.sink.refused) == 3)

        assert caplog.text.count("slack_event_not_stored") == 1
