"""Which messages in a group are meant for the agent, and when another bot has said enough."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from bot.conversations.access import AccessDesk
from bot.conversations.albums import album_of
from core.contracts.addresses import MessageBody
from core.contracts.delivery import DeliveryStore, InboxRow, InboxState

logger = logging.getLogger(__name__)

BOT_TURNS = 5
"""How many turns another bot may start at one address, one within `BOT_REST` of the other."""
BOT_REST = timedelta(minutes=10)
"""How long a bot is not answered after that."""
_LOOKED_BACK = 200
"""How much of a chat's newest past counts; a person who was silent for longer has left its threads."""


class Hearing:
    """Reads the stored past every time, so that a restart changes nothing."""

    def __init__(self, delivery: DeliveryStore, access: AccessDesk) -> None:
        self._delivery = delivery
        self._access = access

    async def is_meant(self, rows: Sequence[InboxRow]) -> bool:
        """Return whether a message in an admitted group is for the agent; `rows` are one message, or one album.

        What mentions it always is. Beyond that `[access] groups` decides: "all" takes every message,
        "participate" every one in a thread that the agent takes part in, "mention" only as long as
        one person alone speaks there. A bot has to mention it everywhere. A late part of an album
        that was for it is for it, too: only one part carries the mention.
        """
        event = rows[0].event
        if any(_is_addressed(row) for row in rows):
            return True
        if event.sender.is_bot:
            return False
        album = album_of(rows[0])
        if album is not None and any(album_of(row) == album and _took_part(row) for row in await self._before(rows[0])):
            return True
        talk = self._access.rules.groups
        if talk == "all" or event.address.thread is None:
            return talk == "all"
        earlier = await self._before(rows[0])
        if not any(_took_part(row) for row in earlier):
            return False
        return talk == "participate" or _speakers(earlier) <= {event.sender.identity}

    async def is_looping(self, row: InboxRow) -> bool:
        """Return whether a bot that may talk has to be left unanswered, so that two bots end some time.

        After 5 messages that were taken, with less than 10 minutes between one and the next, it is
        not answered until 10 minutes after the last of them. Counted at each address, for each bot.
        """
        if not row.event.sender.is_bot:
            return False
        bot = row.event.sender.identity
        said = [r for r in await self._before(row) if r.event.sender.identity == bot and _is_addressed(r)]
        taken = [r for r in said if _took_part(r)]
        chain = 0
        until = row.received_at
        for earlier in reversed(taken):
            if until - earlier.received_at >= BOT_REST:
                break
            chain, until = chain + 1, earlier.received_at
        if chain < BOT_TURNS:
            return False
        if said[-1].id == taken[-1].id:
            logger.warning("bot_loop_stopped", extra={"bot": bot, "address": row.event.address.key, "turns": chain})
        return True

    async def _before(self, row: InboxRow) -> list[InboxRow]:
        """Return the messages among the newest events before this one, however many came behind it."""
        limit = _LOOKED_BACK + 1
        while True:
            newest = await self._delivery.inbox_of(row.event.address.key, limit=limit)
            earlier = [known for known in newest if known.id < row.id]
            if len(earlier) >= _LOOKED_BACK or len(newest) < limit:
                return [known for known in earlier[-_LOOKED_BACK:] if isinstance(known.event.body, MessageBody)]
            limit *= 2


def _is_addressed(row: InboxRow) -> bool:
    return isinstance(row.event.body, MessageBody) and row.event.body.addressed


def _took_part(row: InboxRow) -> bool:
    """Whether the agent answers, or answered, a message."""
    return row.turn_id is not None or row.state is InboxState.QUEUED


def _speakers(rows: Sequence[InboxRow]) -> set[str]:
    return {row.event.sender.identity for row in rows if not row.event.sender.is_bot}
