"""Delivery of files, reactions and removals, and of what a chat that moved was to get."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.conversations.outbox import masked, notice
from channels.fake import FakeChannel
from core.contracts.addresses import Address, FileContent, OutboundItem, ReactionContent, Removal, TextContent
from core.contracts.delivery import Binding, OutboxState, chat_key
from core.contracts.errors import ChannelDown, ChatMoved, SendLimited, SendRejected, SendUnknown, TextTooLong
from core.contracts.ids import AgentId, ConversationId
from tests.bot.conversations.posting import ONE, TWO, posting
from tests.core.stores.samples import seed, turn

UNKNOWN = "It is not known whether report.pdf arrived."


@pytest.fixture
async def post():
    async with posting() as opened:
        yield opened


@pytest.fixture
def report(tmp_path) -> OutboundItem:
    path = tmp_path / "copy.pdf"
    path.write_bytes(b"%PDF")
    content = FileContent(path=str(path), name="report.pdf", media_type="application/pdf", caption="Here it is.")
    return OutboundItem(id="file", address=ONE, content=content)


async def posted(post, *items: OutboundItem) -> None:
    await post.store.post(items)
    await post.deliver()


async def test_a_file_is_sent_once_and_its_copy_is_let_go(post, report):
    await posted(post, report)
    await post.deliverer.deliver_chat(chat_key(ONE))
    (message,) = post.channel.messages.values()
    assert (message.text, message.data) == ("report.pdf\n\nHere it is.", b"%PDF")
    assert await post.state("file") is OutboxState.SENT
    assert post.done_files == ["report.pdf"]


async def test_a_file_whose_answer_was_lost_and_is_found_was_sent(post, report):
    post.channel.lose_next_answer()
    await posted(post, report)
    assert post.texts() == ["report.pdf\n\nHere it is."]
    assert await post.state("file") is OutboxState.SENT


async def test_a_file_of_unknown_outcome_is_not_sent_again_and_the_chat_is_told(post, report):
    post.channel.fail_next(SendUnknown("lost"))
    await posted(post, report, notice("next", ONE, "next"))
    await post.later(timedelta(hours=1))
    assert post.texts() == ["next", UNKNOWN]
    assert await post.state("file") is OutboxState.UNKNOWN
    assert post.done_files == ["report.pdf"]


@pytest.mark.parametrize("lookup", [False, True])
async def test_a_file_that_a_dead_process_was_sending_is_not_sent_again(post, report, lookup):
    post.can(lookup=lookup)
    await post.store.post([report])
    await post.store.mark_attempted("file")
    post.start()
    await post.deliver()
    assert post.texts() == [UNKNOWN]
    assert await post.state("file") is OutboxState.UNKNOWN


@pytest.mark.parametrize("lookup", [False, True])
async def test_that_a_file_is_being_sent_is_on_record_before_it_is(post, report, lookup):
    """Invariant 11: a crash in the middle must be seen by who comes next."""
    post.can(lookup=lookup)
    states = []
    deliver = post.channel.deliver

    class Watched(type(post.channel)):
        async def deliver(self, item):
            states.append(await post.state(item.id))
            return await deliver(item)

    watched = Watched("fake", capabilities=post.channel.capabilities, clock=post.clock)
    post.start(channels={"fake": watched})
    await posted(post, report)
    assert states == [OutboxState.ATTEMPTED]


async def test_a_file_for_a_platform_that_is_away_waits_and_is_sent_once(post, report):
    post.channel.fail_next(ChannelDown("gone"), SendLimited("slow", retry_after=timedelta(seconds=0.35)))
    await posted(post, report)
    await post.later(timedelta(seconds=5))
    await post.later(timedelta(seconds=0.35))
    assert post.texts() == ["report.pdf\n\nHere it is."]
    assert await post.state("file") is OutboxState.SENT


async def test_a_file_that_is_refused_is_told(post, report):
    post.channel.fail_next(SendRejected("bad type"))
    await posted(post, report)
    assert post.texts() == ["report.pdf could not be sent."]
    assert await post.state("file") is OutboxState.FAILED
    assert post.done_files == ["report.pdf"]


async def test_a_caption_that_is_too_long_becomes_a_message_below_the_file(post, report):
    post.channel.fail_next(TextTooLong("caption is too long"))
    await posted(post, report, notice("next", ONE, "next"))
    assert post.texts() == ["report.pdf", "Here it is.", "next"]


async def test_a_channel_without_files_is_told_the_name_and_the_caption(post, report):
    post.can(files=False)
    await posted(post, report)
    assert post.texts() == ["(A file that I cannot send here: report.pdf)\n\nHere it is."]
    assert post.done_files == ["report.pdf"]


async def test_no_secret_leaves_in_a_name_or_a_caption(post, report):
    """Invariant 10."""
    secret = replace(report, content=replace(report.content, name="hunter2.pdf", caption="it is hunter2"))
    await posted(post, secret)
    post.can(files=False)
    await posted(post, replace(secret, id="other"))
    assert "hunter2" not in " ".join(post.texts())
    reaction = OutboundItem(id="r", address=ONE, content=ReactionContent(emoji="x"), reply_to="1")
    assert masked(reaction, str.upper) == reaction


def reaction(emoji: str = "👍", on: str = "7") -> OutboundItem:
    return OutboundItem(id="react", address=ONE, content=ReactionContent(emoji=emoji), reply_to=on)


async def test_a_reaction_stands_on_its_message(post):
    await posted(post, reaction())
    assert post.channel.reactions == {"7": "👍"}
    assert await post.state("react") is OutboxState.SENT


async def test_a_reaction_of_unknown_outcome_is_repeated(post):
    post.channel.fail_next(SendUnknown("lost"), SendUnknown("lost"))
    await posted(post, reaction())
    await post.later(timedelta(seconds=5))
    await post.later(timedelta(seconds=10))
    assert post.channel.reactions == {"7": "👍"}


async def test_a_reaction_that_never_comes_to_an_end_does_not_hold_the_chat(post):
    post.channel.fail_next(*[SendUnknown("lost")] * 5)
    await posted(post, reaction(), notice("next", ONE, "next"))
    for _ in range(5):
        await post.later(timedelta(minutes=5))
    assert post.texts() == ["next"]
    assert await post.state("react") is OutboxState.UNKNOWN


@pytest.mark.parametrize("reactions", [False, True])
async def test_a_reaction_that_is_not_possible_is_nothing_to_talk_about(post, reactions):
    post.can(reactions=reactions)
    if reactions:
        post.channel.fail_next(SendRejected("not allowed here"))
    await posted(post, reaction(), notice("next", ONE, "next"))
    assert post.texts() == ["next"]
    assert post.channel.reactions == {}
    assert await post.state("react") is OutboxState.FAILED


async def removing(post, *, final: OutboxState | None = OutboxState.SENT) -> None:
    """Let a turn's progress message be visible, and its answer be a message of its own."""
    await seed(post.world)
    await post.world.stores.ledger.begin_turn(turn(), inbox_ids=[], live=None)
    await post.send("progress")
    items = [] if final is None else [notice("turn-1/end", ONE, "the answer")]
    await post.store.post(items, turn_id=turn().id)
    removal = OutboundItem(id="away", address=ONE, content=Removal(), external_id="1")
    await post.store.post([removal], turn_id=turn().id)


async def test_a_removal_takes_the_message_away_behind_the_answer(post):
    await removing(post)
    await post.deliver()
    assert post.texts() == ["the answer"]
    assert [type(item.content) for item in post.channel.deliveries] == [TextContent, TextContent, Removal]
    assert await post.state("away") is OutboxState.SENT


async def test_a_removal_is_repeated_until_its_outcome_is_known(post):
    await removing(post, final=None)
    post.channel.fail_next(SendUnknown("lost"), ChannelDown("gone"))
    await post.deliver()
    await post.later(timedelta(seconds=5))
    await post.later(timedelta(seconds=10))
    assert post.texts() == []


async def test_a_message_that_cannot_be_removed_any_more_stays_and_nobody_is_told(post):
    await removing(post)
    await post.later(timedelta(0))
    post.channel.fail_next(SendRejected("too old"))
    await posted(post, OutboundItem(id="again", address=ONE, content=Removal(), external_id="2"))
    await post.send("next", first=9)
    assert post.texts() == ["the answer", "next"]
    assert await post.state("again") is OutboxState.SENT


async def test_a_progress_message_stays_where_the_answer_could_not_be_shown(post):
    """It is all that people have of the turn."""
    await removing(post)
    post.channel.fail_next(SendRejected("blocked"))
    await post.deliver()
    assert post.texts() == ["progress", "My answer could not be sent here. My operator can see why."]
    assert await post.state("turn-1/end") is OutboxState.FAILED


@pytest.mark.parametrize("removals", [False, True])
async def test_a_removal_without_a_message_or_a_platform_that_can_is_dropped(post, removals):
    post.can(removals=removals)
    item = OutboundItem(id="away", address=ONE, content=Removal(), external_id=None if removals else "1")
    await posted(post, item, notice("next", ONE, "next"))
    assert post.texts() == ["next"]
    assert not any(isinstance(item.content, Removal) for item in post.channel.deliveries)


async def test_what_was_for_a_chat_that_moved_is_delivered_once_to_its_new_id(post, report):
    """C20 E."""
    moved = replace(ONE, chat="-100")
    await post.store.bind(Binding(address=ONE, agent_id=AgentId("agent-1"), conversation_id=ConversationId("conv-1")))
    post.channel.fail_next(ChatMoved("upgraded", chat="-100"))
    await posted(post, report, notice("next", ONE, "next"))
    assert post.texts(moved) == ["report.pdf\n\nHere it is.", "next"]
    assert post.texts() == []
    assert (await post.store.binding(moved.key)).conversation_id == "conv-1"
    assert await post.store.binding(ONE.key) is None


async def test_an_edit_of_a_message_in_a_chat_that_moved_is_posted_there(post):
    moved: Address = replace(ONE, chat="-100")
    await post.send("draft")
    await post.store.amend("t/1", TextContent(markdown="final"))
    post.channel.fail_next(ChatMoved("upgraded", chat="-100"))
    await post.deliver()
    assert (post.texts(), post.texts(moved)) == (["draft"], ["final"])


class MovingChannel(FakeChannel):
    """Learns that the first chat moved only at the end of an upload, which waits for `go`."""

    def __init__(self, name, **more) -> None:
        super().__init__(name, **more)
        self.uploading, self.go = asyncio.Event(), asyncio.Event()

    async def deliver(self, item: OutboundItem) -> str:
        if item.address == ONE:
            self.uploading.set()
            await self.go.wait()
            raise ChatMoved("upgraded", chat=TWO.chat)
        return await super().deliver(item)


async def test_a_chat_that_moves_while_a_file_goes_up_gets_it_once_and_no_excuse(post, report):
    """The move is also told by an event, before the upload learns of it."""
    channel = MovingChannel("fake", capabilities=post.channel.capabilities, clock=post.clock)
    post.channel = channel
    post.start()
    await post.store.post([report])
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(post.deliverer.deliver_chat(chat_key(ONE)))
        await channel.uploading.wait()
        await post.store.migrate_chat(ONE, TWO.chat)
        await post.deliverer.deliver_chat(chat_key(TWO))
        channel.go.set()
    await post.later(timedelta(seconds=30))
    assert post.texts(TWO) == ["report.pdf\n\nHere it is."]
    assert post.done_files == ["report.pdf"]
    assert await post.state("file") is OutboxState.SENT
