"""What edits, deletions and reactions among an address's events come to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.contracts.addresses import DeleteBody, EditBody, MessageBody, ReactionBody
from core.contracts.delivery import InboxRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What became of a message: its newest text, or None where it is gone. `since` is the first event of it."""

    text: str | None
    since: int


def revisions_in(rows: Iterable[InboxRow]) -> Mapping[str, Revision]:
    """Return what became of messages, by their keys; a deletion is the end of it."""
    found: dict[str, Revision] = {}
    for row in rows:
        match row.event.body:
            case EditBody(message_key=key, text=text):
                found[key] = Revision(text=text, since=found[key].since if key in found else row.id)
            case DeleteBody(message_key=key):
                found[key] = Revision(text=None, since=found[key].since if key in found else row.id)
            case _:
                pass
    return found


def text_before(message: InboxRow, revision: Revision, past: Iterable[InboxRow]) -> str:
    """Return how a message read before it became what it is now; `past` are events of its address, oldest first."""
    text = message.event.body.text if isinstance(message.event.body, MessageBody) else ""
    for row in past:
        match row.event.body:
            case EditBody(message_key=key, text=edited) if key == message.event.key and row.id < revision.since:
                text = edited
            case _:
                pass
    return text


def reactions_in(rows: Iterable[InboxRow]) -> list[tuple[InboxRow, ReactionBody]]:
    """Return the newest reactions of each person to each message; those that came and went are none."""
    found: dict[tuple[str, str], list[tuple[InboxRow, ReactionBody]]] = {}
    for row in rows:
        if isinstance(row.event.body, ReactionBody):
            mine = (row.event.sender.identity, row.event.body.message)
            found.setdefault(mine, []).append((row, row.event.body))
    return [states[-1] for states in found.values() if states[-1][1].emoji or len(states) == 1]
