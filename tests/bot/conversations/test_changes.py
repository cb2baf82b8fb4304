"""What edits, deletions and reactions come to."""

from __future__ import annotations

from bot.conversations.changes import Revision, reactions_in, revisions_in, text_before
from core.contracts.addresses import DeleteBody, EditBody, InboundEvent, MessageBody, Privacy, ReactionBody
from core.contracts.delivery import InboxRow, InboxState
from tests.bot.conversations.hosting import ALICE, HERE, MIKE
from tests.core.stores.samples import START


def row(number: int, body, *, key: str = "", who=ALICE) -> InboxRow:
    event = InboundEvent(
        address=HERE, key=key or f"e{number}", sender=who, body=body, privacy=Privacy.DIRECT, sent_at=START
    )
    return InboxRow(id=number, event=event, state=InboxState.DONE, conversation_id=None, received_at=START)


def test_of_several_edits_the_last_counts_since_the_first():
    rows = [row(n, EditBody(message_key="m", text=f"text {n}")) for n in (3, 5, 7)]
    assert revisions_in(rows) == {"m": Revision(text="text 7", since=3)}


def test_a_deletion_ends_what_edits_began():
    rows = [row(3, EditBody(message_key="m", text="b")), row(5, DeleteBody(message_key="m"))]
    assert revisions_in(rows) == {"m": Revision(text=None, since=3)}


def test_messages_change_each_by_themselves_and_other_events_change_none():
    rows = [
        row(1, MessageBody(text="x"), key="m"),
        row(2, EditBody(message_key="m", text="y")),
        row(3, DeleteBody(message_key="n")),
        row(4, ReactionBody(message="9", emoji=("a",))),
    ]
    assert revisions_in(rows) == {"m": Revision(text="y", since=2), "n": Revision(text=None, since=3)}


def test_what_was_known_before_is_the_message_or_its_last_earlier_edit():
    message = row(1, MessageBody(text="a"), key="m")
    past = [message, *(row(n, EditBody(message_key="m", text=f"text {n}")) for n in (2, 3, 4))]
    assert text_before(message, Revision(text="text 4", since=2), past) == "a"
    assert text_before(message, Revision(text="text 4", since=4), past) == "text 3"


def test_of_each_persons_reactions_to_a_message_the_newest_stand():
    rows = [
        row(1, ReactionBody(message="9", emoji=("a",))),
        row(2, ReactionBody(message="9", emoji=("b",)), who=MIKE),
        row(3, ReactionBody(message="9", emoji=("a", "c"))),
        row(4, ReactionBody(message="8", emoji=())),
    ]
    assert [(found.id, body.emoji) for found, body in reactions_in(rows)] == [(3, ("a", "c")), (2, ("b",)), (4, ())]


def test_reactions_that_came_and_went_are_none():
    rows = [row(n, ReactionBody(message="9", emoji=emoji)) for n, emoji in enumerate([("a",), ("b",), ()], 1)]
    assert reactions_in(rows) == []
