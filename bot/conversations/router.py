"""From a committed event to what follows: a turn, a command, a press, a pairing, or a refusal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.conversations.access import AccessDesk, Standing
from bot.conversations.commands import CommandCall, CommandDesk, parse_command
from bot.conversations.outbox import ELSEWHERE, notice, text_items
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import PressDesk
from channels.contract import Channel
from core.contracts.addresses import Address, EditBody, InboundEvent, MessageBody, PressBody, Privacy
from core.contracts.agents import EVERYONE, Audience
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import Binding, DeliveryStore, InboxRow
from core.contracts.engine import Again
from core.contracts.errors import ChannelError, StoreError
from core.contracts.ids import ConversationId
from core.contracts.people import Person

logger = logging.getLogger(__name__)

ACKNOWLEDGE_AFTER = timedelta(milliseconds=800)
"""A press that takes longer is acknowledged without words first: platforms show a failure soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterPorts:
    """What the router stands on. `agents` maps a channel's name to the name of its agent."""

    backend: Backend
    delivery: DeliveryStore
    access: AccessDesk
    commands: CommandDesk
    presses: PressDesk
    pairings: PairingDesk
    channels: Mapping[str, Channel]
    agents: Mapping[str, str]
    clock: Clock


class Router:
    """The handler of the inbox queue: one address at a time, in order of acceptance."""

    def __init__(self, ports: RouterPorts) -> None:
        self._ports = ports

    async def route_address(self, key: str) -> Again | None:
        """Route every new event of an address."""
        if key.partition("/")[0] not in self._ports.channels:
            return ELSEWHERE
        for row in await self._ports.delivery.new_events(key):
            await self._route(row)
        return None

    async def give_up(self, key: str) -> None:
        """Put aside the event that an address cannot get past, and say so there."""
        for row in (await self._ports.delivery.new_events(key))[:1]:
            await self._answer(row, "I could not handle this message. My operator can see why.")
            await self._ports.delivery.complete([row.id])

    async def direct_target(self, event: InboundEvent) -> ConversationId | None:
        """Return the conversation a plain message may be queued for at once, or None for the long way."""
        match event.body:
            case MessageBody(text=text, attachments=(), addressed=True) if (
                event.privacy is Privacy.DIRECT and text.strip() and parse_command(text) is None
            ):
                binding = await self._ports.delivery.binding(event.address.key)
                standing = await self._ports.access.standing(event.sender) if binding is not None else None
                return binding.conversation_id if binding is not None and standing and standing.may_talk else None
            case _:
                return None

    async def _route(self, row: InboxRow) -> None:
        event = row.event
        who = await self._ports.access.standing(event.sender)
        match event.body:
            case PressBody() as body:
                await self._press(row, body, who)
            case EditBody():
                # What was said stays said: an edit of an answered message starts nothing.
                logger.info("edit_ignored", extra={"inbox_id": row.id})
            case MessageBody(addressed=False):
                pass
            case MessageBody() as body if not await self._message(row, body, who):
                return
            case MessageBody():
                pass
        await self._ports.delivery.complete([row.id])

    async def _message(self, row: InboxRow, body: MessageBody, who: Standing) -> bool:
        """Handle a message; False when it was queued for a turn and is not done yet."""
        command = parse_command(body.text)
        if row.event.privacy is not Privacy.DIRECT:
            await self._decline_group(row.event.address)
            return True
        if not who.may_talk:
            await self._answer(row, await self._ports.pairings.greet(row.event))
            return True
        if command is not None:
            name, rest = command
            call = await self._call(row, who, rest)
            await self._answer(row, await self._ports.commands.run(call, name))
            return True
        if not body.text.strip():
            await self._answer(row, "I can only read text for now.")
            return True
        if body.attachments:
            names = ", ".join(file.name for file in body.attachments)
            await self._answer(row, f"I cannot read files yet and go by your text alone: {names}")
        binding = await self._binding(row.event, who)
        await self._ports.delivery.route(row.id, binding.conversation_id)
        return False

    async def _decline_group(self, address: Address) -> None:
        """Say once in a group that nobody admitted it: no run starts there."""
        line = notice(f"group/{address.key}", address, "I only work in direct chats for now; write to me there.")
        await self._ports.delivery.post([line])

    async def _press(self, row: InboxRow, body: PressBody, who: Standing) -> None:
        channel = self._ports.channels[row.event.address.channel]
        early = asyncio.create_task(self._acknowledge_late(channel, body), name="acknowledge")
        try:
            told = await self._ports.presses.press(row.event, body, who, reply_id=f"in/{row.id}/1")
        finally:
            early.cancel()
            await asyncio.gather(early, return_exceptions=True)
        await channel.acknowledge(body, told)

    async def _acknowledge_late(self, channel: Channel, body: PressBody) -> None:
        await self._ports.clock.sleep(ACKNOWLEDGE_AFTER)
        await channel.acknowledge(body, "")

    async def _call(self, row: InboxRow, who: Standing, rest: str) -> CommandCall:
        binding = await self._binding(row.event, who)
        return CommandCall(
            event=row.event,
            who=who,
            rest=rest,
            binding=binding,
            agent=await self._ports.backend.get_agent(binding.agent_id),
            conversation=await self._ports.backend.get_conversation(binding.conversation_id),
        )

    async def _binding(self, event: InboundEvent, who: Standing) -> Binding:
        """Return what the address is bound to, binding it to a new conversation the first time."""
        known = await self._ports.delivery.binding(event.address.key)
        if known is not None:
            return known
        agent = await self._ports.backend.find_agent(self._ports.agents[event.address.channel])
        assert agent is not None, "wiring creates every configured agent"  # noqa: S101 - a bug if it fails
        conversation = await self._ports.backend.create_conversation(agent.id, audience_of(event, who.person))
        binding = Binding(address=event.address, agent_id=agent.id, conversation_id=conversation.id)
        await self._ports.delivery.bind(binding)
        return binding

    async def _answer(self, row: InboxRow, markdown: str) -> None:
        if markdown:
            address = row.event.address
            first = notice(f"in/{row.id}/1", address, markdown)
            await self._ports.delivery.post(
                text_items(first, markdown, self._ports.channels[address.channel].capabilities)
            )


class InboxSink:
    """Commits events before they are acknowledged; the channels' way into the host.

    What cannot be stored is not acknowledged, so the platform keeps it; the person is told once
    an outage, past the outbox, which cannot be written either.
    """

    def __init__(
        self, router: Router, delivery: DeliveryStore, channels: Mapping[str, Channel], clean: Callable[[str], str]
    ) -> None:
        self._router = router
        self._delivery = delivery
        self._channels = channels
        self._clean = clean
        self._told: set[str] = set()

    @property
    def failing(self) -> bool:
        """Whether the newest event could not be stored."""
        return bool(self._told)

    async def accept(self, event: InboundEvent) -> None:
        event = self._cleaned(event)
        try:
            await self._delivery.accept(event, conversation_id=await self._router.direct_target(event))
        except StoreError:
            await self._tell(event.address)
            raise
        self._told.clear()

    def _cleaned(self, event: InboundEvent) -> InboundEvent:
        """Return the event as it may be stored: no secret value, no text that cannot be written."""
        match event.body:
            case MessageBody() | EditBody() as body:
                return replace(event, body=replace(body, text=self._clean(body.text)))
            case PressBody():
                return event

    async def _tell(self, address: Address) -> None:
        if address.key in self._told:
            return
        self._told.add(address.key)
        text = "I cannot store messages right now, so I have not taken yours yet. I will as soon as I can."
        try:
            await self._channels[address.channel].deliver(notice(f"outage/{address.key}", address, text))
        except ChannelError:
            logger.warning("outage_not_told", extra={"channel": address.channel})


def audience_of(event: InboundEvent, person: Person) -> Audience:
    """Return who can see a conversation held at this address."""
    match event.privacy:
        case Privacy.DIRECT:
            return Audience(words=frozenset({EVERYONE, f"person:{person.id}"}))
        case Privacy.PRIVATE_GROUP:
            place: Address = event.address
            return Audience(words=frozenset({EVERYONE, f"address:{place.channel}/{place.chat}"}))
        case Privacy.PUBLIC:
            return Audience()
