"""What was said while the host was away: read from the histories, and handed over like what comes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from channels.contract import Mark
from channels.discord.asking import asked
from channels.discord.directory import Directory
from channels.discord.inbound_json import first_id, id_if_any, part, time_of
from channels.discord.limits import BACKFILL_AGE, PAGE_LIMIT, Timing
from channels.discord.places import Place
from channels.discord.transport import DiscordApi
from core.contracts.clock import Clock

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

Take = Callable[[dict[str, Any], Place], Awaitable[None]]
"""Takes a message as a history holds it, with what its author is in the guild, and where it stands."""

_OVERLAP = timedelta(minutes=1)
"""Asked again, what is known already is recognised; left out, it is lost.

Reactions and deletions have this host's time, which may be ahead of Discord's.
"""
_DIRECT_TYPE = 1
_PERSON_TYPES = frozenset({0, 19})


class Backfill:
    """Reads what followed the newest event that was accepted, place by place, oldest first."""

    def __init__(self, api: DiscordApi, directory: Directory, *, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._directory = directory
        self._clock = clock
        self._timing = timing

    async def direct(self, marks: Iterable[Mark], take: Take) -> None:
        """Hand over what was missed in direct conversations.

        Raises:
            ChannelDown: Discord does not let the bot in.
        """
        for chat, mark in _newest_by_place(mark for mark in marks if mark.address.space is None).items():
            if mark > self._oldest():
                place = self._directory.described({"id": chat, "type": _DIRECT_TYPE}, None)
                await self._read(place, mark, take)

    async def guild(self, guild_id: str, marks: Iterable[Mark], take: Take) -> None:
        """Hand over what was missed in a guild that is known; in places that are new, too.

        Raises:
            ChannelDown: Discord does not let the bot in.
        """
        of_guild = [mark for mark in marks if mark.address.space == guild_id]
        if not of_guild:
            return
        newest = _newest_by_place(of_guild)
        # In a place where nothing was ever heard, what is new is what came after all that was heard elsewhere.
        otherwise = max(mark.sent_at for mark in of_guild)
        places: dict[str, Place] = {}
        for room in self._directory.rooms(guild_id):
            after = newest.pop(room.place.id, otherwise)
            if room.last_message is not None and time_of(room.last_message) > after - _OVERLAP:
                places[room.place.id] = room.place
                newest[room.place.id] = after
        for place_id, after in sorted(newest.items()):
            place = places.get(place_id)
            if place is None and after > self._oldest():
                place = await self._place(place_id, guild_id)
            if place is not None:
                await self._read(place, after, take)

    async def _place(self, place_id: str, guild_id: str) -> Place | None:
        """Return a thread that was archived; None for what is no thread, or not there any more."""
        if (known := self._directory.place(place_id)) is not None:
            return known if known.parent else None
        channel = await self._asked(partial(self._api.channel, place_id))
        if channel is None:
            return None
        place = self._directory.described(channel, guild_id)
        return place if place.parent else None

    async def _read(self, place: Place, newest: datetime, take: Take) -> None:
        after = first_id(max(newest - _OVERLAP, self._oldest()))
        members: dict[str, dict[str, Any]] = {}
        count = 0
        while page := await self._asked(partial(self._api.messages, place.id, after=after)):
            for message in page:
                await take(await self._with_member(message, place, members), place)
            count += len(page)
            after = str(page[-1].get("id"))
            if len(page) < PAGE_LIMIT:
                break
        if count:
            logger.info("discord_caught_up", extra={"place": place.id, "messages": count})

    def _oldest(self) -> datetime:
        return self._clock.now() - BACKFILL_AGE

    async def _with_member(
        self, message: dict[str, Any], place: Place, members: dict[str, dict[str, Any]]
    ) -> dict[str, Any]:
        """Add what the author is in the guild, which decides what they may."""
        author = part(message, "author")
        user_id = id_if_any(author, "id")
        is_person = author.get("bot") is not True and "webhook_id" not in message
        if place.guild is None or user_id is None or not is_person or message.get("type") not in _PERSON_TYPES:
            return message
        if user_id not in members:
            members[user_id] = await self._asked(partial(self._api.member, place.guild, user_id)) or {}
        return {**message, "member": members[user_id]}

    async def _asked(self, call: Callable[[], Awaitable[_T]]) -> _T | None:
        return await asked(call, clock=self._clock, timing=self._timing)


def _newest_by_place(marks: Iterable[Mark]) -> dict[str, datetime]:
    """Return when the newest event of each place was sent; a thread's first message stands in its parent, too."""
    newest: dict[str, datetime] = {}

    def note(place: str, at: datetime) -> None:
        newest[place] = max(newest.get(place, at), at)

    for mark in marks:
        address = mark.address
        if address.thread is None:
            note(address.chat, mark.sent_at)
        else:
            note(address.thread, mark.sent_at)
            if address.thread.isdecimal():
                note(address.chat, time_of(address.thread))
    return newest
