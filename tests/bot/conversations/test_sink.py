"""What reaches the inbox: committed or refused as a whole, without secrets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.conversations.sink import InboxSink, cleaned
from core.contracts.addresses import (
    Attachment,
    CommandBody,
    DeleteBody,
    EditBody,
    HomeBody,
    MembershipBody,
    MessageBody,
    MigrationBody,
    PressBody,
    Quote,
    ReactionBody,
    Sender,
)
from core.contracts.errors import StoreUnavailable
from core.models.scripted import says
from tests.bot.conversations.hosting import ALICE, HERE, SECRET, chat, hosting
from tests.core.stores.samples import inbound


@pytest.fixture
def opened(tmp_path):
    return lambda: hosting(tmp_path)


async def nowhere(event) -> None:
    """Send every event the long way."""


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
        sink = InboxSink(nowhere, store, host.app.channels, str)
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
        sink = InboxSink(nowhere, FullStore(host.stores.delivery), host.app.channels, str)
        host.channel.refuse_token()
        with pytest.raises(StoreUnavailable):
            await sink.accept(inbound("e1", address=HERE))


@pytest.mark.parametrize(
    "body",
    [
        MessageBody(text=f"it is {SECRET}"),
        MessageBody(text="x", quote=Quote(text=f"it is {SECRET}", author="Bob")),
        MessageBody(text="x", quote=Quote(text="y", author=SECRET)),
        MessageBody(text="x", forwarded_from=SECRET),
        MessageBody(text="x", unsupported=SECRET),
        MessageBody(text="x", attachments=(Attachment(handle="h", name=f"{SECRET}.txt", media_type="text/plain"),)),
        EditBody(message_key="m1", text=f"no, {SECRET}"),
        ReactionBody(message="1", emoji=(SECRET,)),
        PressBody(token="a:1:r", card="1", values=(("reason", SECRET),)),
        CommandBody(text=f"/remember {SECRET}"),
    ],
)
async def test_an_inbox_row_holds_no_secret(opened, body):
    """Invariant 10: no text field of any body."""
    async with opened() as host:
        await host.arrives(body)
        (row,) = await host.stores.delivery.inbox_of(HERE.key)
        assert SECRET not in repr(row)
        assert "[secret password]" in repr(row)


async def test_a_name_that_cannot_be_written_is_mended(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="hi"), who=Sender(identity=ALICE.identity, name=f"A\0\ud83d {SECRET}"))
        (row,) = await host.stores.delivery.inbox_of(HERE.key)
        assert row.event.sender.name == "A\ufffd [secret password]"


@pytest.mark.parametrize(
    "body",
    [
        DeleteBody(message_key="m1"),
        PressBody(token="a:1:y", card="1"),
        HomeBody(),
        MembershipBody(present=True),
        MigrationBody(chat="-1"),
    ],
)
def test_what_holds_no_words_is_kept_as_it_is(body):
    assert cleaned(body, str.upper) == body


async def test_a_channel_that_was_away_learns_where_each_chat_stands(tmp_path):
    quiet = chat("999")
    async with hosting(tmp_path, says("hello")) as host:
        await host.arrives(MessageBody(text="hi"))
        await host.settle()
        (bound,) = await host.stores.delivery.bound_addresses(HERE.channel, HERE.account)
        binding = await host.stores.delivery.binding(bound.key)
        await host.stores.delivery.bind(replace(binding, address=quiet))
        (row,) = await host.stores.delivery.inbox_of(HERE.key)
        marks = await host.app.sink.marks(HERE.channel, HERE.account)
        assert {mark.address: mark.sent_at for mark in marks} == {HERE: row.event.sent_at, quiet: row.event.sent_at}
        assert await host.app.sink.marks(HERE.channel, "another") == ()


async def test_a_chat_has_moved_when_the_event_that_tells_of_it_is_accepted_c20(tmp_path):
    """What is accepted next may be said under the new id, and is routed beside it."""
    async with hosting(tmp_path, says("one")) as host:
        await host.says("hello")
        store, moved = host.stores.delivery, replace(HERE, chat="222")
        bound = await store.binding(HERE.key)
        told = replace(inbound("migration", address=HERE), body=MigrationBody(chat=moved.chat))
        await InboxSink(nowhere, store, host.app.channels, str).accept(told)
        assert await store.binding(HERE.key) is None
        assert (await store.binding(moved.key)).conversation_id == bound.conversation_id
