"""The handler of the conversations queue: takes what is queued and runs turns, one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

from bot.conversations.access import AccessDesk
from bot.conversations.cards import commit_card, reminder_card, reminder_id, waiting_card, waiting_id
from bot.conversations.observer import ReplyObserver, TurnBus
from bot.conversations.open_turns import OpenTurns
from bot.conversations.opening import Openings
from bot.conversations.outbox import ELSEWHERE
from bot.conversations.presses import DecisionDesk
from bot.conversations.steering import QueueSteering
from bot.conversations.turn_ending import TurnEndings
from bot.conversations.turn_opening import HEADLESS, BegunTurn, TurnOpenings, answered_together
from channels.contract import Channel
from core.contracts.addresses import OutboundItem
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore
from core.contracts.engine import Again
from core.contracts.errors import InvalidInput, StaleClaim
from core.contracts.ids import ConversationId
from core.contracts.ledger import TurnLedger
from core.contracts.memory import MemoryStore
from core.contracts.messages import ToolCall, ToolReturn
from core.contracts.runs import Turn, TurnOutcome, TurnState, UserInput
from core.contracts.tools import Toolset
from core.turns.loop import TurnLoop
from core.turns.services import Parked, TurnResult, TurnWork

logger = logging.getLogger(__name__)

_LATER = Again(wait=timedelta(seconds=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPorts:
    """What a worker stands on."""

    backend: Backend
    ledger: TurnLedger
    delivery: DeliveryStore
    memory: MemoryStore
    loop: TurnLoop
    access: AccessDesk
    decisions: DecisionDesk
    openings: Openings
    channels: Mapping[str, Channel]
    toolsets: Mapping[str, Toolset]
    tools_of: Callable[[ConversationId, Toolset], Awaitable[Toolset]]
    """Adds what a conversation's own client brought along."""
    clock: Clock
    bus: TurnBus
    mask: Callable[[str], str]
    """Masks secrets in a whole text, before it is cut into messages."""
    conceal: Callable[[str], str]
    """Masks secrets in text that is not complete yet: holds back an end that may begin one."""
    remind_after: Callable[[], timedelta]
    """How long a question may stay open before it is asked once more."""


class _After(Enum):
    """How things stand with a conversation after a worker looked at it."""

    ENDED = auto()
    PARKED = auto()
    NOTHING = auto()
    DRAINING = auto()
    ELSEWHERE = auto()
    """The next thing to do belongs to a channel that this host has not."""


class ConversationWorker:
    """Runs turns. The engine promises that one conversation is in one worker's hands at a time."""

    def __init__(self, ports: WorkerPorts) -> None:
        self._ports = ports
        self._beginnings = TurnOpenings(
            ledger=ports.ledger, delivery=ports.delivery, access=ports.access, clock=ports.clock
        )
        self._endings = TurnEndings(
            ledger=ports.ledger,
            delivery=ports.delivery,
            channels=ports.channels,
            bus=ports.bus,
            clock=ports.clock,
            mask=ports.mask,
        )
        self._open_turns = OpenTurns(
            backend=ports.backend, ledger=ports.ledger, delivery=ports.delivery, clock=ports.clock
        )
        self._cancels: dict[ConversationId, asyncio.Event] = {}
        self._active: set[ConversationId] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = asyncio.Event()

    async def advance(self, key: str) -> Again | None:
        """Advance one conversation as far as it goes: until idle, parked, or the host stops."""
        conversation_id = ConversationId(key)
        if self._draining.is_set():
            # The doorbell stays stored: the next start answers it.
            return _LATER
        self._active.add(conversation_id)
        self._idle.clear()
        try:
            after = await self._take_up(conversation_id)
            while after is _After.ENDED:
                after = await self._take_queued(conversation_id)
            return await self._wish(conversation_id, after)
        except* StaleClaim:
            logger.info("claim_lost", extra={"conversation_id": conversation_id})
        finally:
            self._active.discard(conversation_id)
            if not self._active:
                self._idle.set()
        return None

    async def _wish(self, conversation_id: ConversationId, after: _After) -> Again | None:
        """Return when the conversation wants to be rung again by itself."""
        match after:
            case _After.ENDED | _After.NOTHING:
                return None
            case _After.DRAINING:
                return _LATER
            case _After.ELSEWHERE:
                return ELSEWHERE
            case _After.PARKED:
                return await self._remind(conversation_id)

    def wake_cancel(self, conversation_id: ConversationId) -> None:
        """Tell a running turn at once what `request_cancel` has stored."""
        if conversation_id in self._cancels:
            self._cancels[conversation_id].set()

    async def drain(self, patience: timedelta) -> bool:
        """Start no further turn and wait for the running ones; False when patience ran out."""
        self._draining.set()
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def give_up(self, conversation_id: ConversationId, error: str) -> None:
        """End a turn that failed again and again with a visible error, so that the key goes on."""
        turn = await self._ports.ledger.open_turn(conversation_id)
        said: list[str] = []
        if turn is not None:
            claim = await self._ports.backend.claim(conversation_id)
            said = await self._open_turns.said_before(turn)
        else:
            queued = await self._ports.delivery.queued(conversation_id)
            if not queued:
                return
            conversation = await self._ports.backend.get_conversation(conversation_id)
            begun = await self._beginnings.begin(conversation, queued[:1])
            turn, claim = begun.turn, begun.claim
        text = "\n\n".join(filter(None, said))
        self._cancels.pop(conversation_id, None)
        await self._endings.finish(claim, turn, TurnResult(outcome=TurnOutcome.ERROR, text=text, error=error))
        await self._ports.decisions.redraw_ended(turn.id)

    async def _take_up(self, conversation_id: ConversationId) -> _After:
        """Go on with the open turn, or begin one for what is queued."""
        turn = await self._ports.ledger.open_turn(conversation_id)
        if turn is None:
            return await self._take_queued(conversation_id)
        if turn.origin is not None and turn.origin.channel not in self._ports.channels:
            return _After.ELSEWHERE
        if turn.state is TurnState.PARKED and not await self._open_turns.may_resume(turn):
            await self._tell_waiting(turn)
            return _After.PARKED
        cancel = self._cancels.setdefault(conversation_id, asyncio.Event())
        claim = await self._ports.backend.claim(conversation_id)
        if turn.state is TurnState.PARKED:
            await self._ports.ledger.resume_turn(claim, turn.id)
        if await self._ports.ledger.cancel_requested(turn.id):
            cancel.set()
        rows = await self._beginnings.opened_by(turn)
        conversation = await self._ports.backend.get_conversation(conversation_id)
        begun = BegunTurn(claim=claim, turn=turn, conversation=conversation, rows=rows)
        return await self._run(begun, cancel, previews=begun.is_private and await self._open_turns.is_unseen(turn))

    async def _take_queued(self, conversation_id: ConversationId) -> _After:
        """Begin a turn for what is queued first, unless nothing may begin now."""
        if self._draining.is_set():
            return _After.DRAINING
        queued = await self._ports.delivery.queued(conversation_id)
        if not queued:
            return _After.NOTHING
        if queued[0].event.address.channel not in self._ports.channels:
            return _After.ELSEWHERE
        conversation = await self._ports.backend.get_conversation(conversation_id)
        if conversation.paused:
            return _After.NOTHING
        # A new one: who stopped the turn before did not mean this one.
        cancel = self._cancels[conversation_id] = asyncio.Event()
        try:
            begun = await self._beginnings.begin(conversation, answered_together(queued))
        except InvalidInput:
            if await self._ports.delivery.queued(conversation_id) == queued:
                raise
            # A message was withdrawn meanwhile: look again.
            return _After.ENDED
        return await self._run(begun, cancel, previews=begun.is_private)

    async def _tell_waiting(self, turn: Turn) -> None:
        """Say once per park that a message is queued, and offer the decision again."""
        queued = await self._ports.delivery.queued(turn.conversation_id)
        waiting = await self._open_turns.open_questions(turn)
        for row in queued[:1] if waiting else ():
            item = OutboundItem(id=waiting_id(waiting[0]), address=row.event.address, content=waiting_card(waiting))
            await self._ports.delivery.post([item], turn_id=turn.id)

    async def _remind(self, conversation_id: ConversationId) -> Again | None:
        """Ask once more when nobody decided for a while; return how long until that is due."""
        turn = await self._ports.ledger.open_turn(conversation_id)
        if turn is None or turn.state is not TurnState.PARKED or turn.origin is None:
            return None
        waiting = await self._open_turns.open_questions(turn)
        if not waiting:
            return None
        wait = waiting[0].created_at + self._ports.remind_after() - self._ports.clock.now()
        if wait > timedelta(0):
            return Again(wait=wait)
        item = OutboundItem(id=reminder_id(waiting[0]), address=turn.origin, content=reminder_card(waiting))
        await self._ports.delivery.post([item], turn_id=turn.id)
        return None

    async def _run(self, begun: BegunTurn, cancel: asyncio.Event, *, previews: bool) -> _After:
        ports, turn = self._ports, begun.turn
        try:
            async with AsyncExitStack() as stack:
                reply = None
                if turn.origin is not None:
                    channel = ports.channels[turn.origin.channel]
                    reply = await stack.enter_async_context(
                        channel.reply(turn.origin, lambda external_id: self._visible(turn, external_id))
                    )
                observer = ReplyObserver(
                    reply,
                    ports.clock,
                    previews=previews,
                    call_ended=self._show_commit if begun.is_private else _show_nothing,
                    tap=ports.bus.publish,
                    conceal=ports.conceal,
                )
                await stack.enter_async_context(observer.showing())
                work = await self._work(begun, cancel, observer)
                result = await ports.loop.run(work)
        except BaseException:
            # What was composed may not be stored: the next try composes it again.
            ports.openings.forget(turn.conversation_id)
            raise
        finally:
            self._cancels.pop(turn.conversation_id, None)
        if isinstance(result, Parked):
            await ports.decisions.redraw_ended(turn.id)
            await self._tell_waiting(turn)
            return _After.PARKED
        await self._endings.finish(begun.claim, turn, result)
        if turn.steps + work.steps > 0:
            # A turn without steps that called tools asked nobody anything.
            await ports.decisions.redraw_ended(turn.id)
        return _After.ENDED

    async def _work(self, begun: BegunTurn, cancel: asyncio.Event, observer: ReplyObserver) -> TurnWork:
        ports, turn = self._ports, begun.turn
        agent = await ports.backend.get_agent(turn.agent_id)
        opening = UserInput(parts=())
        if turn.steps == 0:
            opening = await ports.openings.compose(
                begun.rows, agent=agent, conversation=begun.conversation, waited=begun.waited
            )
        return TurnWork(
            claim=begun.claim,
            turn=turn,
            agent=agent,
            conversation=begun.conversation,
            toolset=await ports.tools_of(turn.conversation_id, ports.toolsets[agent.toolset]),
            opening=opening,
            steering=QueueSteering(
                backend=ports.backend,
                ledger=ports.ledger,
                delivery=ports.delivery,
                access=ports.access,
                openings=ports.openings,
                claim=begun.claim,
                turn=turn,
                agent=agent,
            ),
            observer=observer,
            cancel=cancel,
            texts=await self._open_turns.said_before(turn),
        )

    async def _visible(self, turn: Turn, external_id: str) -> None:
        if turn.outbox_id is not None:
            await self._ports.delivery.mark_visible(turn.outbox_id, external_id)

    async def _show_commit(self, turn: Turn, call: ToolCall, result: ToolReturn) -> None:
        """Show a memory commit as one silent line."""
        if call.name != "memory_write" or turn.origin is None or turn.origin.channel == HEADLESS:
            return
        agent = await self._ports.backend.get_agent(turn.agent_id)
        commit = (await self._ports.memory.log(agent.memory_id, limit=1))[0]
        if commit.conversation_id == turn.conversation_id:
            item = OutboundItem(
                id=f"{turn.id}/memory/{result.call_id}", address=turn.origin, content=commit_card(commit)
            )
            await self._ports.delivery.post([item], turn_id=turn.id)


async def _show_nothing(turn: Turn, call: ToolCall, result: ToolReturn) -> None:
    """Leave a group alone with what the agent remembers."""
