"""Which waiting messages one turn answers, and how a turn begins."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.turn_opening import LATE_AFTER, answered_together, is_late
from core.contracts.addresses import Address, InboundEvent, MessageBody, Privacy, Sender
from core.contracts.delivery import InboxRow, InboxState
from core.contracts.runs import TurnState
from core.models.scripted import asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.hosting import HERE, MIKE, hosting
from tests.bot.conversations.queueing import fresh_worker, heard, open_conversation, queue, row_of, still_queued
from tests.core.stores.samples import START

LATE = LATE_AFTER + timedelta(seconds=1)


def row(number: int, *, late: bool = False, who: str = "alice", place: str = "1", album: str | None = None) -> InboxRow:
    event = InboundEvent(
        address=Address(channel="fake", account="bot", chat=place),
        key=str(number),
        sender=Sender(identity=f"fake:{who}", name=who),
        body=MessageBody(text=str(number), album=album),
        privacy=Privacy.DIRECT,
        sent_at=START - (LATE if late else timedelta(0)),
    )
    return InboxRow(id=number, event=event, state=InboxState.QUEUED, conversation_id=None, received_at=START)


def taken(*rows: InboxRow) -> list[int]:
    return [found.id for found in answered_together(rows)]


def test_a_message_is_answered_alone():
    assert taken(row(1), row(2)) == [1]


def test_a_message_is_late_when_it_waited_longer_than_a_host_that_is_up_lets_it():
    assert [is_late(row(1)), is_late(row(1, late=True))] == [False, True]


def test_an_album_is_answered_together_whatever_stands_between_its_parts():
    """C10: a text between the second and the third picture is a turn of its own."""
    assert taken(row(1, album="a"), row(2, album="a"), row(3), row(4, album="a"), row(5, album="b")) == [1, 2, 4]


def test_albums_of_different_people_and_places_are_different_albums():
    assert taken(row(1, album="a"), row(2, album="a", who="bob"), row(3, album="a", place="2")) == [1]


def test_late_messages_in_a_row_are_answered_together():
    assert taken(row(1, late=True), row(2, late=True), row(3, late=True), row(4)) == [1, 2, 3]


def test_late_messages_end_at_whoever_else_spoke_and_at_what_came_in_time():
    assert taken(row(1, late=True), row(2, late=True, who="bob"), row(3, late=True)) == [1]
    assert taken(row(1, late=True), row(2, late=True, place="2"), row(3, late=True)) == [1]
    assert taken(row(1, late=True), row(2), row(3, late=True)) == [1]
    assert taken(row(1), row(2, late=True)) == [1]


def test_the_rest_of_a_late_album_belongs_to_it():
    assert taken(row(1, late=True), row(2, late=True, album="a"), row(3, who="bob"), row(4, album="a")) == [1, 2, 4]


_ROWS = st.builds(
    row,
    st.just(0),
    late=st.booleans(),
    who=st.sampled_from(["alice", "bob"]),
    place=st.sampled_from(["1", "2"]),
    album=st.sampled_from([None, None, "a"]),
)


@given(st.lists(_ROWS, min_size=1, max_size=8))
def test_what_is_answered_together_is_of_one_sender_and_place_and_in_order(rows):
    queued = [row(number, **_facts(found)) for number, found in enumerate(rows, start=1)]
    answered = answered_together(queued)
    assert answered[0] == queued[0]
    assert [found.id for found in answered] == sorted(found.id for found in answered)
    assert len({(found.event.sender, found.event.address) for found in answered}) == 1


def _facts(found: InboxRow) -> dict:
    event = found.event
    return {
        "late": is_late(found),
        "who": event.sender.name,
        "place": event.address.chat,
        "album": event.body.album,
    }


@pytest.fixture
def opened(tmp_path):
    return lambda *steps, **more: hosting(tmp_path, *steps, **more)


async def test_what_waited_for_the_host_is_answered_once(opened):
    async with opened(says("To all."), says("To this.")) as host:
        for text in ("first", "second", "third"):
            await queue(host, text, waited=LATE)
        await queue(host, "fresh")
        await host.settle()
        assert host.texts() == ["To all.", "To this."]
        assert "\n".join(await heard(host)) == "first\nsecond\nthird\nfresh"


async def test_an_album_is_one_turn_and_the_text_between_its_parts_another(opened):
    async with opened(says("Pictures."), says("In a hurry.")) as host:
        for text, album in (("which is sharpest?", "mg1"), ("p2", "mg1"), ("hurry", None), ("p3", "mg1")):
            await queue(host, text, album=album)
        await host.settle()
        assert host.texts() == ["Pictures.", "In a hurry."]
        assert "\n".join(await heard(host)) == "which is sharpest?\np2\np3\nhurry"


async def test_messages_of_two_people_are_two_turns(opened):
    async with opened(says("One."), says("Two.")) as host:
        await queue(host, "first", waited=LATE)
        await queue(host, "second", waited=LATE, who=MIKE)
        await host.settle()
        assert host.texts() == ["One.", "Two."]


async def test_a_turn_answers_the_message_as_it_stood_when_it_was_taken(opened):
    class Editing:
        """A ledger before whose turns a message is edited by its sender."""

        def __getattr__(self, name):
            return getattr(host.stores.ledger, name)

        async def begin_turn(self, *args, **more):
            await host.stores.delivery.revise(HERE, key, "second thoughts")
            return await host.stores.ledger.begin_turn(*args, **more)

    async with opened(says("Yes.")) as host:
        key = await queue(host, "first")
        await fresh_worker(host, ledger=Editing()).advance(await host.conversation_id())
        assert await heard(host) == ["second thoughts"]


async def test_a_message_that_is_withdrawn_at_the_last_moment_starts_no_turn_and_the_next_one_does(opened):
    class Withdrawing:
        """A ledger before whose first turn a message is deleted by its sender."""

        def __getattr__(self, name):
            return getattr(host.stores.ledger, name)

        async def begin_turn(self, *args, **more):
            await host.stores.delivery.withdraw(HERE, key)
            return await host.stores.ledger.begin_turn(*args, **more)

    async with opened(says("Yes.")) as host:
        key = await queue(host, "never mind")
        await queue(host, "second")
        await fresh_worker(host, ledger=Withdrawing()).advance(await host.conversation_id())
        await host.settle()
        assert (await heard(host), host.texts()) == (["second"], ["Yes."])
        assert (await row_of(host, key)).state.value == "withdrawn"


async def test_a_paused_conversation_begins_no_turn_and_keeps_what_waits(opened):
    async with opened(says("Yes.")) as host:
        conversation = await host.backend.get_conversation(await open_conversation(host))
        await pause(host, conversation.id, paused=True)
        await queue(host, "first")
        await host.settle()
        assert (host.texts(), await still_queued(host)) == ([], ["first"])
        await pause(host, conversation.id, paused=False)
        await host.ring("conversations", conversation.id)
        await host.settle()
        assert host.texts() == ["Yes."]


async def pause(host, conversation_id, *, paused: bool) -> None:
    conversation = await host.backend.get_conversation(conversation_id)
    await host.stores.transcripts.update_conversation(replace(conversation, paused=paused))


async def test_a_turn_that_is_open_when_its_conversation_is_paused_goes_on_to_its_end(opened):
    shell = tool_call("sh", "shell", '{"command":"make x"}')
    async with opened(asks(shell), says("Made."), outcomes={"make x": FakeOutcome(output=b"made")}) as host:
        await host.says("do it")
        conversation_id = await host.conversation_id()
        await pause(host, conversation_id, paused=True)
        await host.says("are you there?")
        await host.presses("Approve")
        assert host.texts()[-1] == "Made."
        assert (await host.latest_turn()).state is TurnState.FINISHED
        assert await still_queued(host) == ["are you there?"]
