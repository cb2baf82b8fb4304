"""What clients of sessions ask for: to open one, to follow it, to say something into it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from bot.conversations.access import AccessDesk
from bot.conversations.cards import CHOICES
from bot.conversations.local import OWNER, LocalConversations, local_address
from bot.conversations.presses import DecisionDesk
from bot.conversations.sessions import lines
from bot.conversations.sessions.books import SessionBooks
from bot.conversations.sessions.clients import ToolAnswer
from bot.conversations.sessions.host_tools import read_tools
from bot.conversations.sessions.inputs import (
    CancelAsked,
    Decided,
    InputEnded,
    Pinged,
    ToolAnswered,
    ToolsGiven,
    UserSaid,
    read_input,
)
from bot.conversations.sessions.protocol import CHANNEL, VERSION, OutputType, SessionState
from bot.conversations.telling import masked
from bot.conversations.turn_opening import HEADLESS
from bot.session_api import SessionApi
from core.contracts.addresses import InboundEvent, MessageBody, Privacy
from core.contracts.agents import Conversation, QueueMode
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import Binding, DeliveryStore, InboxState
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import CallId, ConversationId, new_id
from core.contracts.ledger import TurnLedger
from core.contracts.permissions import Approval, ApprovalState
from core.contracts.runs import Turn, TurnState
from core.contracts.secrets import Redactor
from core.contracts.store import ConversationChange, TranscriptStore
from core.contracts.tools import Toolset

_SEARCHED = 1_000
"""How many messages of a conversation are looked through for one that was sent before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskPorts:
    """What the desk stands on."""

    books: SessionBooks
    backend: Backend
    transcripts: TranscriptStore
    ledger: TurnLedger
    delivery: DeliveryStore
    access: AccessDesk
    decisions: DecisionDesk
    toolsets: Mapping[str, Toolset]
    """All built-in tools: no client's tool is named like one of them."""
    clock: Clock
    redactor: Redactor
    clean: Callable[[str], str]
    """What a person's text goes through before it is stored: cleaned and masked."""
    wake_cancel: Callable[[ConversationId], None]


class SessionDesk:
    """Serves the clients; whoever reaches it sits at this machine and is its owner."""

    def __init__(self, ports: DeskPorts) -> None:
        self._ports = ports
        self._conversations = LocalConversations(
            backend=ports.backend, transcripts=ports.transcripts, access=ports.access
        )

    async def open(self, *, agent: str, conversation: str) -> Mapping[str, Any]:
        found = await self._conversations.open(agent=agent, conversation=conversation)
        if await self._ports.delivery.binding_of(found.id) is None:
            address = local_address(CHANNEL, found.id)
            await self._ports.delivery.bind(Binding(address=address, agent_id=found.agent_id, conversation_id=found.id))
        return await self.state(found.id)

    async def state(self, conversation_id: str) -> Mapping[str, Any]:
        ports = self._ports
        conversation = await self._conversation(conversation_id)
        agent = await ports.backend.get_agent(conversation.agent_id)
        # In this order: a message moves from the queue into a turn, and a turn's end is told last.
        waiting = await ports.delivery.queued(conversation.id)
        turn = await ports.ledger.open_turn(conversation.id)
        approvals = await self._open_approvals(turn)
        async with ports.books.book(conversation.id) as book:
            told, requests = await book.read(), book.clients.open_requests
        is_busy = turn is not None or told.open_turn is not None or bool(waiting and not conversation.paused)
        is_parked = turn is not None and turn.state is TurnState.PARKED
        session = {
            "type": OutputType.SESSION,
            "protocol": VERSION,
            "conversation_id": conversation.id,
            "agent": agent.name,
            "last_seq": told.last_seq,
            "state": SessionState.PARKED if is_parked else SessionState.RUNNING if is_busy else SessionState.IDLE,
            "turn_id": turn.id if turn is not None else "",
            "tools": [tool.name for tool in told.tools],
            "tool_requests": sorted(requests),
            "approvals": [lines.approval_opened(approval) for approval in approvals],
        }
        return masked(session, ports.redactor)

    async def lines(self, conversation_id: str, *, after: int) -> AsyncGenerator[Sequence[str], None]:
        conversation = await self._conversation(conversation_id)
        async with self._ports.books.book(conversation.id) as book:
            last = (await book.read()).last_seq
        if after > last:
            raise InvalidInput(f"there is no line {after} yet: the last is {last}")
        return self._follow(conversation.id, after)

    async def take(self, conversation_id: str, said: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        conversation = await self._conversation(conversation_id)
        match read_input(said):
            case UserSaid() as message:
                await self._queue(conversation, message)
            case Decided() as decided:
                await self._decide(conversation.id, decided)
            case CancelAsked():
                if await self._stop(conversation.id) is None:
                    raise InvalidInput("no turn is open")
            case ToolsGiven(tools=tools):
                await self._register(conversation.id, tools)
            case ToolAnswered(call_id=call_id, text=text, is_error=is_error):
                await self._answer(conversation.id, call_id, ToolAnswer(text=text, is_error=is_error))
            case Pinged(id=ping_id):
                return ({"type": OutputType.PONG, "id": ping_id},)
            case InputEnded():
                pass
            case never:
                assert_never(never)
        return ()

    async def cancel_turn(self, conversation_id: str, input_id: str) -> str:
        conversation = await self._conversation(conversation_id)
        address = local_address(HEADLESS, conversation.id)
        state = await self._ports.delivery.withdraw(address, input_id)
        if state in {InboxState.NEW, InboxState.QUEUED}:
            return "The message was withdrawn before its turn began."
        turn = await self._ports.ledger.open_turn(conversation.id)
        taken = await self._ports.delivery.taken(turn.id) if turn is not None else ()
        if all(row.event.key != input_id for row in taken):
            return "Its turn does not run."
        await self._stop(conversation.id)
        return "Stopping."

    async def _follow(self, conversation_id: ConversationId, after: int) -> AsyncGenerator[Sequence[str], None]:
        async with self._ports.books.book(conversation_id) as book, aclosing(book.follow(after)) as pages:
            async for page in pages:
                yield page

    async def _conversation(self, conversation_id: str) -> Conversation:
        return await self._ports.backend.get_conversation(ConversationId(conversation_id))

    async def _open_approvals(self, turn: Turn | None) -> list[Approval]:
        approvals = await self._ports.ledger.approvals_of(turn.id) if turn is not None else ()
        return [approval for approval in approvals if approval.state is ApprovalState.OPEN]

    async def _queue(self, conversation: Conversation, said: UserSaid) -> None:
        """Queue a message as any chat does; what begins with a slash is no command here."""
        ports, input_id = self._ports, said.id or new_id("in")
        event = InboundEvent(
            address=local_address(CHANNEL, conversation.id),
            key=f"{conversation.id}/{input_id}",
            sender=OWNER,
            body=MessageBody(text=ports.clean(said.text)),
            privacy=Privacy.DIRECT,
            sent_at=ports.clock.now(),
        )
        if said.mode is QueueMode.INTERRUPT:
            await self._interrupt(conversation.id, event)
        elif said.mode is not None and said.mode is not conversation.queue_mode:
            await ports.transcripts.change_conversation(conversation.id, ConversationChange(queue_mode=said.mode))
        async with ports.books.book(conversation.id) as book:
            await book.take(input_id, partial(ports.delivery.accept, event, conversation_id=conversation.id))

    async def _interrupt(self, conversation_id: ConversationId, event: InboundEvent) -> None:
        """Stop the open turn for a message; one that was sent before may be what the turn is about."""
        rows = await self._ports.delivery.inbox_of(event.address.key, limit=_SEARCHED)
        if all(row.event.key != event.key for row in rows):
            await self._stop(conversation_id)

    async def _decide(self, conversation_id: ConversationId, said: Decided) -> None:
        ports = self._ports
        approval = await ports.ledger.approval(said.approval_id)
        if approval.conversation_id != conversation_id:
            raise NotFound("approval", said.approval_id)
        if approval.state is not ApprovalState.OPEN:
            raise InvalidInput(f"approval {said.approval_id!r} is {approval.state} already")
        owner = await ports.access.standing(OWNER)
        told = await ports.decisions.decide(approval.id, CHOICES[said.choice], owner, feedback=said.feedback)
        if (await ports.ledger.approval(approval.id)).state is ApprovalState.OPEN:
            raise InvalidInput(told)
        async with ports.books.book(conversation_id) as book:
            await book.approvals_changed()

    async def _stop(self, conversation_id: ConversationId) -> Turn | None:
        """Ask the open turn to stop, and return it."""
        owner = await self._ports.access.standing(OWNER)
        turn = await self._ports.ledger.request_cancel(conversation_id, by=owner.person.id)
        if turn is not None:
            self._ports.wake_cancel(conversation_id)
        return turn

    async def _register(self, conversation_id: ConversationId, given: Sequence[Any]) -> None:
        taken = {schema.name for toolset in self._ports.toolsets.values() for schema in toolset.schemas}
        tools = read_tools(given, taken=taken)
        async with self._ports.books.book(conversation_id) as book:
            await book.say(lines.tools_registered(tools))

    async def _answer(self, conversation_id: ConversationId, call_id: CallId, answer: ToolAnswer) -> None:
        async with self._ports.books.book(conversation_id) as book:
            book.clients.answer(call_id, answer)


if TYPE_CHECKING:
    _conforms: type[SessionApi] = SessionDesk
