"""Outbox rows: how they enter, in which order they leave, and how a turn's answer becomes final."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update
from sqlalchemy.dialects.sqlite import insert

from core.contracts.addresses import OutboundContent, OutboundItem, Removal
from core.contracts.delivery import OutboxRow, OutboxState, chat_key
from core.contracts.errors import NotFound
from core.contracts.ids import TurnId
from core.stores.address_codec import address_to_json, content_to_json
from core.stores.records import AnyRow, outbox_from
from core.stores.tables.delivery import OUTBOX
from core.stores.text import dump

WAITING_STATES = (OutboxState.PENDING.value, OutboxState.ATTEMPTED.value)

_ROW = select(OUTBOX).where(OUTBOX.c.id == bindparam("of_item"))
_CHANGE_ROW = update(OUTBOX).where(OUTBOX.c.id == bindparam("of_item"))
_INSERT_NEW = insert(OUTBOX).on_conflict_do_nothing(index_elements=["id"]).returning(OUTBOX.c.id)
_LAST_POSITION = select(func.max(OUTBOX.c.position)).where(OUTBOX.c.chat_key == bindparam("of_chat"))
_LIVE_ROW = select(OUTBOX).where(OUTBOX.c.turn_id == bindparam("of_turn"), OUTBOX.c.state == OutboxState.LIVE.value)
# Not ordered here: for an order that an index has, SQLite walks the chat's whole history.
_WAITING_ROWS = select(OUTBOX).where(OUTBOX.c.chat_key == bindparam("of_chat"), OUTBOX.c.state.in_(WAITING_STATES))


def insert_items(
    connection: Connection, items: Iterable[OutboundItem], state: OutboxState, *, turn_id: TurnId | None, now: datetime
) -> frozenset[str]:
    """Add items behind all others of their chats; return the chats that got any.

    An id that exists is left alone.
    """
    chats = set()
    for item in items:
        chat = chat_key(item.address)
        row = _values(item, state, turn_id=turn_id, now=now, position=_next_position(connection, chat), part=0)
        if _inserted(connection, row):
            chats.add(chat)
    return frozenset(chats)


def find_row(connection: Connection, item_id: str) -> AnyRow:
    """Return the row of an item, or raise `NotFound`."""
    row = connection.execute(_ROW, {"of_item": item_id}).one_or_none()
    if row is None:
        raise NotFound("outbox row", item_id)
    return row


def set_row(connection: Connection, item_id: str, **values: Any) -> None:
    """Change columns of the row of an item."""
    connection.execute(_CHANGE_ROW, {"of_item": item_id, **values})


def content_text(content: OutboundContent) -> str:
    """Return the stored form of a content; equal contents have equal texts."""
    return dump(content_to_json(content))


def deliverable(connection: Connection, chat: str, now: datetime) -> tuple[OutboxRow, ...]:
    """Return waiting rows of a chat in order, up to the first that must wait longer."""
    rows: list[OutboxRow] = []
    waiting = connection.execute(_WAITING_ROWS, {"of_chat": chat})
    for row in sorted(waiting, key=lambda row: (row.position, row.part)):
        if row.not_before is not None and row.not_before > now:
            break
        rows.append(outbox_from(row))
    return tuple(rows)


def settle_turn(
    connection: Connection, turn_id: TurnId, outgoing: Sequence[OutboundItem], now: datetime
) -> frozenset[str]:
    """Make a turn's answer final and return the chats that have something to deliver.

    The live row takes the first item's content and keeps its id, place and external id; the
    others follow as new rows. Without items a live row that was never visible is dropped, and
    one that is visible stays as it is, to be delivered as it stands.
    """
    live = connection.execute(_LIVE_ROW, {"of_turn": turn_id}).one_or_none()
    if live is None:
        return insert_items(connection, outgoing, OutboxState.PENDING, turn_id=turn_id, now=now)
    if not outgoing and live.external_id is None:
        set_row(connection, live.id, state=OutboxState.DROPPED.value)
        return frozenset()
    final: dict[str, object] = {"state": OutboxState.PENDING.value}
    if outgoing:
        final |= {"content": content_text(outgoing[0].content), "reply_to": outgoing[0].reply_to}
    set_row(connection, live.id, **final)
    others = insert_items(connection, outgoing[1:], OutboxState.PENDING, turn_id=turn_id, now=now)
    return others | {live.chat_key}


def settle_turn_late(
    connection: Connection, turn_id: TurnId, outgoing: Sequence[OutboundItem], now: datetime
) -> frozenset[str]:
    """Post a turn's answer as messages of its own, and behind them remove what the live row showed."""
    chats = insert_items(connection, outgoing, OutboxState.PENDING, turn_id=turn_id, now=now)
    live = connection.execute(_LIVE_ROW, {"of_turn": turn_id}).one_or_none()
    if live is None:
        return chats
    if live.external_id is None:
        set_row(connection, live.id, state=OutboxState.DROPPED.value)
        return chats
    position = _next_position(connection, live.chat_key)
    pending = OutboxState.PENDING.value
    set_row(connection, live.id, state=pending, content=content_text(Removal()), position=position)
    return chats | {live.chat_key}


def split_row(connection: Connection, item_id: str, items: Sequence[OutboundItem], now: datetime) -> str:
    """Replace a row by several in its place; return its chat."""
    row = find_row(connection, item_id)
    first, *rest = items
    set_row(connection, item_id, content=content_text(first.content), state=OutboxState.PENDING.value, not_before=None)
    behind = (OUTBOX.c.chat_key == row.chat_key, OUTBOX.c.position == row.position, OUTBOX.c.part > row.part)
    connection.execute(update(OUTBOX).where(*behind).values(part=OUTBOX.c.part + len(rest)))
    for part, item in enumerate(rest, start=row.part + 1):
        turn_id = None if row.turn_id is None else TurnId(row.turn_id)
        values = _values(item, OutboxState.PENDING, turn_id=turn_id, now=now, position=row.position, part=part)
        _inserted(connection, values)
    chat: str = row.chat_key
    return chat


def _values(
    item: OutboundItem, state: OutboxState, *, turn_id: TurnId | None, now: datetime, position: int, part: int
) -> dict[str, object]:
    return {
        "id": item.id,
        "position": position,
        "part": part,
        "chat_key": chat_key(item.address),
        "address_key": item.address.key,
        "address": dump(address_to_json(item.address)),
        "content": content_text(item.content),
        "external_id": item.external_id,
        "reply_to": item.reply_to,
        "attempts": 0,
        "state": state.value,
        "turn_id": turn_id,
        "created_at": now,
        "not_before": None,
        "sent_at": None,
        "shown_at": None,
        "unknown_sends": 0,
        "error": "",
    }


def _inserted(connection: Connection, row: dict[str, object]) -> bool:
    return connection.execute(_INSERT_NEW, row).one_or_none() is not None


def _next_position(connection: Connection, chat: str) -> int:
    last: int | None = connection.execute(_LAST_POSITION, {"of_chat": chat}).scalar_one()
    return (last or 0) + 1
