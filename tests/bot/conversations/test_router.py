"""From a committed event to what follows; the way of every message into a host."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.conversations.reception import audience_of
from channels.fake import FakeChannel
from core.contracts.addresses import (
    Attachment,
    DeleteBody,
    EditBody,
    InboundEvent,
    MembershipBody,
    MessageBody,
    MigrationBody,
    PressBody,
    Privacy,
    Quote,
    ReactionBody,
    Sender,
)
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, InboxState
from core.contracts.people import Person
from core.models.scripted import says
from tests.bot.conversations.grouping import BOB, arrives, mentions, presses
from tests.bot.conversations.hosting import ALICE, CHANNEL, HERE, MIKE, SAM, chat, hosting

PHOTO = Attachment(handle="h", name="cat.png", media_type="image/png", size_bytes=3)


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *(steps or [says("one"), says("two"), says("three")]), **more)

    return open_host


async def states(host, where=HERE) -> list[InboxState]:
    return [row.state for row in await host.stores.delivery.inbox_of(where.key)]


async def test_the_first_message_makes_and_binds_a_conversation(opened):
    async with opened() as host:
        await host.says("hi")
        binding = await host.stores.delivery.binding(HERE.key)
        assert (binding.address, binding.agent_id) == (HERE, host.agent.id)


async def test_a_message_of_a_known_chat_is_queued_when_it_is_accepted(opened):
    async with opened() as host:
        await host.says("hi")
        await host.arrives(MessageBody(text="and?"))
        assert [bell.queue for bell in host.bells] == [CONVERSATION_QUEUE]
        assert (await states(host))[-1] is InboxState.QUEUED


@pytest.mark.parametrize(
    "body",
    [
        MessageBody(text="/status"),
        MessageBody(text=""),
        MessageBody(text="  \n"),
        MessageBody(text="look", attachments=(PHOTO,)),
        MessageBody(text="look", album="mg1"),
        MessageBody(text="not for you", addressed=False),
        EditBody(message_key="m1", text="better"),
        DeleteBody(message_key="m1"),
        ReactionBody(message="1", emoji=("x",)),
        MembershipBody(present=True),
        PressBody(token="t", card="1"),
    ],
)
async def test_everything_else_takes_the_long_way(opened, body):
    async with opened() as host:
        await host.says("hi")
        await host.arrives(body)
        assert [bell.queue for bell in host.bells] == [INBOX_QUEUE]


async def test_a_reply_takes_the_short_way_too(opened):
    async with opened() as host:
        await host.says("hi")
        await host.arrives(MessageBody(text="and?", quote=Quote(text="one", author="Lodger", by_agent=True)))
        assert [bell.queue for bell in host.bells] == [CONVERSATION_QUEUE]


async def test_a_person_who_lost_their_rights_takes_the_long_way(opened):
    async with opened() as host:
        await host.says("hi")
        await host.arrives(MessageBody(text="let me in"), who=SAM)
        assert [bell.queue for bell in host.bells] == [INBOX_QUEUE]
        await host.settle()
        assert "We have not met" in host.texts()[-1]
        assert len(host.model.requests) == 1


async def test_the_same_event_delivered_again_counts_once(opened):
    """C01, C04: with and without the conversation being known."""
    async with opened() as host:
        for _ in range(2):
            await host.arrives(MessageBody(text="hi"), key="update-1")
        await host.settle()
        await host.arrives(MessageBody(text="hi"), key="update-1")
        await host.settle()
        assert host.texts() == ["one"]
        assert len(host.model.requests) == 1


async def test_threads_of_a_chat_are_conversations_of_their_own(opened):
    async with opened() as host:
        await host.says("colour is teal")
        await host.says("which colour?", where=chat("111", "7"))
        assert await host.conversation_id() != await host.conversation_id(chat("111", "7"))
        assert "teal" not in repr(host.model.requests[1].messages)
        assert host.texts(chat("111", "7")) == ["two"]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (MessageBody(text="  "), "There is nothing in this message that I can read. Write to me, or send a file."),
        (MessageBody(text="", unsupported="a sticker"), "I cannot take a sticker."),
        (MessageBody(text=" ", unsupported="a poll", quote=Quote(text="x", author="y")), "I cannot take a poll."),
    ],
)
async def test_a_message_that_says_nothing_is_told_what_is_missing(opened, body, answer):
    async with opened() as host:
        await host.says("hi")
        await host.arrives(body)
        await host.settle()
        assert host.texts()[-1] == answer
        assert len(host.model.requests) == 1


async def test_what_cannot_be_taken_beside_words_is_told_to_the_model(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="funny", unsupported="a sticker"))
        await host.settle()
        assert host.texts() == ["one"]
        assert "came a sticker, which you cannot be given" in repr(host.model.requests[0].messages)


async def test_talk_that_is_not_for_the_agent_and_edits_start_nothing(opened):
    async with opened() as host:
        more = {"who": ALICE, "privacy": Privacy.PRIVATE_GROUP}
        await host.arrives(MembershipBody(present=True), **more)
        await host.arrives(PressBody(token="g:allow", card="1"), **more)
        await host.settle()
        await host.arrives(MessageBody(text="lunch?", addressed=False), **more)
        await host.arrives(EditBody(message_key="m1", text="dinner?"), **more)
        await host.settle()
        assert len(host.texts()) == 1
        assert await states(host) == [InboxState.DONE] * 4


async def test_a_chat_that_moved_goes_on_under_its_new_id(opened):
    """C20 D: what is said under the new id continues the old conversation; what waits is taken along."""
    old, new = chat("-4001"), chat("-1000000000002")
    async with opened() as host:
        await arrives(host, MembershipBody(present=True), where=old)
        await presses(host, "g:allow", where=old)
        await mentions(host, "colour is teal", where=old)
        await arrives(host, MigrationBody(chat=new.chat), where=old)
        await mentions(host, "which colour?", where=new)
        assert host.texts(new) == ["two"]
        assert "teal" in repr(host.model.requests[1].messages)
        assert await host.stores.delivery.binding(old.key) is None


async def test_what_waits_behind_a_move_is_routed_under_the_new_id_and_moving_twice_changes_nothing(opened):
    old, new = chat("-4001"), chat("-1000000000002")
    group = {"who": BOB, "privacy": Privacy.PRIVATE_GROUP}
    async with opened() as host:
        await arrives(host, MembershipBody(present=True), where=old)
        await presses(host, "g:allow", where=old)
        for _ in range(2):
            await host.arrives(MigrationBody(chat=new.chat), where=old, **group)
        await host.arrives(MessageBody(text="hi"), where=old, **group)
        await host.settle()
        assert host.texts(new)[-1] == "one"
        assert await host.stores.delivery.new_events(new.key) == await host.stores.delivery.new_events(old.key) == ()


async def test_answers_of_the_host_are_split_like_any_text(opened):
    async with opened() as host:
        await host.says("/remember " + " ".join(f"word{number}" for number in range(500)))
        await host.says("/memory show notes.md")
        assert len(host.texts()) > 2
        assert all(len(text) <= 2_000 for text in host.texts())


async def test_an_event_that_always_fails_is_given_up_with_a_word_and_the_next_is_heard(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="/status"))
        await host.arrives(MessageBody(text="/whoami"))
        await host.app.router.give_up(HERE.key)
        await host.settle()
        assert host.texts()[0].startswith("I could not handle this")
        assert "You are Alice" in host.texts()[1]
        assert await states(host) == [InboxState.DONE, InboxState.DONE]
        await host.app.router.give_up(HERE.key)
        assert len(host.texts()) == 2


class Buggy(FakeChannel):
    """A channel that breaks its promise not to raise."""

    async def acknowledge(self, press, text):
        raise ZeroDivisionError


async def test_what_is_given_up_is_what_failed_and_not_what_waits_before_it(opened):
    async with opened(channel=Buggy(CHANNEL)) as host:
        await host.arrives(MessageBody(text="", attachments=(PHOTO,), album="mg1"))
        await host.arrives(PressBody(token="u:abc", card="1"), who=MIKE)
        with pytest.raises(ZeroDivisionError):
            await host.ring(INBOX_QUEUE, HERE.key)
        await host.app.router.give_up(HERE.key)
        assert await states(host) == [InboxState.NEW, InboxState.DONE]


def event(privacy: Privacy, address=HERE) -> InboundEvent:
    return InboundEvent(
        address=address, key="e", sender=ALICE, body=MessageBody(text="x"), privacy=privacy, sent_at=None
    )


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        (Privacy.DIRECT, {"everyone", "person:p1"}),
        (Privacy.PRIVATE_GROUP, {"everyone", "address:telegram/-100"}),
        (Privacy.PUBLIC, {"everyone"}),
    ],
)
def test_who_can_see_an_address_decides_what_its_conversation_sees(privacy, words):
    """Invariant 16; a thread of a group is seen by the group."""
    person = Person(id="p1", name="Alice", identities=("telegram:111",))
    assert audience_of(event(privacy, chat("-100", "7")), person).words == words


async def test_two_people_of_one_chat_are_told_apart(opened):
    async with opened() as host:
        await host.says("hi")
        await host.says("hi", who=MIKE)
        await host.says("/whoami", who=Sender(identity=MIKE.identity, name="Another name"))
        assert "You are Mike" in host.texts()[-1]


async def test_nothing_is_left_to_do_when_all_is_quiet(opened):
    async with opened() as host:
        await host.says("hi")
        await host.passes(timedelta(hours=1))
        assert host.bells == []
