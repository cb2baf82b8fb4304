"""Albums: messages that were sent as one arrive one by one, and are put together again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.contracts.addresses import MessageBody
from core.contracts.delivery import InboxRow

ALBUM_PAUSE = timedelta(seconds=1.5)
"""So long after its newest part an album is taken to be whole; a later part is a message of its own."""


def sent_together(rows: Sequence[InboxRow]) -> list[tuple[InboxRow, ...]]:
    """Return events as they were sent: the parts of an album together, at the place of the first."""
    arrivals: dict[object, list[InboxRow]] = {}
    for row in rows:
        arrivals.setdefault(album_of(row) or row.id, []).append(row)
    return [tuple(parts) for parts in arrivals.values()]


def still_open(arrival: Sequence[InboxRow], now: datetime) -> timedelta | None:
    """Return for how long further parts may come; None where none will."""
    if album_of(arrival[0]) is None:
        return None
    left = arrival[-1].received_at + ALBUM_PAUSE - now
    # A clock that was set back must not make an album wait until it has caught up.
    return left if timedelta(0) < left <= ALBUM_PAUSE else None


def album_of(row: InboxRow) -> tuple[str, str] | None:
    """Return whose album a message is part of, and which; None for all other events."""
    match row.event.body:
        case MessageBody(album=str() as album):
            return row.event.sender.identity, album
        case _:
            return None
