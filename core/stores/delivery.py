"""Inbox, bindings and outbox in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, bindparam, select, update
from sqlalchemy.dialects.sqlite import insert

from core.contracts.addresses import Address, InboundEvent, OutboundContent, OutboundItem
from core.contracts.clock import Clock
from core.contracts.delivery import (
    Binding,
    BoundConversation,
    DeliveryStore,
    InboxRow,
    InboxState,
    OutboxRow,
    OutboxState,
)
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId, PersonId, TurnId
from core.stores import chats, inbox, outbox
from core.stores.address_codec import address_to_json, inbound_to_json
from core.stores.connection import Database, SqlTransaction
from core.stores.doorbells import Doorbells
from core.stores.records import binding_from, inbox_from, outbox_from
from core.stores.tables.delivery import BINDINGS, INBOX, OUTBOX
from core.stores.text import dump

_GIVEN_UP = frozenset({OutboxState.FAILED, OutboxState.UNKNOWN})
_GONE = (OutboxState.DROPPED.value, OutboxState.FAILED.value, OutboxState.LIVE.value)

_ANY_NEW_EVENT = (
    select(INBOX.c.id)
    .where(INBOX.c.address_key == bindparam("of_address"), INBOX.c.state == InboxState.NEW.value)
    .limit(1)
)
_INBOX_ROWS = select(INBOX).order_by(INBOX.c.id)
_NEW_EVENTS = _INBOX_ROWS.where(INBOX.c.address_key == bindparam("of_address"), INBOX.c.state == InboxState.NEW.value)
_QUEUED = _INBOX_ROWS.where(
    INBOX.c.conversation_id == bindparam("of_conversation"), INBOX.c.state == InboxState.QUEUED.value
)
_INBOX_ID = select(INBOX.c.id).where(INBOX.c.id == bindparam("of_row"))
_ROUTE = (
    update(INBOX).where(INBOX.c.id == bindparam("of_row"), INBOX.c.state == InboxState.NEW.value).returning(INBOX.c.id)
)
_COMPLETE = update(INBOX).where(INBOX.c.id.in_(bindparam("of_rows", expanding=True)))
_TAKEN = _INBOX_ROWS.where(INBOX.c.turn_id == bindparam("of_turn"))
_NEWEST_BINDING = select(BINDINGS).order_by(BINDINGS.c.bound_at.desc()).limit(1)
_BINDING = _NEWEST_BINDING.where(BINDINGS.c.address_key == bindparam("of_address"))
_BINDING_OF = _NEWEST_BINDING.where(BINDINGS.c.conversation_id == bindparam("of_conversation"))
_BOUND = select(BINDINGS.c.conversation_id).where(BINDINGS.c.address_key == bindparam("of_address"))
_OF_TURN = (
    select(OUTBOX)
    .where(OUTBOX.c.turn_id == bindparam("of_turn"))
    .order_by(OUTBOX.c.chat_key, OUTBOX.c.position, OUTBOX.c.part)
)
_SHOWN = select(OUTBOX).where(
    OUTBOX.c.chat_key == bindparam("of_chat"), OUTBOX.c.external_id == bindparam("of_message")
)
_INSERT_NEW_EVENT = (
    insert(INBOX).on_conflict_do_nothing(index_elements=["channel", "account", "event_key"]).returning(INBOX.c.id)
)


class SqlDelivery:
    """The delivery store; every method is one transaction."""

    def __init__(self, database: Database, doorbells: Doorbells, clock: Clock) -> None:
        self._database = database
        self._doorbells = doorbells
        self._clock = clock

    async def accept(self, event: InboundEvent, *, conversation_id: ConversationId | None) -> bool:
        values = {
            "channel": event.address.channel,
            "account": event.address.account,
            "event_key": event.key,
            "address_key": event.address.key,
            "turn_id": None,
            "step": 0,
            "event": dump(inbound_to_json(event)),
            "received_at": self._clock.now(),
        }

        def operation(tx: SqlTransaction) -> bool:
            target = _direct_target(tx.connection, event.address.key, conversation_id)
            state = InboxState.NEW if target is None else InboxState.QUEUED
            row = {**values, "state": state.value, "conversation_id": target}
            if tx.connection.execute(_INSERT_NEW_EVENT, row).one_or_none() is None:
                return False
            if target is None:
                self._doorbells.ring_address(tx, event.address)
            else:
                self._doorbells.ring_conversation(tx, target)
            return True

        return await self._database.write(operation)

    async def new_events(self, address_key: str) -> tuple[InboxRow, ...]:
        return await self._inbox(_NEW_EVENTS, of_address=address_key)

    async def route(self, inbox_ids: Sequence[int], conversation_id: ConversationId) -> None:
        values = {"state": InboxState.QUEUED.value, "conversation_id": conversation_id}

        def operation(tx: SqlTransaction) -> None:
            routed = [tx.connection.execute(_ROUTE, {"of_row": row, **values}).one_or_none() for row in inbox_ids]
            if any(row is not None for row in routed):
                self._doorbells.ring_conversation(tx, conversation_id)
            for row in inbox_ids:
                if tx.connection.execute(_INBOX_ID, {"of_row": row}).one_or_none() is None:
                    raise NotFound("inbox row", str(row))

        await self._database.write(operation)

    async def revise(self, address: Address, message_key: str, text: str) -> InboxState | None:
        return await self._database.write(lambda tx: inbox.revise(tx.connection, address, message_key, text))

    async def withdraw(self, address: Address, message_key: str) -> InboxState | None:
        return await self._database.write(lambda tx: inbox.withdraw(tx.connection, address, message_key))

    async def since_last_turn(self, address_key: str, *, before: int, limit: int = 200) -> tuple[InboxRow, ...]:
        return await self._database.read(
            lambda connection: inbox.since_last_turn(connection, address_key, before=before, limit=limit)
        )

    async def newest_of(self, channel: str, account: str) -> tuple[InboxRow, ...]:
        return await self._database.read(lambda connection: inbox.newest_of(connection, channel, account))

    async def bound_addresses(self, channel: str, account: str) -> tuple[Address, ...]:
        return await self._database.read(lambda connection: chats.bound_addresses(connection, channel, account))

    async def inbox_of(self, address_key: str, *, limit: int = 100) -> tuple[InboxRow, ...]:
        newest = select(INBOX).where(INBOX.c.address_key == address_key).order_by(INBOX.c.id.desc()).limit(limit)

        def operation(connection: Connection) -> tuple[InboxRow, ...]:
            return tuple(inbox_from(row) for row in reversed(connection.execute(newest).all()))

        return await self._database.read(operation)

    async def complete(self, inbox_ids: Sequence[int]) -> None:
        values = {"of_rows": list(inbox_ids), "state": InboxState.DONE.value}
        if inbox_ids:
            await self._database.write(lambda tx: tx.connection.execute(_COMPLETE, values))

    async def queued(self, conversation_id: ConversationId) -> tuple[InboxRow, ...]:
        return await self._inbox(_QUEUED, of_conversation=conversation_id)

    async def taken(self, turn_id: TurnId) -> tuple[InboxRow, ...]:
        return await self._inbox(_TAKEN, of_turn=turn_id)

    async def ring(self, conversation_id: ConversationId) -> None:
        await self._database.write(lambda tx: self._doorbells.ring_conversation(tx, conversation_id))

    async def binding(self, address_key: str) -> Binding | None:
        return await self._binding(_BINDING, of_address=address_key)

    async def bound_conversation(self, address_key: str) -> BoundConversation | None:
        return await self._database.read(lambda connection: chats.bound_conversation(connection, address_key))

    async def bind(self, binding: Binding) -> None:
        values = {
            "address": dump(address_to_json(binding.address)),
            "agent_id": binding.agent_id,
            "conversation_id": binding.conversation_id,
            "bound_at": self._clock.now(),
        }
        statement = insert(BINDINGS).values(address_key=binding.address.key, **values)
        replacing = statement.on_conflict_do_update(index_elements=["address_key"], set_=values)
        await self._database.write(lambda tx: tx.connection.execute(replacing))

    async def binding_of(self, conversation_id: ConversationId) -> Binding | None:
        return await self._binding(_BINDING_OF, of_conversation=conversation_id)

    async def direct_addresses(self, person_id: PersonId) -> tuple[Address, ...]:
        return await self._database.read(lambda connection: chats.direct_addresses(connection, person_id))

    async def migrate_chat(self, old: Address, chat: str) -> None:
        def operation(tx: SqlTransaction) -> None:
            for key in sorted(chats.migrate(tx.connection, old, chat)):
                self._doorbells.ring_chat(tx, key)
            self._doorbells.ring_address(tx, replace(old, chat=chat))

        await self._database.write(operation)

    async def post(self, items: Sequence[OutboundItem], *, turn_id: TurnId | None = None) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            posted = outbox.insert_items(tx.connection, items, OutboxState.PENDING, turn_id=turn_id, now=now)
            for key in sorted(posted):
                self._doorbells.ring_chat(tx, key)

        await self._database.write(operation)

    async def amend(self, item_id: str, content: OutboundContent) -> None:
        def operation(tx: SqlTransaction) -> None:
            chat = _amend(tx.connection, item_id, outbox.content_text(content))
            if chat is not None:
                self._doorbells.ring_chat(tx, chat)

        await self._database.write(operation)

    async def outgoing(self, key: str) -> tuple[OutboxRow, ...]:
        now = self._clock.now()
        return await self._database.read(lambda connection: outbox.deliverable(connection, key, now))

    async def outbox_row(self, item_id: str) -> OutboxRow:
        return await self._database.read(lambda connection: outbox_from(outbox.find_row(connection, item_id)))

    async def outbox_of(self, address_key: str, *, limit: int = 100) -> tuple[OutboxRow, ...]:
        shown = OUTBOX.c.external_id.is_not(None) | OUTBOX.c.state.not_in(_GONE)
        statement = (
            select(OUTBOX)
            .where(OUTBOX.c.address_key == address_key, shown)
            .order_by(OUTBOX.c.position.desc(), OUTBOX.c.part.desc())
            .limit(limit)
        )

        def operation(connection: Connection) -> tuple[OutboxRow, ...]:
            return tuple(outbox_from(row) for row in reversed(connection.execute(statement).all()))

        return await self._database.read(operation)

    async def outbox_of_turn(self, turn_id: TurnId) -> tuple[OutboxRow, ...]:
        def operation(connection: Connection) -> tuple[OutboxRow, ...]:
            return tuple(outbox_from(row) for row in connection.execute(_OF_TURN, {"of_turn": turn_id}))

        return await self._database.read(operation)

    async def shown_message(self, key: str, external_id: str) -> OutboxRow | None:
        def operation(connection: Connection) -> OutboxRow | None:
            row = connection.execute(_SHOWN, {"of_chat": key, "of_message": external_id}).first()
            return None if row is None else outbox_from(row)

        return await self._database.read(operation)

    async def mark_attempted(self, item_id: str) -> None:
        def operation(tx: SqlTransaction) -> None:
            row = outbox.find_row(tx.connection, item_id)
            if row.state not in outbox.WAITING_STATES:
                raise InvalidInput(f"outbox row {item_id!r} is {row.state!r} and not to be sent")
            attempted = OutboxState.ATTEMPTED.value
            outbox.set_row(tx.connection, item_id, state=attempted, attempts=row.attempts + 1)

        await self._database.write(operation)

    async def mark_visible(self, item_id: str, external_id: str) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            row = outbox.find_row(tx.connection, item_id)
            # A late preview of a row that became final is adopted only where nothing else is visible.
            if row.state == OutboxState.LIVE.value or row.external_id is None:
                shown_at = now if row.shown_at is None else row.shown_at
                outbox.set_row(tx.connection, item_id, external_id=external_id, shown_at=shown_at)

        await self._database.write(operation)

    async def mark_sent(self, item_id: str, external_id: str, *, content: OutboundContent) -> None:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            row = outbox.find_row(tx.connection, item_id)
            values: dict[str, object] = {"external_id": external_id, "not_before": None, "error": ""}
            # An edit does not move a message: it keeps the place where it was first seen.
            values["sent_at"] = now if row.sent_at is None else row.sent_at
            values["shown_at"] = now if row.shown_at is None else row.shown_at
            if row.content == outbox.content_text(content):
                values["state"] = OutboxState.SENT.value
            else:
                values |= {"state": OutboxState.PENDING.value, "attempts": 0}
                self._doorbells.ring_chat(tx, row.chat_key)
            outbox.set_row(tx.connection, item_id, **values)

        await self._database.write(operation)

    async def count_unknown(
        self, item_id: str, *, limit: int = 0, until: datetime | None = None, error: str = ""
    ) -> int:
        def operation(tx: SqlTransaction) -> int:
            unknown_sends: int = outbox.find_row(tx.connection, item_id).unknown_sends + 1
            outbox.set_row(tx.connection, item_id, unknown_sends=unknown_sends)
            if until is not None and unknown_sends < limit:
                self._put_off(tx, item_id, until, error)
            return unknown_sends

        return await self._database.write(operation)

    async def defer(self, item_id: str, until: datetime, error: str) -> None:
        await self._database.write(lambda tx: self._put_off(tx, item_id, until, error))

    def _put_off(self, tx: SqlTransaction, item_id: str, until: datetime, error: str) -> None:
        row = outbox.find_row(tx.connection, item_id)
        outbox.set_row(tx.connection, item_id, state=OutboxState.PENDING.value, not_before=until, error=error)
        self._doorbells.ring_chat(tx, row.chat_key, until)

    async def fail(self, item_id: str, state: OutboxState, error: str) -> None:
        if state not in _GIVEN_UP:
            raise InvalidInput(f"giving up leaves a row failed or unknown, not {state.value!r}")

        def operation(tx: SqlTransaction) -> None:
            outbox.find_row(tx.connection, item_id)
            outbox.set_row(tx.connection, item_id, state=state.value, error=error)

        await self._database.write(operation)

    async def split(self, item_id: str, items: Sequence[OutboundItem]) -> None:
        if not items:
            raise InvalidInput("a row is split into at least one")
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> None:
            self._doorbells.ring_chat(tx, outbox.split_row(tx.connection, item_id, items, now))

        await self._database.write(operation)

    async def _inbox(self, statement: Select[Any], **key: str) -> tuple[InboxRow, ...]:
        def operation(connection: Connection) -> tuple[InboxRow, ...]:
            return tuple(inbox_from(row) for row in connection.execute(statement, key))

        return await self._database.read(operation)

    async def _binding(self, statement: Select[Any], **key: str) -> Binding | None:
        def operation(connection: Connection) -> Binding | None:
            row = connection.execute(statement, key).one_or_none()
            return None if row is None else binding_from(row)

        return await self._database.read(operation)


def _direct_target(connection: Connection, address_key: str, wanted: ConversationId | None) -> ConversationId | None:
    """Return the conversation an event is queued for at once, or None where the router has to look.

    An event never overtakes an earlier one of its address that still waits for the router, such
    as the command that begins a new conversation; nor does it follow a binding of old.
    """
    if wanted is None or connection.execute(_ANY_NEW_EVENT, {"of_address": address_key}).first() is not None:
        return None
    bound = connection.execute(_BOUND, {"of_address": address_key}).scalar_one_or_none()
    return wanted if bound in {None, wanted} else None


def _amend(connection: Connection, item_id: str, content: str) -> str | None:
    """Replace a row's content; return its chat when the row has to be delivered again."""
    row = outbox.find_row(connection, item_id)
    if row.content == content:
        return None
    outbox.set_row(connection, item_id, content=content)
    waits = row.state in {OutboxState.LIVE.value, *outbox.WAITING_STATES}
    if waits or row.external_id is None:
        return None
    outbox.set_row(connection, item_id, state=OutboxState.PENDING.value, attempts=0, not_before=None, error="")
    chat: str = row.chat_key
    return chat


if TYPE_CHECKING:
    _conforms: type[DeliveryStore] = SqlDelivery
