"""From a committed event to what follows: the handler of the inbox queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from bot.conversations.access import AccessDesk, Standing
from bot.conversations.albums import sent_together, still_open
from bot.conversations.answers import Answers
from bot.conversations.commands import command_in
from bot.conversations.groups import GroupDesk
from bot.conversations.outbox import ELSEWHERE
from bot.conversations.presses import PressDesk
from bot.conversations.reception import Reception
from bot.conversations.revisions import Revisions
from channels.contract import Channel
from core.contracts.addresses import (
    CommandBody,
    DeleteBody,
    EditBody,
    HomeBody,
    InboundBody,
    InboundEvent,
    MembershipBody,
    MessageBody,
    MigrationBody,
    PressBody,
    Privacy,
    ReactionBody,
)
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, InboxRow
from core.contracts.engine import Again

logger = logging.getLogger(__name__)

ACKNOWLEDGE_AFTER = timedelta(milliseconds=800)
"""A press or command that takes longer is acknowledged without words first: platforms show a failure soon."""
LOOK_FOR_PRESSES = timedelta(milliseconds=300)
"""How often presses are looked for while a message takes long."""
_AT_ONCE = (PressBody, CommandBody)
_DONE = "Done."
"""What a command says that has nothing else to say: its giver sees that it was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterPorts:
    """What the router stands on. `open_home` draws the home screen of whoever opened it; it never raises."""

    delivery: DeliveryStore
    access: AccessDesk
    groups: GroupDesk
    reception: Reception
    revisions: Revisions
    presses: PressDesk
    answers: Answers
    open_home: Callable[[InboundEvent, Standing], Awaitable[None]]
    channels: Mapping[str, Channel]
    clock: Clock


class Router:
    """Routes the events of one address at a time, in order of acceptance.

    Presses and commands of the platform's own come first, as people wait for them.

    A message that cannot be queued yet (an album that may grow, a file that is asked for once more)
    holds back later messages of its sender, and nothing else.
    """

    def __init__(self, ports: RouterPorts) -> None:
        self._ports = ports
        self._routing: dict[str, Sequence[InboxRow]] = {}

    async def route_address(self, key: str) -> Again | None:
        """Route every new event of an address; what has to wait is looked at again in time."""
        if key.partition("/")[0] not in self._ports.channels:
            return ELSEWHERE
        waits: dict[str, timedelta] = {}
        for rows in sorted(sent_together(await self._ports.delivery.new_events(key)), key=_urgency):
            event = rows[0].event
            if event.sender.identity in waits and _is_said(event.body):
                continue
            self._routing[key] = rows
            wait = await self._route(rows)
            if wait is not None:
                waits[event.sender.identity] = wait
            if isinstance(event.body, MigrationBody):
                # What else waits here has moved, and the address it has now is rung.
                break
        self._routing.pop(key, None)
        return Again(wait=min(waits.values())) if waits else None

    async def give_up(self, key: str) -> None:
        """Put aside the event that an address cannot get past, and say so there."""
        stuck = self._routing.pop(key, ()) or (await self._ports.delivery.new_events(key))[:1]
        for row in stuck[:1]:
            await self._ports.answers.answer(row, "I could not handle this message. My operator can see why.")
        await self._ports.delivery.complete([row.id for row in stuck])

    async def _route(self, rows: Sequence[InboxRow]) -> timedelta | None:
        """Route what was sent together; return how long it has to wait, None where it is queued or done."""
        row = rows[0]
        match row.event.body:
            case MessageBody():
                return still_open(rows, self._ports.clock.now()) or await self._receive(rows)
            case EditBody() as body:
                await self._ports.revisions.edit(row, body)
            case DeleteBody() as body:
                await self._ports.revisions.delete(row, body)
            case ReactionBody() as body:
                await self._ports.revisions.react(row, body)
            case PressBody() | CommandBody() as body:
                await self._answer_at_once(row, body)
            case HomeBody():
                await self._ports.open_home(row.event, await self._ports.access.standing_at(row.event))
            case MembershipBody() as body:
                await self._membership(row, body)
            case MigrationBody(chat=chat):
                await self._ports.delivery.migrate_chat(row.event.address, chat)
            case unknown:
                assert_never(unknown)
        await self._ports.delivery.complete([row.id])
        return None

    async def _receive(self, rows: Sequence[InboxRow]) -> timedelta | None:
        """Receive a message; while its files are fetched, presses at its address are answered."""
        between_presses = asyncio.Lock()
        watching = asyncio.create_task(self._answer_presses(rows[0].event.address.key, between_presses), name="presses")
        try:
            return await self._ports.reception.receive(rows)
        finally:
            # A press that was cut off would be answered again, as one that came too late.
            async with between_presses:
                watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _answer_presses(self, key: str, between_presses: asyncio.Lock) -> None:
        while True:
            await self._ports.clock.sleep(LOOK_FOR_PRESSES)
            async with between_presses:
                for row in await self._ports.delivery.new_events(key):
                    if isinstance(row.event.body, _AT_ONCE):
                        await self._route([row])

    async def _membership(self, row: InboxRow, body: MembershipBody) -> None:
        if row.event.privacy is Privacy.DIRECT:
            return
        if body.present:
            await self._ports.groups.came(row)
        else:
            who = await self._ports.access.standing(row.event.sender)
            await self._ports.groups.left(row, who.person.id)

    async def _answer_at_once(self, row: InboxRow, body: PressBody | CommandBody) -> None:
        channel = self._ports.channels[row.event.address.channel]
        early = asyncio.create_task(self._acknowledge_late(channel, body), name="acknowledge")
        try:
            told = await (self._press(row, body) if isinstance(body, PressBody) else self._command(row, body))
        finally:
            early.cancel()
            await asyncio.gather(early, return_exceptions=True)
        await channel.acknowledge(body, told)

    async def _press(self, row: InboxRow, body: PressBody) -> str:
        who = await self._ports.access.standing_at(row.event)
        return await self._ports.presses.press(row.event, body, who, reply_id=f"in/{row.id}/1")

    async def _command(self, row: InboxRow, body: CommandBody) -> str:
        return await self._ports.reception.command(row, body) or _DONE

    async def _acknowledge_late(self, channel: Channel, body: PressBody | CommandBody) -> None:
        await self._ports.clock.sleep(ACKNOWLEDGE_AFTER)
        await channel.acknowledge(body, "")


def _urgency(rows: Sequence[InboxRow]) -> bool:
    """Sorts what somebody waits for before everything else."""
    return not isinstance(rows[0].event.body, _AT_ONCE)


def _is_said(body: InboundBody) -> bool:
    """Whether an event is something to say, which must not overtake what its sender said before."""
    return isinstance(body, MessageBody) and command_in([body]) is None
