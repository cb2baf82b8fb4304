"""How a turn begins: which waiting messages it answers, and its first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from bot.conversations.access import AccessDesk
from core.contracts.addresses import MessageBody, OutboundItem, Privacy, TextContent
from core.contracts.agents import Conversation
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, InboxRow
from core.contracts.ids import TurnId, new_id
from core.contracts.ledger import TurnLedger
from core.contracts.runs import Claim, Turn, TurnState

HEADLESS = "headless"
"""The channel of turns that nobody watches: nobody can be asked there."""
LATE_AFTER = timedelta(minutes=10)
"""A message that was so long on its way waited for a host that was down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunTurn:
    """A turn in a worker's hands, with the messages that opened it."""

    claim: Claim
    turn: Turn
    conversation: Conversation
    rows: tuple[InboxRow, ...]

    @property
    def is_private(self) -> bool:
        """Whether only the person who asked reads along."""
        return bool(self.rows) and all(row.event.privacy is Privacy.DIRECT for row in self.rows)

    @property
    def waited(self) -> bool:
        """Whether what it answers came while the host was down."""
        return any(is_late(row) for row in self.rows)


class TurnOpenings:
    """Begins turns."""

    def __init__(self, *, ledger: TurnLedger, delivery: DeliveryStore, access: AccessDesk, clock: Clock) -> None:
        self._ledger = ledger
        self._delivery = delivery
        self._access = access
        self._clock = clock

    async def begin(self, conversation: Conversation, rows: Sequence[InboxRow]) -> BegunTurn:
        """Begin a turn for waiting messages of one sender.

        Raises:
            InvalidInput: A row does not wait any more.
        """
        event = rows[0].event
        standing = await self._access.standing(event.sender)
        turn_id = TurnId(new_id("turn"))
        live = OutboundItem(
            id=f"{turn_id}/1", address=event.address, content=TextContent(markdown=""), reply_to=event.external_id
        )
        turn = Turn(
            id=turn_id,
            conversation_id=conversation.id,
            agent_id=conversation.agent_id,
            requester=standing.person.id,
            origin=event.address,
            state=TurnState.RUNNING,
            started_at=self._clock.now(),
            outbox_id=live.id,
            interactive=event.address.channel != HEADLESS,
        )
        claim = await self._ledger.begin_turn(turn, inbox_ids=[row.id for row in rows], live=live)
        return BegunTurn(claim=claim, turn=turn, conversation=conversation, rows=await self.opened_by(turn))

    async def opened_by(self, turn: Turn) -> tuple[InboxRow, ...]:
        """Return the messages that a turn opened with, as they stood when it took them."""
        return tuple(row for row in await self._delivery.taken(turn.id) if row.step == 0)


def answered_together(queued: Sequence[InboxRow]) -> tuple[InboxRow, ...]:
    """Return which of the waiting messages the next turn answers: the first one, and what belongs to it.

    That is the rest of its album, and, where it is late, the late messages right behind it. Messages
    of different senders or addresses are never answered together.
    """
    first = queued[0]
    taken = [first]
    if is_late(first):
        taken += takewhile(lambda row: is_late(row) and _is_beside(row, first), queued[1:])
    ids, albums = {row.id for row in taken}, {_album(row) for row in taken} - {None}
    return tuple(row for row in queued if row.id in ids or (_is_beside(row, first) and _album(row) in albums))


def is_late(row: InboxRow) -> bool:
    """Whether a message could not be taken in when it was sent."""
    return row.received_at - row.event.sent_at > LATE_AFTER


def _is_beside(row: InboxRow, first: InboxRow) -> bool:
    return (row.event.sender.identity, row.event.address) == (first.event.sender.identity, first.event.address)


def _album(row: InboxRow) -> str | None:
    return row.event.body.album if isinstance(row.event.body, MessageBody) else None
