"""Inbox rows that change while they wait, and what was said around the agent."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, bindparam, func, select, update

from core.contracts.addresses import Address, MessageBody
from core.contracts.delivery import InboxRow, InboxState
from core.stores.address_codec import inbound_to_json
from core.stores.records import AnyRow, inbox_from
from core.stores.tables.delivery import INBOX
from core.stores.text import dump

_WAITS = frozenset({InboxState.NEW.value, InboxState.QUEUED.value})

_MESSAGE = select(INBOX).where(
    INBOX.c.channel == bindparam("of_channel"),
    INBOX.c.account == bindparam("of_account"),
    INBOX.c.event_key == bindparam("of_event"),
)
_CHANGE = update(INBOX).where(INBOX.c.id == bindparam("of_row"))
_LAST_TAKEN = select(func.coalesce(func.max(INBOX.c.id), 0)).where(
    INBOX.c.address_key == bindparam("of_address"), INBOX.c.id < bindparam("before"), INBOX.c.turn_id.is_not(None)
)
_BETWEEN = (
    select(INBOX)
    .where(
        INBOX.c.address_key == bindparam("of_address"),
        INBOX.c.id > bindparam("after"),
        INBOX.c.id < bindparam("before"),
        INBOX.c.state == InboxState.DONE.value,
    )
    .order_by(INBOX.c.id.desc())
    .limit(bindparam("most"))
)

_OF_ACCOUNT = (INBOX.c.channel == bindparam("of_channel"), INBOX.c.account == bindparam("of_account"))
_NEWEST = (
    select(INBOX)
    .where(INBOX.c.id.in_(select(func.max(INBOX.c.id)).where(*_OF_ACCOUNT).group_by(INBOX.c.address_key)))
    .order_by(INBOX.c.id)
)


def revise(connection: Connection, address: Address, message_key: str, text: str) -> InboxState | None:
    """See `DeliveryStore.revise`."""
    row = _find(connection, address, message_key)
    if row is None:
        return None
    event = inbox_from(row).event
    if row.state in _WAITS and isinstance(event.body, MessageBody):
        revised = replace(event, body=replace(event.body, text=text))
        connection.execute(_CHANGE, {"of_row": row.id, "event": dump(inbound_to_json(revised))})
    return InboxState(row.state)


def withdraw(connection: Connection, address: Address, message_key: str) -> InboxState | None:
    """See `DeliveryStore.withdraw`."""
    row = _find(connection, address, message_key)
    if row is None:
        return None
    if row.state in _WAITS:
        connection.execute(_CHANGE, {"of_row": row.id, "state": InboxState.WITHDRAWN.value})
    return InboxState(row.state)


def since_last_turn(connection: Connection, address_key: str, *, before: int, limit: int) -> tuple[InboxRow, ...]:
    """See `DeliveryStore.since_last_turn`."""
    place = {"of_address": address_key, "before": before}
    after = connection.execute(_LAST_TAKEN, place).scalar_one()
    newest = connection.execute(_BETWEEN, {**place, "after": after, "most": limit})
    return tuple(inbox_from(row) for row in reversed(newest.all()))


def newest_of(connection: Connection, channel: str, account: str) -> tuple[InboxRow, ...]:
    """See `DeliveryStore.newest_of`."""
    found = connection.execute(_NEWEST, {"of_channel": channel, "of_account": account})
    return tuple(inbox_from(row) for row in found)


def _find(connection: Connection, address: Address, message_key: str) -> AnyRow | None:
    key = {"of_channel": address.channel, "of_account": address.account, "of_event": message_key}
    return connection.execute(_MESSAGE, key).one_or_none()
