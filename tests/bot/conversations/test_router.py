"""From a committed event to what follows; the way of every message into a host."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.conversations.router import InboxSink, audience_of
from core.contracts.addresses import Attachment, EditBody, InboundEvent, MessageBody, PressBody, Privacy, Sender
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, InboxState
from core.contracts.errors import StoreUnavailable
from core.contracts.people import Person
from core.models.scripted import says
from tests.bot.conversations.hosting import ALICE, HERE, MIKE, SAM, SECRET, chat, hosting
from tests.core.stores.samples import inbound

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
        MessageBody(text="not for you", addressed=False),
        EditBody(message_key="m1", text="better"),
        PressBody(token="t", card="1"),
    ],
)
async def test_everything_else_takes_the_long_way(opened, body):
    async with opened() as host:
        await host.says("hi")
        await host.arrives(body)
        assert [bell.queue for bell in host.bells] == [INBOX_QUEUE]


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


async def test_a_message_without_words_is_told_what_is_missing(opened):
    async with opened() as host:
        await host.says("hi")
        await host.says("  ")
        assert host.texts()[-1] == "I can only read text for now."
        assert len(host.model.requests) == 1


async def test_a_file_with_words_is_said_to_be_unread_and_the_words_are_answered(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="what is this?", attachments=(PHOTO,)))
        await host.settle()
        assert "cat.png" in host.texts()[0]
        assert host.texts()[-1] == "one"


async def test_talk_that_is_not_for_the_agent_and_edits_start_nothing(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="lunch?", addressed=False))
        await host.arrives(EditBody(message_key="m1", text="dinner?"))
        await host.settle()
        assert host.texts() == []
        assert await states(host) == [InboxState.DONE, InboxState.DONE]


async def test_a_group_is_told_once_that_it_is_not_served(opened):
    async with opened() as host:
        for text in ("hi", "/help", "hello?"):
            await host.says(text, where=chat("-100"), privacy=Privacy.PRIVATE_GROUP)
        assert host.texts(chat("-100")) == ["I only work in direct chats for now; write to me there."]
        assert host.model.requests == []


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


class FullStore:
    """A delivery store that takes nothing while `full`."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.full = True

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def accept(self, event, *, conversation_id):
        if self.full:
            raise StoreUnavailable("disk full")
        return await self._inner.accept(event, conversation_id=conversation_id)


async def test_what_cannot_be_stored_is_not_taken_and_the_person_is_told_once_an_outage(opened):
    async with opened() as host:
        store = FullStore(host.stores.delivery)
        sink = InboxSink(host.app.router, store, host.app.channels, str)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await sink.accept(inbound("e1", address=HERE))
        assert sink.failing
        assert len(host.texts()) == 1
        assert "I cannot store messages right now" in host.texts()[0]
        store.full = False
        await sink.accept(inbound("e1", address=HERE))
        assert not sink.failing
        assert len(await host.stores.delivery.new_events(HERE.key)) == 1


async def test_an_outage_on_both_sides_is_still_an_unstored_event(opened):
    async with opened() as host:
        sink = InboxSink(host.app.router, FullStore(host.stores.delivery), host.app.channels, str)
        host.channel.refuse_token()
        with pytest.raises(StoreUnavailable):
            await sink.accept(inbound("e1", address=HERE))


async def test_an_inbox_row_holds_no_secret(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text=f"it is {SECRET}"))
        await host.arrives(EditBody(message_key="m1", text=f"no, {SECRET}"))
        assert SECRET not in repr(await host.stores.delivery.inbox_of(HERE.key))


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
