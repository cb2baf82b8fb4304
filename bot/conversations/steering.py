"""What enters a running turn: waiting messages of whoever may steer it, by the conversation's queue mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from bot.conversations.access import AccessDesk
from bot.conversations.opening import Openings
from core.contracts.agents import Agent, QueueMode
from core.contracts.backend import Backend
from core.contracts.delivery import DeliveryStore, InboxRow
from core.contracts.errors import InvalidInput
from core.contracts.ledger import TurnLedger
from core.contracts.messages import UserPart
from core.contracts.runs import Claim, Turn
from core.turns.services import Steering

READ_AFTERWARDS = "Read the person's next message first; it follows when this turn has ended."
"""The feedback of a denial whose giver wants what waits to be a turn of its own."""


class QueueSteering:
    """Steers one turn from its conversation's queue.

    Each person's messages keep their order. Those of different people do not: what one says into the
    turn goes in, while an earlier message of another, who may not steer it, waits for its own turn.
    """

    def __init__(
        self,
        *,
        backend: Backend,
        ledger: TurnLedger,
        delivery: DeliveryStore,
        access: AccessDesk,
        openings: Openings,
        claim: Claim,
        turn: Turn,
        agent: Agent,
    ) -> None:
        self._backend = backend
        self._ledger = ledger
        self._delivery = delivery
        self._access = access
        self._openings = openings
        self._claim = claim
        self._turn = turn
        self._agent = agent

    async def has_entered(self, step: int) -> bool:
        return bool(await self._entered(step))

    async def take(self, step: int, *, more: bool) -> tuple[UserPart, ...]:
        while more and (rows := await self._entering()):
            try:
                await self._ledger.steer_turn(self._claim, self._turn.id, [row.id for row in rows], step=step)
            except InvalidInput:
                # One was withdrawn meanwhile: the others still wait.
                continue
            break
        entered = await self._entered(step)
        return await self._openings.steer(entered, requester=self._turn.requester) if entered else ()

    async def _entered(self, step: int) -> list[InboxRow]:
        # Read behind the mark that takes them: a message that was edited until then enters as it was edited.
        return [row for row in await self._delivery.taken(self._turn.id) if row.step == step]

    async def _entering(self) -> tuple[InboxRow, ...]:
        waiting = await self._delivery.queued(self._turn.conversation_id)
        if not (waiting and self._turn.interactive and await self._is_steered()):
            return ()
        until = await self._read_afterwards_until()
        return await self._of_those_who_may(waiting, until)

    async def _is_steered(self) -> bool:
        """Whether the conversation lets messages into running turns, as things stand now."""
        conversation = await self._backend.get_conversation(self._turn.conversation_id)
        return not conversation.paused and (conversation.queue_mode or self._agent.queue_mode) is QueueMode.STEER

    async def _read_afterwards_until(self) -> datetime | None:
        """Return when somebody chose last that what waits is read when the turn has ended."""
        approvals = await self._ledger.approvals_of(self._turn.id)
        chosen = [
            approval.decided_at
            for approval in approvals
            if approval.decided_at is not None
            and approval.decision is not None
            and approval.decision.feedback == READ_AFTERWARDS
        ]
        return max(chosen, default=None)

    async def _of_those_who_may(self, waiting: Sequence[InboxRow], until: datetime | None) -> tuple[InboxRow, ...]:
        """Return what may enter; behind a message that may not, none of its sender's does."""
        entering: list[InboxRow] = []
        held: set[str] = set()
        for row in waiting:
            sender = row.event.sender
            may = (
                sender.identity not in held
                and row.event.address == self._turn.origin
                and (until is None or row.received_at > until)
                and await self._access.may_steer(sender, self._turn)
            )
            if may:
                entering.append(row)
            else:
                held.add(sender.identity)
        return tuple(entering)


if TYPE_CHECKING:
    _conforms: type[Steering] = QueueSteering
