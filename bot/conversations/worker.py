"""The handler of the conversations queue: takes what is queued and runs turns, one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from bot.conversations.access import AccessDesk
from bot.conversations.cards import commit_card, reminder_card, reminder_id, waiting_card, waiting_id
from bot.conversations.observer import ReplyObserver, TurnBus
from bot.conversations.opening import Openings
from bot.conversations.outbox import ELSEWHERE, notice, text_items
from bot.conversations.presses import DecisionDesk
from bot.conversations.transcript import answers
from channels.contract import Channel
from core.contracts.addresses import OutboundItem, TextContent
from core.contracts.agents import Conversation
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, InboxRow, OutboxState
from core.contracts.engine import Again
from core.contracts.errors import StaleClaim
from core.contracts.ids import ConversationId, TurnId, new_id
from core.contracts.ledger import TurnEnd, TurnLedger
from core.contracts.memory import MemoryStore
from core.contracts.messages import ToolCall, ToolReturn, tool_calls, visible_text
from core.contracts.permissions import Approval, ApprovalState
from core.contracts.runs import Claim, Turn, TurnOutcome, TurnState, UserInput
from core.contracts.tools import Toolset
from core.turns.loop import TurnLoop
from core.turns.outcomes import OUTCOMES
from core.turns.services import Parked, TurnResult, TurnWork

logger = logging.getLogger(__name__)

_LATER = Again(wait=timedelta(seconds=1))
HEADLESS = "headless"
"""The channel of turns that nobody watches: nobody can be asked there."""


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
    clock: Clock
    bus: TurnBus
    mask: Callable[[str], str]
    """Masks secrets in a whole text, before it is cut into messages."""
    conceal: Callable[[str], str]
    """Masks secrets in text that is not complete yet: holds back an end that may begin one."""
    remind_after: timedelta
    """How long a question may stay open before it is asked once more."""


class _After(Enum):
    """How things stand with a conversation after a worker looked at it."""

    ENDED = auto()
    PARKED = auto()
    NOTHING = auto()
    DRAINING = auto()
    ELSEWHERE = auto()
    """The next thing to do belongs to a channel that this host has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A turn in this worker's hands, with the messages that opened it where they are still to be stored."""

    claim: Claim
    turn: Turn
    conversation: Conversation
    rows: tuple[InboxRow, ...]
    cancel: asyncio.Event


class ConversationWorker:
    """Runs turns. The engine promises that one conversation is in one worker's hands at a time."""

    def __init__(self, ports: WorkerPorts) -> None:
        self._ports = ports
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
        if turn is not None:
            claim = await self._ports.backend.claim(conversation_id)
        else:
            queued = await self._ports.delivery.queued(conversation_id)
            if not queued:
                return
            begun = await self._begin(conversation_id, queued[0])
            turn, claim = begun.turn, begun.claim
        await self._finish(claim, turn, TurnResult(outcome=TurnOutcome.ERROR, text="", error=error))
        await self._ports.decisions.redraw_ended(turn.id)

    async def _take_up(self, conversation_id: ConversationId) -> _After:
        """Go on with the open turn, or begin one for the next queued message."""
        turn = await self._ports.ledger.open_turn(conversation_id)
        if turn is None:
            return await self._take_queued(conversation_id)
        if turn.origin is not None and turn.origin.channel not in self._ports.channels:
            return _After.ELSEWHERE
        if turn.state is TurnState.PARKED and not await self._may_resume(turn):
            await self._tell_waiting(turn)
            return _After.PARKED
        cancel = self._cancels.setdefault(conversation_id, asyncio.Event())
        claim = await self._ports.backend.claim(conversation_id)
        if turn.state is TurnState.PARKED:
            await self._ports.ledger.resume_turn(claim, turn.id)
        if await self._ports.ledger.cancel_requested(turn.id):
            cancel.set()
        rows = await self._ports.delivery.taken(turn.id) if turn.steps == 0 else ()
        conversation = await self._ports.backend.get_conversation(conversation_id)
        begun = _Begun(claim=claim, turn=turn, conversation=conversation, rows=rows, cancel=cancel)
        return await self._run(begun, previews=await self._is_unseen(turn))

    async def _take_queued(self, conversation_id: ConversationId) -> _After:
        """Begin a turn for the next queued message, if there is one and the host is not stopping."""
        if self._draining.is_set():
            return _After.DRAINING
        queued = await self._ports.delivery.queued(conversation_id)
        if not queued:
            return _After.NOTHING
        if queued[0].event.address.channel not in self._ports.channels:
            return _After.ELSEWHERE
        return await self._run(await self._begin(conversation_id, queued[0]), previews=True)

    async def _begin(self, conversation_id: ConversationId, row: InboxRow) -> _Begun:
        cancel = self._cancels.setdefault(conversation_id, asyncio.Event())
        conversation = await self._ports.backend.get_conversation(conversation_id)
        standing = await self._ports.access.standing(row.event.sender)
        turn_id = TurnId(new_id("turn"))
        live = OutboundItem(
            id=f"{turn_id}/1",
            address=row.event.address,
            content=TextContent(markdown=""),
            reply_to=row.event.external_id,
        )
        turn = Turn(
            id=turn_id,
            conversation_id=conversation_id,
            agent_id=conversation.agent_id,
            requester=standing.person.id,
            origin=row.event.address,
            state=TurnState.RUNNING,
            started_at=self._ports.clock.now(),
            outbox_id=live.id,
            interactive=row.event.address.channel != HEADLESS,
        )
        claim = await self._ports.ledger.begin_turn(turn, inbox_ids=[row.id], live=live)
        return _Begun(claim=claim, turn=turn, conversation=conversation, rows=(row,), cancel=cancel)

    async def _may_resume(self, turn: Turn) -> bool:
        """Whether something was decided, expired, or a stop was asked for since the turn was parked."""
        if await self._ports.ledger.cancel_requested(turn.id):
            return True
        now = self._ports.clock.now()
        records = await self._ports.ledger.unanswered_calls(turn.conversation_id)
        return not records or any(
            record.result is None and (record.approval is None or not _is_open(record.approval, now))
            for record in records
        )

    async def _tell_waiting(self, turn: Turn) -> None:
        """Say once per park that a message is queued, and offer the decision again."""
        queued = await self._ports.delivery.queued(turn.conversation_id)
        waiting = [a for a in await self._ports.ledger.approvals_of(turn.id) if a.state is ApprovalState.OPEN]
        for row in queued[:1] if waiting else ():
            item = OutboundItem(id=waiting_id(waiting[0]), address=row.event.address, content=waiting_card(waiting))
            await self._ports.delivery.post([item], turn_id=turn.id)

    async def _remind(self, conversation_id: ConversationId) -> Again | None:
        """Ask once more when nobody decided for a while; return how long until that is due."""
        turn = await self._ports.ledger.open_turn(conversation_id)
        if turn is None or turn.state is not TurnState.PARKED or turn.origin is None:
            return None
        waiting = [a for a in await self._ports.ledger.approvals_of(turn.id) if a.state is ApprovalState.OPEN]
        if not waiting:
            return None
        wait = waiting[0].created_at + self._ports.remind_after - self._ports.clock.now()
        if wait > timedelta(0):
            return Again(wait=wait)
        item = OutboundItem(id=reminder_id(waiting[0]), address=turn.origin, content=reminder_card(waiting))
        await self._ports.delivery.post([item], turn_id=turn.id)
        return None

    async def _is_unseen(self, turn: Turn) -> bool:
        """Whether nothing of the turn is visible yet: a second preview would be a second message."""
        if turn.outbox_id is None:
            return False
        row = await self._ports.delivery.outbox_row(turn.outbox_id)
        return row.state is OutboxState.LIVE and row.item.external_id is None

    async def _run(self, begun: _Begun, *, previews: bool) -> _After:
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
                    call_ended=self._call_ended,
                    tap=ports.bus.publish,
                    conceal=ports.conceal,
                )
                await stack.enter_async_context(observer.showing())
                work = await self._work(begun, observer)
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
        await self._finish(begun.claim, turn, result)
        if turn.steps + work.steps > 0:
            # A turn without steps that called tools asked nobody anything.
            await ports.decisions.redraw_ended(turn.id)
        return _After.ENDED

    async def _work(self, begun: _Begun, observer: ReplyObserver) -> TurnWork:
        ports, turn = self._ports, begun.turn
        agent = await ports.backend.get_agent(turn.agent_id)
        opening = UserInput(parts=())
        if turn.steps == 0:
            opening = await ports.openings.compose(
                [row.event for row in begun.rows], agent=agent, conversation=begun.conversation
            )
        return TurnWork(
            claim=begun.claim,
            turn=turn,
            agent=agent,
            conversation=begun.conversation,
            toolset=ports.toolsets[agent.toolset],
            opening=opening,
            observer=observer,
            cancel=begun.cancel,
            texts=await self._said_before(turn) if turn.steps else [],
        )

    async def _said_before(self, turn: Turn) -> list[str]:
        """Return what steps of an earlier worker said and nobody has posted: a crash must not lose it."""
        if turn.outbox_id is None:
            return []
        # A step behind the counted ones is taken up by the loop, which tells its text itself.
        said = (await answers(self._ports.backend, turn.conversation_id))[: turn.steps]
        row = await self._ports.delivery.outbox_row(turn.outbox_id)
        if row.state is not OutboxState.LIVE:
            # All text up to the latest question was posted above it.
            asked = {approval.call_id for approval in await self._ports.ledger.approvals_of(turn.id)}
            asking = [n for n, step in enumerate(said, start=1) if asked & {c.id for c in tool_calls(step.parts)}]
            said = said[max(asking, default=len(said)) :]
        return [visible_text(message.parts) for message in said]

    async def _visible(self, turn: Turn, external_id: str) -> None:
        if turn.outbox_id is not None:
            await self._ports.delivery.mark_visible(turn.outbox_id, external_id)

    async def _finish(self, claim: Claim, turn: Turn, result: TurnResult) -> None:
        outgoing = await self._outgoing(turn, result)
        await self._ports.ledger.finish_turn(
            claim, turn.id, TurnEnd(outcome=result.outcome, outgoing=outgoing, error=result.error)
        )
        if result.error:
            logger.error("turn_failed", extra={"turn_id": turn.id, "outcome": result.outcome, "error": result.error})
        ended = replace(turn, state=TurnState.FINISHED, outcome=result.outcome, error=result.error)
        self._ports.bus.turn_ended(ended)

    async def _outgoing(self, turn: Turn, result: TurnResult) -> tuple[OutboundItem, ...]:
        """Return the messages that end a turn: behind what it posted before it waited, or in place of the preview."""
        if turn.origin is None or turn.outbox_id is None:
            return ()
        capabilities = self._ports.channels[turn.origin.channel].capabilities
        row = await self._ports.delivery.outbox_row(turn.outbox_id)
        text = self._ports.mask(final_text(result))
        if row.state is not OutboxState.LIVE:
            return text_items(notice(f"{turn.id}/end", turn.origin, text), text, capabilities)
        if not text and row.item.external_id is None:
            return ()
        return text_items(row.item, text or self._ports.mask(result.text.strip()) or "(no text)", capabilities)

    async def _call_ended(self, turn: Turn, call: ToolCall, result: ToolReturn) -> None:
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


def final_text(result: TurnResult) -> str:
    """Return what a person reads at the end of a turn: its text and what the outcome adds."""
    if result.outcome is TurnOutcome.SILENT:
        return ""
    return "\n\n".join(text for text in (result.text.strip(), OUTCOMES[result.outcome].notice) if text)


def _is_open(approval: Approval, now: datetime) -> bool:
    return approval.state is ApprovalState.OPEN and approval.expires_at > now
