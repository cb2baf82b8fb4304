"""Chats across tables: where a person can be reached, and what follows a chat to its new id."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from core.contracts.addresses import Address, MigrationBody
from core.contracts.agents import QueueMode
from core.contracts.delivery import BoundConversation, InboxState, OutboxState, chat_key
from core.contracts.ids import ConversationId, PersonId
from core.stores.address_codec import address_from_json, address_to_json, inbound_from_json, inbound_to_json
from core.stores.codec import read_json
from core.stores.tables.agents import AGENTS, CONVERSATIONS
from core.stores.tables.delivery import BINDINGS, INBOX, OUTBOX
from core.stores.tables.people import PLACES
from core.stores.text import dump

_WAITING_IN = (InboxState.NEW.value, InboxState.QUEUED.value, InboxState.TAKEN.value)
_WAITING_OUT = (OutboxState.LIVE.value, OutboxState.PENDING.value)
"""Not `ATTEMPTED`: that send is under way, learns that the chat moved, and moves its own row."""

_DIRECT_BINDINGS = (
    select(BINDINGS.c.address)
    .join(CONVERSATIONS, CONVERSATIONS.c.id == BINDINGS.c.conversation_id)
    .where(CONVERSATIONS.c.audience.contains(bindparam("word")))
    .order_by(BINDINGS.c.bound_at.desc())
)
_BOUND_CONVERSATION = (
    select(
        CONVERSATIONS.c.id,
        CONVERSATIONS.c.paused,
        func.coalesce(CONVERSATIONS.c.queue_mode, AGENTS.c.queue_mode).label("queue_mode"),
    )
    .join(BINDINGS, BINDINGS.c.conversation_id == CONVERSATIONS.c.id)
    .join(AGENTS, AGENTS.c.id == CONVERSATIONS.c.agent_id)
    .where(BINDINGS.c.address_key == bindparam("of_address"))
)


def direct_addresses(connection: Connection, person_id: PersonId) -> tuple[Address, ...]:
    """See `DeliveryStore.direct_addresses`. A conversation of one person has that person's audience."""
    found = connection.execute(_DIRECT_BINDINGS, {"word": dump(f"person:{person_id}")})
    return tuple(read_json(row.address, address_from_json) for row in found)


def migrate(connection: Connection, old: Address, chat: str) -> frozenset[str]:
    """See `DeliveryStore.migrate_chat`; return the chats that have something to deliver now."""
    new_key = chat_key(replace(old, chat=chat))
    if new_key == chat_key(old):
        return frozenset()
    _migrate_bindings(connection, old, chat)
    _migrate_inbox(connection, old, chat)
    _migrate_place(connection, chat_key(old), new_key)
    return frozenset({new_key}) if _migrate_outbox(connection, old, chat) else frozenset()


def _migrate_bindings(connection: Connection, old: Address, chat: str) -> None:
    for row in connection.execute(select(BINDINGS).where(_of_chat(BINDINGS, old))).all():
        moved = replace(read_json(row.address, address_from_json), chat=chat)
        connection.execute(delete(BINDINGS).where(BINDINGS.c.address_key == row.address_key))
        values = {"address": dump(address_to_json(moved)), "agent_id": row.agent_id, "bound_at": row.bound_at}
        values["conversation_id"] = row.conversation_id
        statement = insert(BINDINGS).values(address_key=moved.key, **values)
        # What the new id was bound to meanwhile is younger than the chat's own history.
        connection.execute(statement.on_conflict_do_update(index_elements=["address_key"], set_=values))


def _migrate_inbox(connection: Connection, old: Address, chat: str) -> None:
    waiting = select(INBOX).where(_of_chat(INBOX, old), INBOX.c.state.in_(_WAITING_IN))
    for row in connection.execute(waiting).all():
        event = read_json(row.event, inbound_from_json)
        if isinstance(event.body, MigrationBody):
            continue  # It stays, and takes along what arrives under the old id until it is routed.
        moved = replace(event, address=replace(event.address, chat=chat))
        values = {"address_key": moved.address.key, "event": dump(inbound_to_json(moved))}
        connection.execute(update(INBOX).where(INBOX.c.id == row.id).values(values))


def _migrate_outbox(connection: Connection, old: Address, chat: str) -> bool:
    waiting = select(OUTBOX).where(OUTBOX.c.chat_key == chat_key(old), OUTBOX.c.state.in_(_WAITING_OUT))
    rows = connection.execute(waiting).all()
    for row in rows:
        moved = replace(read_json(row.address, address_from_json), chat=chat)
        values = {"chat_key": chat_key(moved), "address_key": moved.key, "address": dump(address_to_json(moved))}
        # Ids of messages do not move with the chat: what was visible there is sent anew.
        connection.execute(
            update(OUTBOX).where(OUTBOX.c.id == row.id).values(values | {"external_id": None, "reply_to": None})
        )
    return bool(rows)


def _migrate_place(connection: Connection, old_key: str, new_key: str) -> None:
    place = connection.execute(select(PLACES).where(PLACES.c.key == old_key)).one_or_none()
    if place is None:
        return
    connection.execute(delete(PLACES).where(PLACES.c.key == old_key))
    values = {"state": place.state, "by": place.by, "at": place.at}
    statement = insert(PLACES).values(key=new_key, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_=values))


def bound_conversation(connection: Connection, address_key: str) -> BoundConversation | None:
    """See `DeliveryStore.bound_conversation`."""
    row = connection.execute(_BOUND_CONVERSATION, {"of_address": address_key}).one_or_none()
    if row is None:
        return None
    return BoundConversation(id=ConversationId(row.id), paused=row.paused, queue_mode=QueueMode(row.queue_mode))


def bound_addresses(connection: Connection, channel: str, account: str) -> tuple[Address, ...]:
    """See `DeliveryStore.bound_addresses`."""
    found = connection.execute(select(BINDINGS.c.address).where(_below(BINDINGS, f"{channel}/{account}")))
    return tuple(read_json(row.address, address_from_json) for row in found)


def _of_chat(table: Table, address: Address) -> ColumnElement[bool]:
    """Whether a row is of the chat itself or of a thread in it, as a range that an index answers."""
    key = chat_key(address)
    return (table.c.address_key == key) | _below(table, key)


def _below(table: Table, key: str) -> ColumnElement[bool]:
    after_slash = chr(ord("/") + 1)
    return (table.c.address_key > f"{key}/") & (table.c.address_key < f"{key}{after_slash}")
