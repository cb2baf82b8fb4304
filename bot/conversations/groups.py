"""Groups: an owner lets the agent work in one, once; before that it asks and does nothing else."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from bot.conversations.access import Standing
from bot.conversations.cards import asks_about_group, group_card
from channels.contract import Channel
from core.contracts.addresses import Address, CardContent, InboundEvent, OutboundItem
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, InboxRow, place_key
from core.contracts.errors import ChannelError, NotFound
from core.contracts.ids import PersonId
from core.contracts.people import AuditEntry, PeopleStore, Place, PlaceState
from core.contracts.permissions import PersonRole
from core.contracts.store import TranscriptStore

logger = logging.getLogger(__name__)

NOT_AN_OWNER = "Only an owner of this agent decides that."
_DECIDED = "This was decided already."
_CARDS_LOOKED_AT = 200
_CONVERSATIONS_LOOKED_AT = 1_000


class GroupDesk:
    """Knows in which groups the agent may work, asks in new ones, and takes the owner's answer.

    What is asked and decided holds for a chat with all its threads, and for the whole server or
    workspace it belongs to, where it has one. Every step may be repeated
    after a crash: what was done already is not done again, or does no harm.
    """

    def __init__(
        self,
        *,
        people: PeopleStore,
        delivery: DeliveryStore,
        transcripts: TranscriptStore,
        channels: Mapping[str, Channel],
        clock: Clock,
    ) -> None:
        self._people = people
        self._delivery = delivery
        self._transcripts = transcripts
        self._channels = channels
        self._clock = clock

    async def admits(self, row: InboxRow) -> bool:
        """Return whether the agent may work where a message came from; a new group is asked about there.

        A message that was sent before the agent left a group does not bring the question back.
        """
        place = await self._people.place(place_key(row.event.address))
        if place is not None and place.state is PlaceState.ADMITTED:
            return True
        if self._channels[row.event.address.channel].capabilities.is_installed:
            await self._set(place_key(row.event.address), PlaceState.ADMITTED, by=None, at=self._clock.now())
            return True
        if place is None or (place.state is PlaceState.LEFT and row.event.sent_at > place.at):
            await self._ask(row, place)
        return False

    async def came(self, row: InboxRow) -> None:
        """Ask in a group that the agent was let into, unless it is asked, or decided, there already."""
        if self._channels[row.event.address.channel].capabilities.is_installed:
            return
        place = await self._people.place(place_key(row.event.address))
        if place is None or place.state is PlaceState.LEFT:
            await self._ask(row, place)

    async def left(self, row: InboxRow, by: PersonId) -> None:
        """Note that the agent was removed from a group; what waited there is withdrawn.

        Approvals that were asked for there stay open: they can be decided elsewhere.
        """
        key = place_key(row.event.address)
        place = await self._people.place(key)
        if place is None or place.state is not PlaceState.LEFT:
            await self._set(key, PlaceState.LEFT, by=by, at=row.event.sent_at)
            await self._record(by, "group_lost", key)
        for waiting in await self._waiting_in(row.event.address):
            await self._delivery.withdraw(waiting.event.address, waiting.event.key)

    async def decide(self, event: InboundEvent, who: Standing, *, allow: bool) -> str:
        """Do what an owner pressed, and return a short notice for whoever pressed.

        Raises:
            NotFound: Nobody was asked about this group.
        """
        if who.role is not PersonRole.OWNER:
            return NOT_AN_OWNER
        key = place_key(event.address)
        place = await self._people.place(key)
        if place is None:
            raise NotFound("place", key)
        ends = {PlaceState.ADMITTED} if allow else {PlaceState.LEFT}
        is_repeated = place.state in ends and place.by == who.person.id
        if not is_repeated and place.state not in {PlaceState.ASKED, PlaceState.REFUSED}:
            return _DECIDED
        return await (self._allow(event.address, who) if allow else self._leave(event.address, who))

    async def _allow(self, address: Address, who: Standing) -> str:
        key = place_key(address)
        await self._set(key, PlaceState.ADMITTED, by=who.person.id, at=self._clock.now())
        await self._record(who.person.id, "group_admitted", key)
        await self._redraw(address, CardContent(text=f"{who.person.name} lets me work here. Mention me, and I answer."))
        return "I work here now."

    async def _leave(self, address: Address, who: Standing) -> str:
        key, name = place_key(address), who.person.name
        await self._set(key, PlaceState.REFUSED, by=who.person.id, at=self._clock.now())
        try:
            await self._channels[address.channel].leave(address)
        except ChannelError as error:
            logger.warning("group_not_left", extra={"place": key, "error": error.detail})
            sorry = f"{name} does not want me here, but I could not leave. Please remove me, or try again."
            await self._redraw(address, group_card(sorry))
            return "I could not leave. Please remove me by hand."
        await self._set(key, PlaceState.LEFT, by=who.person.id, at=self._clock.now())
        await self._record(who.person.id, "group_left", key)
        return "I have left."

    async def _ask(self, row: InboxRow, place: Place | None) -> None:
        address = row.event.address
        key = place_key(address)
        item = OutboundItem(id=await self._card_id(row, place), address=address, content=group_card())
        await self._delivery.post([item])
        await self._set(key, PlaceState.ASKED, by=None, at=self._clock.now())

    async def _card_id(self, row: InboxRow, place: Place | None) -> str:
        """Return an id that the question has when it is asked again after a crash, and only then."""
        first = f"group/{place_key(row.event.address)}"
        try:
            known = await self._delivery.outbox_row(first)
        except NotFound:
            return first
        was_just_asked = place is None and asks_about_group(known.item.content)
        return first if was_just_asked else f"{first}/{row.id}"

    async def _redraw(self, address: Address, content: CardContent) -> None:
        for row in await self._delivery.outbox_of(address.key, limit=_CARDS_LOOKED_AT):
            if asks_about_group(row.item.content):
                await self._delivery.amend(row.item.id, content)

    async def _waiting_in(self, address: Address) -> list[InboxRow]:
        """Return what waits for turns in any thread of a chat."""
        key = place_key(address)
        waiting: list[InboxRow] = []
        for agent in await self._transcripts.agents():
            for conversation in await self._transcripts.conversations(agent.id, limit=_CONVERSATIONS_LOOKED_AT):
                queued = await self._delivery.queued(conversation.id)
                waiting += [row for row in queued if place_key(row.event.address) == key]
        return waiting

    async def _set(self, key: str, state: PlaceState, *, by: PersonId | None, at: datetime) -> None:
        await self._people.set_place(Place(key=key, state=state, by=by, at=at))

    async def _record(self, who: PersonId, what: str, key: str) -> None:
        await self._people.record(AuditEntry(at=self._clock.now(), who=who, what=what, detail={"place": key}))
