"""From a message to a queued one: who may talk, which conversation it is for, its files, its place in the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.conversations.access import AccessDesk, Standing
from bot.conversations.answers import Answers
from bot.conversations.command_calls import CommandCall
from bot.conversations.commands import CommandDesk, command_in, parse_command
from bot.conversations.groups import GroupDesk
from bot.conversations.hearing import Hearing
from bot.conversations.intake import Intake
from bot.conversations.pairing import PairingDesk
from core.contracts.addresses import CommandBody, InboundEvent, MessageBody, Privacy
from core.contracts.agents import EVERYONE, Audience, QueueMode
from core.contracts.backend import Backend
from core.contracts.delivery import Binding, DeliveryStore, InboxRow
from core.contracts.ids import ConversationId
from core.contracts.ledger import TurnLedger
from core.contracts.people import Person
from core.contracts.permissions import PersonRole
from core.contracts.runs import TurnState

PAUSED = "Paused; your message waits. /resume lets me go on."
_NOT_HERE = "I do not work here yet. An owner of mine has to let me."
_NOTHING_TO_READ = "There is nothing in this message that I can read. Write to me, or send a file."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceptionPorts:
    """What receiving messages stands on. `agents` gives the name of the agent of each channel, as it is now."""

    backend: Backend
    delivery: DeliveryStore
    ledger: TurnLedger
    access: AccessDesk
    commands: CommandDesk
    pairings: PairingDesk
    groups: GroupDesk
    hearing: Hearing
    intake: Intake
    answers: Answers
    agents: Callable[[], Mapping[str, str]]
    wake_cancel: Callable[[ConversationId], None]


class Reception:
    """Receives messages, one address at a time, in order of acceptance."""

    def __init__(self, ports: ReceptionPorts) -> None:
        self._ports = ports

    async def direct_target(self, event: InboundEvent) -> ConversationId | None:
        """Return the conversation a plain message may be queued for at once, or None for the long way."""
        match event.body:
            case MessageBody(text=text, attachments=(), album=None, addressed=True) if (
                event.privacy is Privacy.DIRECT
                and not event.sender.is_bot
                and text.strip()
                and parse_command(text) is None
            ):
                return await self._open_target(event)
            case _:
                return None

    async def receive(self, rows: Sequence[InboxRow]) -> timedelta | None:
        """Handle a message, or the parts of an album; return how long to wait where it must be handled again.

        Otherwise its rows are queued for a turn, or done.
        """
        who = await self._heard(rows)
        if who is not None:
            if _is_for_a_turn(rows) and who.may_talk:
                return await self._queue(rows, who)
            if not rows[0].event.sender.is_bot:
                # No turn is counted here: two bots that answer each other at once would never end.
                await self._ports.answers.answer(rows[0], await self._answer(rows, who))
        await self._ports.delivery.complete([row.id for row in rows])
        return None

    async def command(self, row: InboxRow, body: CommandBody) -> str:
        """Run a command that the platform handed over as one, and return its answer for its giver alone."""
        event = row.event
        if not await self._is_open(row):
            return _NOT_HERE
        who = await self._ports.access.standing_at(event)
        if not who.may_talk:
            return await self._ports.pairings.greet(event)
        return await self._run(parse_command(body.text) or ("help", ""), row, who)

    async def _is_open(self, row: InboxRow) -> bool:
        """Return whether the agent may work where an event comes from; a new group is asked about there."""
        is_direct = row.event.privacy is Privacy.DIRECT
        if is_direct and row.event.address.space is None:
            return True
        return await self._ports.groups.admits(row) or is_direct

    async def _answer(self, rows: Sequence[InboxRow], who: Standing) -> str:
        """Return what the host itself answers to what is not for a turn."""
        if not who.may_talk:
            return await self._ports.pairings.greet(rows[0].event)
        command = command_in(_bodies(rows))
        if command is not None:
            return await self._run(command, rows[0], who)
        missed = [body.unsupported for body in _bodies(rows) if body.unsupported]
        return f"I cannot take {', '.join(missed)}." if missed else _NOTHING_TO_READ

    async def _run(self, command: tuple[str, str], row: InboxRow, who: Standing) -> str:
        """Run a command and return its answer."""
        name, rest = command
        binding = await self._binding(row.event, who)
        call = CommandCall(
            event=row.event,
            who=who,
            rest=rest,
            binding=binding,
            agent=await self._ports.backend.get_agent(binding.agent_id),
            conversation=await self._ports.backend.get_conversation(binding.conversation_id),
        )
        return await self._ports.commands.run(call, name)

    async def _heard(self, rows: Sequence[InboxRow]) -> Standing | None:
        """Return who speaks to the agent; None where it does not listen, but overhears at most."""
        ports, row = self._ports, rows[0]
        if ports.access.is_unheard_bot(row.event.sender):
            return None
        is_open = await self._is_open(row)
        if row.event.privacy is Privacy.DIRECT:
            meant = any(body.addressed for body in _bodies(rows))
        else:
            meant = is_open and await ports.hearing.is_meant(rows)
        if not meant or await ports.hearing.is_looping(row):
            return None
        return await ports.access.standing_at(row.event)

    async def _queue(self, rows: Sequence[InboxRow], who: Standing) -> timedelta | None:
        ports = self._ports
        binding = await self._binding(rows[0].event, who)
        wait = await ports.intake.take(rows, binding.conversation_id)
        if wait is not None:
            return wait
        bound = await ports.delivery.bound_conversation(binding.address.key)
        is_paused = bound is not None and bound.paused
        if bound is not None and not is_paused and bound.queue_mode is QueueMode.INTERRUPT:
            # Before the message is queued: after a crash between the two it is all done again.
            await self._interrupt(rows[0].event, binding.conversation_id, who)
        await ports.delivery.route([row.id for row in rows], binding.conversation_id)
        if is_paused:
            await self._tell_paused(rows[0].event, binding.conversation_id)
        return None

    async def _interrupt(self, event: InboundEvent, conversation_id: ConversationId, who: Standing) -> None:
        """Stop the turn that runs, if whoever writes may steer it; one that waits for a decision goes on waiting."""
        turn = await self._ports.ledger.open_turn(conversation_id)
        if turn is None or turn.state is not TurnState.RUNNING:
            return
        asked_here = turn.requester == who.person.id and turn.origin == event.address
        if asked_here or who.role in {PersonRole.OWNER, PersonRole.OPERATOR}:
            stopped = await self._ports.ledger.request_cancel(conversation_id, by=who.person.id)
            if stopped is not None:
                self._ports.wake_cancel(conversation_id)

    async def _tell_paused(self, event: InboundEvent, conversation_id: ConversationId) -> None:
        """Say that the message waits: once a pause, which is as long as the oldest waiting one stays the oldest."""
        oldest = (await self._ports.delivery.queued(conversation_id))[:1]
        for row in oldest:
            await self._ports.answers.post(f"paused/{conversation_id}/{row.id}", event.address, PAUSED)

    async def _open_target(self, event: InboundEvent) -> ConversationId | None:
        bound = await self._ports.delivery.bound_conversation(event.address.key)
        if bound is None or bound.paused or bound.queue_mode is QueueMode.INTERRUPT:
            return None
        return bound.id if (await self._ports.access.standing_at(event)).may_talk else None

    async def _binding(self, event: InboundEvent, who: Standing) -> Binding:
        """Return what the address is bound to, binding it to a new conversation the first time."""
        known = await self._ports.delivery.binding(event.address.key)
        if known is not None:
            return known
        agent = await self._ports.backend.find_agent(self._ports.agents()[event.address.channel])
        assert agent is not None, "wiring creates every configured agent"  # noqa: S101 - a bug if it fails
        conversation = await self._ports.backend.create_conversation(agent.id, audience_of(event, who.person))
        binding = Binding(address=event.address, agent_id=agent.id, conversation_id=conversation.id)
        await self._ports.delivery.bind(binding)
        return binding


def audience_of(event: InboundEvent, person: Person) -> Audience:
    """Return who can see a conversation held at this address."""
    match event.privacy:
        case Privacy.DIRECT:
            return Audience(words=frozenset({EVERYONE, f"person:{person.id}"}))
        case Privacy.PRIVATE_GROUP:
            return Audience(words=frozenset({EVERYONE, f"address:{event.address.channel}/{event.address.chat}"}))
        case Privacy.PUBLIC:
            return Audience()


def _bodies(rows: Sequence[InboxRow]) -> list[MessageBody]:
    return [row.event.body for row in rows if isinstance(row.event.body, MessageBody)]


def _is_for_a_turn(rows: Sequence[InboxRow]) -> bool:
    """Whether a message says something, or brings a file, and is no command."""
    bodies = _bodies(rows)
    return command_in(bodies) is None and any(body.text.strip() or body.attachments for body in bodies)
