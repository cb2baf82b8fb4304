"""From what Discord tells to events that are committed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Self, TypeVar

from channels.contract import Mark, Sink
from channels.discord.asking import asked
from channels.discord.backfill import Backfill
from channels.discord.directory import Directory
from channels.discord.inbound import (
    deletion_events,
    edit_event,
    interaction_event,
    membership_event,
    message_event,
    place_named_by,
    question_event,
    reaction_event,
)
from channels.discord.inbound_interactions import Kind, Question, Ticket, asked_message, body_of, ticket_of
from channels.discord.inbound_json import Json, MalformedEvent, id_if_any, id_of
from channels.discord.inbound_message import quote_of
from channels.discord.interactions import Interactions
from channels.discord.limits import Timing
from channels.discord.places import BotAccount, Place
from channels.discord.reactions import ReactionBook
from channels.discord.transport import DiscordApi
from channels.health import Health
from channels.supervision import Backoff, guarded, until_stored
from channels.workers import Beside
from core.contracts.addresses import InboundEvent, Quote
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, StoreError

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

INTERACTION = "INTERACTION_CREATE"
"""What cannot wait behind other events."""

_DIRECT_TYPE = 1
_QUESTION_TAKEN = "I answer in the thread of that message."
_NOT_STORED = "I could not store this just now, so nothing came of it. Please try again in a moment."


class Intake:
    """Hands events over in the order in which they came; enter it to use it.

    What cannot be stored is tried again and again, and what follows waits: Discord tells nothing twice.
    """

    def __init__(
        self,
        api: DiscordApi,
        account: BotAccount,
        *,
        interactions: Interactions,
        health: Health,
        clock: Clock,
        timing: Timing,
        sink: Sink,
    ) -> None:
        self._api = api
        self._account = account
        self._interactions = interactions
        self._health = health
        self._clock = clock
        self._timing = timing
        self._sink = sink
        self._directory = Directory()
        self._reactions = ReactionBook()
        self._backfill = Backfill(api, self._directory, clock=clock, timing=timing)
        self._marks: tuple[Mark, ...] = ()
        self._away: set[str] = set()
        self._numbers = count()
        self._beside = Beside()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._beside.aclose()

    async def take(self, name: str, event: dict[str, Any]) -> None:
        """Take one event of the gateway; when this returns, what it means is committed.

        Raises:
            ChannelDown: Discord does not let the bot in any more.
        """
        await guarded(self._take(name, event), unless=ChannelDown, told="discord_event_crashed", event_name=name)

    def take_interaction(self, interaction: dict[str, Any]) -> None:
        """Take what somebody waits for, beside everything else."""
        work = guarded(self._interaction(interaction), unless=ChannelDown, told="discord_event_crashed")
        self._beside.begin(_ended(work))

    async def _take(self, name: str, event: dict[str, Any]) -> None:
        try:
            if name == "GUILD_DELETE":
                await self._guild_gone(event)
                return
            self._directory.take(name, event)
            await self._told(name, event)
        except MalformedEvent as error:
            logger.warning("discord_event_malformed", extra={"event_name": name, "detail": str(error)})

    async def _told(self, name: str, event: dict[str, Any]) -> None:
        match name:
            case "READY":
                await self._ready()
            case "GUILD_CREATE":
                await self._guild_came(event)
            case "MESSAGE_CREATE":
                place = await self._place(event)
                await self._accept(message_event(event, place, self._account, self._directory))
            case "MESSAGE_UPDATE":
                place = await self._place(event)
                now = self._clock.now()
                await self._accept(edit_event(event, place, self._account, self._directory, now))
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                place = await self._place(event)
                for deletion in deletion_events(event, place, self._account, self._clock.now()):
                    await self._accept(deletion)
            case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
                await self._reaction(name, event)
            case _:
                pass

    # Beginnings and ends

    async def _ready(self) -> None:
        """Look where each place stands, before an event of this session can stand for what came before it."""
        self._marks = await self._stored(self._read_marks)
        await self._backfill.direct(self._marks, self._missed)

    async def _read_marks(self) -> tuple[Mark, ...]:
        return await self._sink.marks(self._account.channel, self._account.id)

    async def _guild_came(self, guild: dict[str, Any]) -> None:
        guild_id = id_of(guild)
        if guild.get("unavailable") is True:
            return
        joined_at = self._directory.joined_at(guild_id) or self._clock.now()
        key = f"j/{guild_id}/{int(joined_at.timestamp())}"
        chat = self._directory.welcome(guild_id)
        if guild_id in self._away:
            self._away.discard(guild_id)
            self._marks = await self._stored(self._read_marks)
        await self._accept(membership_event(guild, chat, self._account, present=True, key=key, at=joined_at))
        await self._backfill.guild(guild_id, self._marks, self._missed)

    async def _guild_gone(self, guild: dict[str, Any]) -> None:
        guild_id = id_of(guild)
        if guild.get("unavailable") is True:
            self._away.add(guild_id)
            return
        chat = self._directory.welcome(guild_id) if self._directory.is_known(guild_id) else guild_id
        now = self._clock.now()
        key = f"l/{guild_id}/{int(now.timestamp() * 1000)}"
        about = self._directory.lose(guild_id)
        await self._accept(membership_event(about, chat, self._account, present=False, key=key, at=now))

    async def _missed(self, message: dict[str, Any], place: Place) -> None:
        work = self._take_missed(message, place)
        await guarded(work, unless=ChannelDown, told="discord_event_crashed", event_name="history")

    async def _take_missed(self, message: dict[str, Any], place: Place) -> None:
        try:
            await self._accept(message_event(message, place, self._account, self._directory))
        except MalformedEvent as error:
            logger.warning("discord_event_malformed", extra={"event_name": "history", "detail": str(error)})

    # Places

    async def _place(self, event: Json) -> Place:
        """Return where something happened; asks Discord for what it never told of, such as an archived thread."""
        channel_id, guild_id = place_named_by(event)
        if guild_id is None:
            return self._directory.described({"id": channel_id, "type": _DIRECT_TYPE}, None)
        if (known := self._directory.place(channel_id)) is not None:
            return known
        channel = await asked(partial(self._api.channel, channel_id), clock=self._clock, timing=self._timing)
        if channel is None:
            return Place(id=channel_id, guild=guild_id)
        self._directory.learn({**channel, "guild_id": guild_id})
        return self._directory.described(channel, guild_id)

    async def _reaction(self, name: str, change: dict[str, Any]) -> None:
        """Take a change of reactions to the bot's own messages; of the others, nobody needs to know."""
        author = id_if_any(change, "message_author_id")
        if author is not None and author != self._account.id:
            return
        known_as = self._directory.person(id_if_any(change, "user_id") or "")
        noted = self._reactions.note(name, change, self._account, known_as)
        if noted is None:
            return
        body, sender = noted
        now = self._clock.now()
        key = f"r/{body.message}/{sender.identity}/{int(now.timestamp() * 1000)}-{next(self._numbers)}"
        await self._accept(reaction_event(key, body, sender, await self._place(change), self._account, now))

    # Interactions

    async def _interaction(self, interaction: dict[str, Any]) -> None:
        try:
            ticket = ticket_of(interaction)
            if ticket is None:
                return
            if (message := asked_message(interaction)) is not None:
                await self._interactions.ask_about(ticket, message)
                return
            self._interactions.expect(ticket)
            event = await self._acted(interaction, ticket)
        except MalformedEvent as error:
            logger.warning("discord_event_malformed", extra={"event_name": INTERACTION, "detail": str(error)})
            return
        if event is not None:
            await self._accept_act(event, ticket)

    async def _acted(self, interaction: dict[str, Any], ticket: Ticket) -> InboundEvent | None:
        body = body_of(interaction, ticket, self._account)
        if body is None:
            return None
        # Not what the interaction tells of its channel: that does not say who sees it.
        place = await self._place(interaction)
        if not isinstance(body, Question):
            return interaction_event(interaction, body, place, self._account)
        quote = await self._quote(body.message, place)
        return question_event(interaction, body, quote, place, self._account)

    async def _quote(self, message_id: str, place: Place) -> Quote:
        try:
            message = await self._api.message(place.id, message_id)
        except ChannelError as error:
            logger.info("discord_message_not_told", extra={"detail": error.detail})
            return Quote(text="(a message that cannot be read any more)", author="somebody", external_id=message_id)
        return quote_of(message, place, self._account, self._directory)

    async def _accept_act(self, event: InboundEvent, ticket: Ticket) -> None:
        """Commit what somebody did, or tell them that it has to be done again."""
        try:
            await self._sink.accept(event)
        except StoreError as error:
            self._not_stored(error)
            await self._interactions.tell(ticket, _NOT_STORED)
            return
        self._health.stored(succeeded=True)
        if ticket.kind is Kind.QUESTION:
            await self._interactions.tell(ticket, _QUESTION_TAKEN)

    # The store

    async def _accept(self, event: InboundEvent | None) -> None:
        if event is not None:
            await self._stored(partial(self._sink.accept, event))

    async def _stored(self, operation: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat what the store fails at until it does not."""
        backoff = Backoff(self._timing.reconnect_first, self._timing.reconnect_longest)
        result = await until_stored(operation, clock=self._clock, backoff=backoff, failed=self._not_stored)
        self._health.stored(succeeded=True)
        return result

    def _not_stored(self, error: StoreError) -> None:
        if self._health.stored(succeeded=False):
            logger.warning("discord_event_not_stored", extra={"detail": str(error)})


async def _ended(work: Awaitable[None]) -> None:
    """Await what whoever receives says the failure of."""
    with suppress(ChannelDown):
        await work
