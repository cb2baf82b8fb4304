"""What every channel promises, checked on every one that `channel_harnesses` opens."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from core.contracts.addresses import (
    Button,
    CardContent,
    FileContent,
    MessageBody,
    OutboundItem,
    PressBody,
    ReactionContent,
    Removal,
    TextContent,
)
from core.contracts.errors import (
    ChannelDown,
    ChatMoved,
    DownloadRefused,
    SendLimited,
    SendRejected,
    SendUnknown,
    StoreUnavailable,
    TextTooLong,
)
from tests.contracts.channel_harnesses import HARNESSES, REMOTE, Seen

BOUND_SECONDS = 60


@pytest.fixture(params=HARNESSES, ids=list(HARNESSES))
async def harness(request):
    opened = await HARNESSES[request.param]()
    yield opened
    await opened.close()


@pytest.fixture(params=REMOTE, ids=list(REMOTE))
async def remote(request):
    """A harness where something can go wrong between channel and platform."""
    opened = await REMOTE[request.param]()
    yield opened
    await opened.close()


@dataclass
class RecordingSink:
    """Accepts events; the first `failures` of them not at once."""

    failures: int = 0
    events: list = field(default_factory=list)
    offered: list = field(default_factory=list)
    _arrivals: asyncio.Queue = field(default_factory=asyncio.Queue)

    async def accept(self, event):
        self.offered.append(event.key)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("locked")
        self.events.append(event)
        self._arrivals.put_nowait(event)

    async def next(self):
        async with asyncio.timeout(BOUND_SECONDS):
            return await self._arrivals.get()


@asynccontextmanager
async def running(channel, sink):
    task = asyncio.create_task(channel.run(sink))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


def text_item(harness, text, external_id=None, number=1):
    return OutboundItem(
        id=f"turn-1/{number}", address=harness.address, content=TextContent(markdown=text), external_id=external_id
    )


def card_item(harness, text, *labels, external_id=None):
    rows = (tuple(Button(token=f"token-{label}", label=label) for label in labels),) if labels else ()
    content = CardContent(text=text, code="ls -la", rows=rows)
    return OutboundItem(id="turn-1/card", address=harness.address, content=content, external_id=external_id)


def item_with(harness, content, **more):
    return OutboundItem(id="turn-1/other", address=harness.address, content=content, **more)


def file_item(harness, path, **more):
    content = FileContent(path=str(path), name="report.txt", media_type="text/plain", caption="as you asked")
    return item_with(harness, content, **more)


async def ignore_sent(_external_id):
    pass


async def test_a_message_becomes_an_event_with_the_address_to_answer(harness):
    sink = RecordingSink()
    async with running(harness.channel, sink):
        harness.say("hello")
        event = await sink.next()

    assert event.body == MessageBody(text="hello")
    assert event.address == harness.address
    assert event.address.channel == harness.channel.name


async def test_an_event_that_could_not_be_stored_is_offered_again_with_the_same_key(harness):
    sink = RecordingSink(failures=1)
    async with running(harness.channel, sink):
        harness.say("keep me")
        event = await sink.next()

    assert sink.offered == [event.key, event.key]


async def test_events_arrive_in_order_with_different_keys(harness):
    sink = RecordingSink()
    async with running(harness.channel, sink):
        for text in ("one", "two", "three"):
            harness.say(text)
        events = [await sink.next() for _ in range(3)]

    assert [event.body.text for event in events] == ["one", "two", "three"]
    assert len({event.key for event in events}) == 3


async def test_own_messages_are_never_heard(harness):
    sink = RecordingSink()
    async with running(harness.channel, sink):
        await harness.channel.deliver(text_item(harness, "I speak"))
        harness.say("you speak")
        event = await sink.next()

    assert event.body.text == "you speak"


async def test_a_refused_token_ends_run(remote):
    async with running(remote.channel, RecordingSink()) as task:
        remote.refuse_token()
        await asyncio.wait({task}, timeout=BOUND_SECONDS)

        assert isinstance(task.exception(), ChannelDown)


async def test_run_ends_when_it_is_cancelled(harness):
    async with running(harness.channel, RecordingSink()) as task:
        harness.say("hello")
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=BOUND_SECONDS)

        assert task.cancelled()


async def test_the_probe_is_healthy_while_events_arrive_and_not_before(harness):
    assert not (await harness.channel.probe()).healthy
    sink = RecordingSink()
    async with running(harness.channel, sink):
        harness.say("hello")
        await sink.next()

        assert (await harness.channel.probe()).healthy


async def test_a_delivery_is_visible_under_the_returned_id(harness):
    external_id = await harness.channel.deliver(text_item(harness, "hello"))

    assert harness.seen() == [Seen(external_id, "hello", ())]


async def test_a_delivery_with_an_external_id_edits_that_message(harness):
    first = await harness.channel.deliver(text_item(harness, "draft"))
    second = await harness.channel.deliver(text_item(harness, "final", external_id=first))

    assert second == first
    assert harness.seen() == [Seen(first, "final", ())]


async def test_an_edit_that_changes_nothing_counts_as_delivered(harness):
    first = await harness.channel.deliver(text_item(harness, "same"))

    assert await harness.channel.deliver(text_item(harness, "same", external_id=first)) == first
    assert len(harness.seen()) == 1


async def test_an_edit_of_a_message_that_is_gone_is_a_new_message(harness):
    first = await harness.channel.deliver(text_item(harness, "draft"))
    harness.delete(first)
    second = await harness.channel.deliver(text_item(harness, "final", external_id=first))

    assert harness.seen() == [Seen(second, "final", ())]


async def test_a_text_over_the_limit_is_too_long_and_one_at_the_limit_is_sent(harness):
    limit = harness.channel.capabilities.text_limit
    await harness.channel.deliver(text_item(harness, "x" * limit))
    with pytest.raises(TextTooLong):
        await harness.channel.deliver(text_item(harness, "x" * (limit + 1), number=2))

    assert [len(seen.text) for seen in harness.seen()] == [limit]


async def test_a_limited_send_says_how_long_to_wait_and_shows_nothing(remote):
    remote.limit_next(25)
    with pytest.raises(SendLimited) as raised:
        await remote.channel.deliver(text_item(remote, "hello"))

    assert raised.value.retry_after == timedelta(seconds=25)
    assert remote.seen() == []


async def test_a_refused_send_is_rejected_and_shows_nothing(remote):
    remote.reject_next()
    with pytest.raises(SendRejected):
        await remote.channel.deliver(text_item(remote, "hello"))

    assert remote.seen() == []


async def test_a_lost_answer_is_unknown_and_find_never_invents(remote):
    remote.lose_next_answer()
    item = text_item(remote, "hello")
    with pytest.raises(SendUnknown):
        await remote.channel.deliver(item)

    assert await remote.channel.find(item) in {None, *(seen.external_id for seen in remote.seen())}
    assert await remote.channel.find(replace(item, id="never-sent")) is None


async def test_a_card_shows_its_text_code_and_buttons_until_it_is_settled(harness):
    card = await harness.channel.deliver(card_item(harness, "Run this?", "Approve", "Deny"))
    (open_card,) = harness.seen()
    await harness.channel.deliver(card_item(harness, "Approved by Alice", external_id=card))
    (settled,) = harness.seen()

    assert open_card.labels == ("Approve", "Deny")
    assert "Run this?" in open_card.text
    assert "ls -la" in open_card.text
    assert (settled.external_id, settled.labels) == (card, ())
    assert "Approved by Alice" in settled.text


async def test_a_press_carries_the_buttons_token_and_can_be_acknowledged(harness):
    sink = RecordingSink()
    async with running(harness.channel, sink):
        card = await harness.channel.deliver(card_item(harness, "Run this?", "Approve"))
        harness.press(harness.seen()[0], "Approve")
        event = await sink.next()
        await harness.channel.acknowledge(event.body, "Noted")

    assert (event.body.token, event.body.card) == ("token-Approve", card)
    assert harness.answered() == ["Noted"]


async def test_acknowledging_a_press_nobody_knows_does_not_raise(harness):
    await harness.channel.acknowledge(PressBody(token="t", card="1", acknowledge="unknown"), "x" * 500)
    await harness.channel.acknowledge(PressBody(token="t", card="1"), "no query at all")


async def test_a_preview_is_posted_once_then_edited_and_the_final_takes_its_place(harness):
    sent = asyncio.Queue()
    async with asyncio.timeout(BOUND_SECONDS), harness.channel.reply(harness.address, sent.put) as reply:
        await reply.show("a")
        external_id = await sent.get()
        await reply.show("a longer text")
    await harness.channel.deliver(text_item(harness, "the final text", external_id=external_id))

    assert harness.seen() == [Seen(external_id, "the final text", ())]
    assert sent.empty()


async def test_a_reply_that_shows_nothing_leaves_nothing(harness):
    async with harness.channel.reply(harness.address, ignore_sent) as reply:
        await reply.set_status("thinking")
        await reply.show("")
        await reply.set_status("")

    assert harness.seen() == []


async def test_a_preview_that_is_refused_raises_nothing_and_the_final_arrives(remote):
    remote.reject_next()
    async with remote.channel.reply(remote.address, ignore_sent) as reply:
        await reply.show("a")
        await remote.refused()
        await reply.show("a b")
    await remote.channel.deliver(text_item(remote, "final"))

    assert remote.seen()[-1].text == "final"


async def _turn_that_breaks(harness):
    async with harness.channel.reply(harness.address, ignore_sent) as reply:
        await reply.show("a")
        raise KeyError("the turn broke")


async def test_an_error_in_the_block_comes_through_as_it_is(harness):
    with pytest.raises(KeyError):
        await _turn_that_breaks(harness)


async def test_capabilities_never_change(harness):
    assert harness.channel.capabilities == harness.channel.capabilities
    assert harness.channel.capabilities.text_limit > 0


async def test_every_content_that_a_channel_says_it_takes_is_taken(harness):
    capabilities = harness.channel.capabilities

    assert (capabilities.files, capabilities.reactions, capabilities.removals) == (True, True, True)


async def test_a_file_is_visible_by_name_and_caption_under_the_returned_id(harness, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"content")
    external_id = await harness.channel.deliver(file_item(harness, path))

    assert harness.seen() == [Seen(external_id, "report.txt\n\nas you asked", ())]


async def test_a_file_that_is_gone_is_refused_and_shows_nothing(harness, tmp_path):
    with pytest.raises(SendRejected):
        await harness.channel.deliver(file_item(harness, tmp_path / "gone"))

    assert harness.seen() == []


async def test_a_reaction_stands_on_its_message_until_it_is_taken_back(harness):
    message = await harness.channel.deliver(text_item(harness, "hello"))
    await harness.channel.deliver(item_with(harness, ReactionContent(emoji="👍"), reply_to=message))
    first = harness.reactions(message)
    await harness.channel.deliver(item_with(harness, ReactionContent(emoji="👀"), reply_to=message))
    second = harness.reactions(message)
    await harness.channel.deliver(item_with(harness, ReactionContent(emoji=""), reply_to=message))

    assert (first, second, harness.reactions(message)) == ("👍", "👀", "")
    assert [seen.text for seen in harness.seen()] == ["hello"]


async def test_a_reaction_has_an_id_that_is_no_messages(harness):
    message = await harness.channel.deliver(text_item(harness, "hello"))
    item = item_with(harness, ReactionContent(emoji="👍"), reply_to=message)

    assert await harness.channel.deliver(item) not in {seen.external_id for seen in harness.seen()}


async def test_a_removal_takes_its_message_away_and_may_be_repeated(harness):
    gone = await harness.channel.deliver(text_item(harness, "progress"))
    stays = await harness.channel.deliver(text_item(harness, "answer", number=2))
    for _ in range(2):
        assert await harness.channel.deliver(item_with(harness, Removal(), external_id=gone)) == gone

    assert [seen.external_id for seen in harness.seen()] == [stays]


@pytest.mark.parametrize("content", [Removal(), ReactionContent(emoji="👍")])
async def test_what_names_no_message_is_refused(harness, content):
    with pytest.raises(SendRejected):
        await harness.channel.deliver(item_with(harness, content))


async def test_a_chat_that_moved_says_where_to_and_nothing_is_shown(remote):
    address, chat = remote.move()
    with pytest.raises(ChatMoved) as raised:
        await remote.channel.deliver(replace(text_item(remote, "hello"), address=address))

    assert raised.value.chat == chat
    assert remote.seen() == []


async def test_a_download_is_written_whole_and_its_size_returned(harness, tmp_path):
    data = bytes(range(256)) * 1000
    size = await harness.channel.download(harness.offer(data), tmp_path / "in", limit_bytes=len(data))

    assert (size, (tmp_path / "in").read_bytes()) == (len(data), data)


async def test_a_download_over_the_limit_is_refused_and_leaves_no_file(harness, tmp_path):
    attachment = harness.offer(bytes(1000))
    for offered in (attachment, replace(attachment, size_bytes=None)):
        with pytest.raises(DownloadRefused):
            await harness.channel.download(offered, tmp_path / "in", limit_bytes=999)

    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_nobody_has_is_refused_and_leaves_no_file(harness, tmp_path):
    attachment = replace(harness.offer(b"x"), handle="never-offered")
    with pytest.raises(DownloadRefused):
        await harness.channel.download(attachment, tmp_path / "in", limit_bytes=999)

    assert list(tmp_path.iterdir()) == []


async def test_a_group_may_be_left_twice(remote):
    address, _ = remote.move()
    for _ in range(2):
        await remote.channel.leave(address)
