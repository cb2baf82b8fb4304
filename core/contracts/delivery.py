"""Inbox and outbox: committed before acknowledged, sent once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from core.contracts.addresses import Address, InboundEvent, OutboundContent, OutboundItem
from core.contracts.agents import QueueMode
from core.contracts.ids import AgentId, ConversationId, PersonId, TurnId

INBOX_QUEUE = "inbox"
CONVERSATION_QUEUE = "conversations"
OUTBOX_QUEUE = "outbox"


class InboxState(StrEnum):
    """`NEW` waits for the router, `QUEUED` for its conversation's next turn.

    `WITHDRAWN`: its sender deleted it before it was taken.
    """

    NEW = "new"
    QUEUED = "queued"
    TAKEN = "taken"
    DONE = "done"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """A committed event. `id` grows in the order of acceptance.

    `turn_id` is the turn that took it, `step` the number of the step it entered with: 0 opened it.
    """

    id: int
    event: InboundEvent
    state: InboxState
    conversation_id: ConversationId | None
    received_at: datetime
    turn_id: TurnId | None = None
    step: int = 0


class OutboxState(StrEnum):
    """Where an outgoing message stands.

    `LIVE`: a preview may be or is visible, the final content is still to come. `ATTEMPTED`: a
    send was begun and its outcome is not stored. `UNKNOWN`: looked for and not found, not resent.
    """

    LIVE = "live"
    PENDING = "pending"
    ATTEMPTED = "attempted"
    SENT = "sent"
    UNKNOWN = "unknown"
    FAILED = "failed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """One outgoing message with its state; `item.external_id` is set once it is visible.

    `shown_at` is when a message of it was first visible, a preview too.
    """

    item: OutboundItem
    state: OutboxState
    turn_id: TurnId | None
    created_at: datetime
    not_before: datetime | None = None
    sent_at: datetime | None = None
    shown_at: datetime | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Which conversation an address holds now."""

    address: Address
    agent_id: AgentId
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundConversation:
    """What an address's conversation makes of a message now; `queue_mode` is its own or its agent's."""

    id: ConversationId
    paused: bool
    queue_mode: QueueMode


def chat_key(address: Address) -> str:
    """Return the outbox key of an address: one deliverer and one pace per chat."""
    return f"{address.channel}/{address.account}/{address.chat}"


def place_key(address: Address) -> str:
    """Return the key under which a group is admitted: with its whole server or workspace, where it has one."""
    if address.space is None:
        return chat_key(address)
    return f"{address.channel}/{address.account}/space:{address.space}"


class DeliveryStore(Protocol):
    """Inbox, bindings and outbox. One transaction each; see `core.contracts.store`."""

    async def accept(self, event: InboundEvent, *, conversation_id: ConversationId | None) -> bool:
        """Commit an event; False when its key is known (nothing is stored then).

        With a conversation the row is `QUEUED` for it and its doorbell rung; otherwise it is
        `NEW` and the inbox is rung for the address.
        """
        ...

    async def new_events(self, address_key: str) -> tuple[InboxRow, ...]:
        """Return `NEW` rows of an address in order of acceptance."""
        ...

    async def route(self, inbox_ids: Sequence[int], conversation_id: ConversationId) -> None:
        """Queue `NEW` rows for a conversation, together, and ring it."""
        ...

    async def revise(self, address: Address, message_key: str, text: str) -> InboxState | None:
        """Give a message that no turn has taken yet another text; return the state of its row.

        In any other state than `NEW` and `QUEUED` nothing is changed; None: no such message.
        """
        ...

    async def withdraw(self, address: Address, message_key: str) -> InboxState | None:
        """Withdraw a message that no turn has taken yet; return the state its row had, as in `revise`."""
        ...

    async def since_last_turn(self, address_key: str, *, before: int, limit: int = 200) -> tuple[InboxRow, ...]:
        """Return what was said around the agent and not to it, oldest first.

        That is the newest `limit` `DONE` rows of an address between the last one that a turn took and
        row `before`.
        """
        ...

    async def inbox_of(self, address_key: str, *, limit: int = 100) -> tuple[InboxRow, ...]:
        """Return the newest rows of an address, oldest first."""
        ...

    async def newest_of(self, channel: str, account: str) -> tuple[InboxRow, ...]:
        """Return the newest row of each address of a platform account."""
        ...

    async def bound_addresses(self, channel: str, account: str) -> tuple[Address, ...]:
        """Return the addresses of a platform account that hold a conversation."""
        ...

    async def complete(self, inbox_ids: Sequence[int]) -> None:
        """Mark rows done."""
        ...

    async def queued(self, conversation_id: ConversationId) -> tuple[InboxRow, ...]:
        """Return `QUEUED` rows of a conversation in order of acceptance."""
        ...

    async def taken(self, turn_id: TurnId) -> tuple[InboxRow, ...]:
        """Return the rows that `begin_turn` marked taken for a turn, in order of acceptance."""
        ...

    async def ring(self, conversation_id: ConversationId) -> None:
        """Have a worker look at a conversation: something changed that lets its queue go on."""
        ...

    async def binding(self, address_key: str) -> Binding | None:
        """Return the binding of an address."""
        ...

    async def bound_conversation(self, address_key: str) -> BoundConversation | None:
        """Return the conversation that an address holds."""
        ...

    async def bind(self, binding: Binding) -> None:
        """Bind an address to a conversation, replacing an earlier binding."""
        ...

    async def binding_of(self, conversation_id: ConversationId) -> Binding | None:
        """Return the address that holds a conversation now."""
        ...

    async def direct_addresses(self, person_id: PersonId) -> tuple[Address, ...]:
        """Return the addresses of a person's direct chats, the one bound last first."""
        ...

    async def migrate_chat(self, old: Address, chat: str) -> None:
        """Let a chat go on under the id `chat`: bindings, waiting messages both ways, its place.

        `old` names the chat by any of its addresses. Done twice it changes nothing.
        """
        ...

    async def post(self, items: Sequence[OutboundItem], *, turn_id: TurnId | None = None) -> None:
        """Add items as `PENDING` and ring their chats; an id that exists is left alone."""
        ...

    async def amend(self, item_id: str, content: OutboundContent) -> None:
        """Give an item new content and deliver it again as an edit (after its first delivery)."""
        ...

    async def outgoing(self, key: str) -> tuple[OutboxRow, ...]:
        """Return `PENDING` and `ATTEMPTED` rows of a chat, oldest first."""
        ...

    async def outbox_row(self, item_id: str) -> OutboxRow:
        """Return one row, or raise `NotFound`."""
        ...

    async def outbox_of(self, address_key: str, *, limit: int = 100) -> tuple[OutboxRow, ...]:
        """Return the newest visible or pending rows of an address, oldest first."""
        ...

    async def outbox_of_turn(self, turn_id: TurnId) -> tuple[OutboxRow, ...]:
        """Return every row of a turn, in whatever state, in the order of its chats."""
        ...

    async def shown_message(self, key: str, external_id: str) -> OutboxRow | None:
        """Return the row of a chat (see `chat_key`) that is visible as that message."""
        ...

    async def mark_attempted(self, item_id: str) -> None:
        """Record that a send is about to begin, and count it."""
        ...

    async def mark_visible(self, item_id: str, external_id: str) -> None:
        """Record the external id of a preview of a `LIVE` row."""
        ...

    async def mark_sent(self, item_id: str, external_id: str, *, content: OutboundContent) -> None:
        """Record a delivery of `content`; a row amended meanwhile stays `PENDING`."""
        ...

    async def count_unknown(
        self, item_id: str, *, limit: int = 0, until: datetime | None = None, error: str = ""
    ) -> int:
        """Count one more send whose outcome is unknown and return how many there were, ever.

        Below `limit` the row is put off until `until` in the same transaction, as by `defer`.
        """
        ...

    async def defer(self, item_id: str, until: datetime, error: str) -> None:
        """Set the row `PENDING` again, not before `until`, and ring its chat then."""
        ...

    async def fail(self, item_id: str, state: OutboxState, error: str) -> None:
        """Give up on a row: `FAILED` or `UNKNOWN`."""
        ...

    async def split(self, item_id: str, items: Sequence[OutboundItem]) -> None:
        """Replace a row that is too long by several; the first keeps its id and external id."""
        ...
