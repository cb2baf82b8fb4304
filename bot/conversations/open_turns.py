"""Turns that are open: what they have said and shown, and whether one that waits may go on."""

from __future__ import annotations

from datetime import datetime

from bot.conversations.transcript import answers
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, OutboxState
from core.contracts.ledger import TurnLedger
from core.contracts.messages import tool_calls, visible_text
from core.contracts.permissions import Approval, ApprovalState
from core.contracts.runs import Turn


class OpenTurns:
    """Looks at rows only; another worker, in this process or another, finds the same."""

    def __init__(self, *, backend: Backend, ledger: TurnLedger, delivery: DeliveryStore, clock: Clock) -> None:
        self._backend = backend
        self._ledger = ledger
        self._delivery = delivery
        self._clock = clock

    async def may_resume(self, turn: Turn) -> bool:
        """Whether something was decided, expired, or a stop was asked for since the turn was parked."""
        if await self._ledger.cancel_requested(turn.id):
            return True
        now = self._clock.now()
        records = await self._ledger.unanswered_calls(turn.conversation_id)
        return not records or any(
            record.result is None and (record.approval is None or not _is_open(record.approval, now))
            for record in records
        )

    async def said_before(self, turn: Turn) -> list[str]:
        """Return what counted steps said and nobody has posted: a crash must not lose it."""
        if turn.outbox_id is None or turn.steps == 0:
            return []
        # A step behind the counted ones is taken up by the loop, which tells its text itself.
        said = (await answers(self._backend, turn))[: turn.steps]
        row = await self._delivery.outbox_row(turn.outbox_id)
        if row.state is not OutboxState.LIVE:
            # All text up to the latest question was posted above it.
            asked = {approval.call_id for approval in await self._ledger.approvals_of(turn.id)}
            asking = [n for n, step in enumerate(said, start=1) if asked & {c.id for c in tool_calls(step.parts)}]
            said = said[max(asking, default=len(said)) :]
        return [visible_text(message.parts) for message in said]

    async def is_unseen(self, turn: Turn) -> bool:
        """Whether nothing of the turn is visible yet: a second preview would be a second message."""
        if turn.outbox_id is None:
            return False
        row = await self._delivery.outbox_row(turn.outbox_id)
        return row.state is OutboxState.LIVE and row.item.external_id is None

    async def open_questions(self, turn: Turn) -> list[Approval]:
        """Return the approvals that people have not decided yet, oldest first."""
        return [a for a in await self._ledger.approvals_of(turn.id) if a.state is ApprovalState.OPEN]


def _is_open(approval: Approval, now: datetime) -> bool:
    return approval.state is ApprovalState.OPEN and approval.expires_at > now
