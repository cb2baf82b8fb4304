"""The channel of this machine: what its viewers get, beyond what every channel promises."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from channels.feed import FeedChannel, Noticed, Previewed, Removed, Said, Shown, StatusSet
from core.contracts.addresses import (
    Attachment,
    Button,
    CardContent,
    DeleteBody,
    EditBody,
    FileContent,
    MessageBody,
    OutboundItem,
    PressBody,
    Privacy,
    ReactionContent,
    Removal,
    Sender,
    TextContent,
)
from core.contracts.clock import FakeClock
from core.contracts.errors import ChannelDown, StoreUnavailable

ALICE = Sender(identity="local:owner", name="Alice")


class Sink:
    def __init__(self) -> None:
        self.events: list = []
        self.fails = False

    async def accept(self, event) -> None:
        if self.fails:
            raise StoreUnavailable("full")
        self.events.append(event)


@asynccontextmanager
async def running(channel: FeedChannel, sink: Sink):
    task = asyncio.create_task(channel.run(sink))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def make() -> FeedChannel:
    return FeedChannel("terminal", FakeClock())


def drained(queue) -> list:
    return [queue.get_nowait() for _ in range(queue.qsize())]


async def ignore(external_id: str) -> None:
    pass


def item(channel: FeedChannel, text: str, chat: str = "main") -> OutboundItem:
    return OutboundItem(id=f"t/{text}", address=channel.address(chat), content=TextContent(markdown=text))


async def test_what_is_said_is_stored_first_and_then_seen_by_every_viewer():
    channel, sink = make(), Sink()
    async with running(channel, sink), channel.subscribe("main") as one, channel.subscribe("main") as two:
        await channel.say("main", ALICE, "hello", key="k1")
        (event,) = sink.events
        assert (event.key, event.sender, event.body) == ("k1", ALICE, MessageBody(text="hello"))
        assert event.privacy is Privacy.DIRECT
        assert drained(one) == drained(two) == [Said(key="k1", name="Alice", text="hello")]


async def test_what_could_not_be_stored_is_seen_by_nobody_and_raises():
    channel, sink = make(), Sink()
    sink.fails = True
    async with running(channel, sink), channel.subscribe("main") as viewer:
        with pytest.raises(StoreUnavailable):
            await channel.say("main", ALICE, "hello")
        assert drained(viewer) == []


async def test_a_client_without_keys_of_its_own_gets_different_ones():
    channel, sink = make(), Sink()
    async with running(channel, sink):
        await channel.say("main", ALICE, "hello")
        await channel.say("main", ALICE, "hello")
    assert len({event.key for event in sink.events}) == 2


async def test_nothing_is_taken_before_the_channel_runs_and_after_it_ended():
    channel, sink = make(), Sink()
    with pytest.raises(ChannelDown):
        await channel.say("main", ALICE, "too early")
    async with running(channel, sink):
        pass
    with pytest.raises(ChannelDown):
        await channel.press("main", ALICE, "t", "c")
    assert sink.events == []


async def test_viewers_see_their_chat_alone():
    channel = make()
    async with channel.subscribe("main") as main, channel.subscribe("other") as other:
        await channel.deliver(item(channel, "hello", "other"))
        assert drained(main) == []
        assert [event.content.markdown for event in drained(other)] == ["hello"]


async def test_no_viewer_gets_a_button_that_opens_a_form():
    channel = make()
    approve, edit = Button(token="y", label="Approve"), Button(token="e", label="Edit…", opens_form=True)
    asked = CardContent(text="May I?", code="make", rows=((approve, edit), (edit,)))
    async with channel.subscribe("main") as viewer:
        await channel.deliver(replace(item(channel, "asked"), content=asked))
        (shown,) = drained(viewer)
    assert shown.content == replace(asked, rows=((approve,),))


async def test_nobody_listening_is_no_failure():
    channel = make()
    assert await channel.deliver(item(channel, "hello")) == "t/hello"


async def test_a_delivery_again_has_the_same_id():
    """So a send that is repeated after a crash doubles nothing on the screen."""
    channel = make()
    assert await channel.deliver(item(channel, "hello")) == await channel.deliver(item(channel, "hello"))


async def test_a_viewer_that_left_gets_nothing_more():
    channel = make()
    async with channel.subscribe("main") as queue:
        pass
    await channel.deliver(item(channel, "hello"))
    assert queue.empty()


async def test_a_viewer_that_does_not_read_is_dropped_and_the_others_go_on():
    channel = make()
    async with channel.subscribe("main") as lazy, channel.subscribe("main") as eager:
        for number in range(1_200):
            await channel.deliver(item(channel, str(number)))
            drained(eager)
        assert lazy.qsize() == 1_000
        await channel.deliver(item(channel, "last"))
        assert [event.content.markdown for event in drained(eager)] == ["last"]
        assert lazy.qsize() == 1_000


async def test_a_preview_is_bound_to_its_block_by_a_status():
    channel, sent = make(), []

    async def on_sent(external_id):
        sent.append(external_id)

    async with channel.subscribe("main") as viewer:
        async with channel.reply(channel.address("main"), on_sent) as reply:
            await reply.show("Once")
            await reply.set_status("running shell")
            await reply.show("Once upon")
        seen = drained(viewer)
    assert [type(event) for event in seen] == [StatusSet, Previewed, StatusSet, Previewed, StatusSet]
    assert [event.status for event in seen if isinstance(event, StatusSet)] == ["thinking", "running shell", ""]
    (external_id,) = sent
    assert {event.external_id for event in seen if isinstance(event, Previewed)} == {external_id}


async def test_blank_previews_show_nothing_and_report_no_id():
    channel, sent = make(), []

    async def on_sent(external_id):
        sent.append(external_id)

    async with channel.subscribe("main") as viewer:
        async with channel.reply(channel.address("main"), on_sent) as reply:
            await reply.show("")
            await reply.show(" \n")
        assert not any(isinstance(event, Previewed) for event in drained(viewer))
    assert sent == []


async def test_two_answers_have_two_ids():
    channel, sent = make(), []

    async def on_sent(external_id):
        sent.append(external_id)

    for _ in range(2):
        async with channel.reply(channel.address("main"), on_sent) as reply:
            await reply.show("x")
    assert len(set(sent)) == 2


async def test_a_press_is_answered_in_the_chat_it_came_from_once():
    channel, sink = make(), Sink()
    async with running(channel, sink), channel.subscribe("main") as viewer:
        await channel.press("main", ALICE, "token", "card")
        body = sink.events[0].body
        assert isinstance(body, PressBody)
        assert (body.token, body.card) == ("token", "card")
        await channel.acknowledge(body, "")
        assert drained(viewer) == []


async def test_the_words_for_a_presser_come_after_a_wordless_acknowledgement_too():
    """The router acknowledges a slow press without words first."""
    channel, sink = make(), Sink()
    async with running(channel, sink), channel.subscribe("main") as viewer:
        await channel.press("main", ALICE, "token", "card")
        body = sink.events[0].body
        await channel.acknowledge(body, "")
        await channel.acknowledge(body, "Approved.")
        assert drained(viewer) == [Noticed(text="Approved.")]


async def test_a_long_message_is_shown_whole_up_to_the_limit():
    channel = make()
    async with channel.subscribe("main") as viewer:
        await channel.deliver(item(channel, "x" * channel.capabilities.text_limit))
        (shown,) = drained(viewer)
    assert isinstance(shown, Shown)
    assert len(shown.content.markdown) == channel.capabilities.text_limit


async def test_a_press_that_could_not_be_stored_leaves_nothing_behind():
    channel, sink = make(), Sink()
    sink.fails = True
    async with running(channel, sink):
        with pytest.raises(StoreUnavailable):
            await channel.press("main", ALICE, "token", "card")
    assert channel._presses == {}


async def test_chats_without_viewers_are_forgotten():
    channel = make()
    async with channel.subscribe("main"), channel.subscribe("main"):
        pass
    assert channel._subscribers == {}


async def test_what_was_said_can_be_changed_and_taken_back():
    channel, sink = make(), Sink()
    async with running(channel, sink), channel.subscribe("main") as viewer:
        await channel.say("main", ALICE, "hello", key="k1")
        await channel.edit("main", ALICE, "k1", "hello there")
        await channel.withdraw("main", ALICE, "k1")
        seen = drained(viewer)

    assert [event.body for event in sink.events[1:]] == [
        EditBody(message_key="k1", text="hello there"),
        DeleteBody(message_key="k1"),
    ]
    assert len({event.key for event in sink.events}) == 3
    assert seen[1:] == [Said(key="k1", name="Alice", text="hello there"), Removed(external_id="k1")]


async def test_a_change_that_could_not_be_stored_is_seen_by_nobody():
    channel, sink = make(), Sink()
    sink.fails = True
    async with running(channel, sink), channel.subscribe("main") as viewer:
        with pytest.raises(StoreUnavailable):
            await channel.edit("main", ALICE, "k1", "x")
        with pytest.raises(StoreUnavailable):
            await channel.withdraw("main", ALICE, "k1")
        assert drained(viewer) == []


async def test_files_of_this_machine_come_with_a_message():
    channel, sink = make(), Sink()
    attachment = Attachment(handle="/tmp/a.txt", name="a.txt", media_type="text/plain")
    async with running(channel, sink):
        await channel.say("main", ALICE, "look", attachments=(attachment,))

    assert sink.events[0].body == MessageBody(text="look", attachments=(attachment,))


async def test_viewers_see_files_reactions_and_what_is_taken_away(tmp_path):
    channel = make()
    path = tmp_path / "a.txt"
    path.write_text("content")
    file = FileContent(path=str(path), name="a.txt", media_type="text/plain")
    contents = [file, ReactionContent(emoji="x"), ReactionContent(emoji=""), Removal()]
    async with channel.subscribe("main") as viewer:
        for content in contents:
            external_id = "m1" if isinstance(content, Removal) else None
            outgoing = replace(item(channel, "x"), content=content, external_id=external_id, reply_to="k1")
            await channel.deliver(outgoing)
        seen = drained(viewer)

    assert seen == [
        Shown(external_id="t/x", content=file),
        Shown(external_id="reaction/k1", content=contents[1]),
        Removed(external_id="reaction/k1"),
        Removed(external_id="m1"),
    ]


async def test_nobody_leaves_a_chat_of_this_machine():
    channel = make()
    await channel.leave(channel.address("main"))
    assert await channel.deliver(item(channel, "still here")) == "t/still here"
