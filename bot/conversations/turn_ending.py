"""How a turn ends: what stands in its chat for good, and who is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from bot.conversations.observer import TurnBus
from bot.conversations.outbox import final_id, notice, text_items
from channels.contract import Capabilities, Channel
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, OutboxRow, OutboxState
from core.contracts.ledger import TurnEnd, TurnLedger
from core.contracts.runs import Claim, Turn, TurnOutcome, TurnState
from core.turns.outcomes import OUTCOMES
from core.turns.services import TurnResult

logger = logging.getLogger(__name__)

LATE_FINAL: Final = timedelta(seconds=60)
"""Who waits longer than this behind what was last posted has looked away, and an edit tells nobody."""


class TurnEndings:
    """Ends turns."""

    def __init__(
        self,
        *,
        ledger: TurnLedger,
        delivery: DeliveryStore,
        channels: Mapping[str, Channel],
        bus: TurnBus,
        clock: Clock,
        mask: Callable[[str], str],
    ) -> None:
        self._ledger = ledger
        self._delivery = delivery
        self._channels = channels
        self._bus = bus
        self._clock = clock
        self._mask = mask

    async def finish(self, claim: Claim, turn: Turn, result: TurnResult) -> None:
        """Store the end of a turn together with what is to be delivered, and tell its followers.

        Raises:
            StaleClaim: A newer worker has the conversation.
        """
        await self._ledger.finish_turn(claim, turn.id, await self._end(turn, result))
        if result.error:
            logger.error("turn_failed", extra={"turn_id": turn.id, "outcome": result.outcome, "error": result.error})
        ended = replace(turn, state=TurnState.FINISHED, outcome=result.outcome, error=result.error)
        await self._bus.turn_ended(ended)

    async def _end(self, turn: Turn, result: TurnResult) -> TurnEnd:
        if turn.origin is None or turn.outbox_id is None:
            return TurnEnd(outcome=result.outcome, outgoing=(), error=result.error)
        capabilities = self._channels[turn.origin.channel].capabilities
        row = await self._delivery.outbox_row(turn.outbox_id)
        text = self._mask(final_text(result))
        apart = row.state is not OutboxState.LIVE or (bool(text) and self._comes_late(row, capabilities))
        if apart:
            reply_to = row.item.reply_to if row.state is OutboxState.LIVE else None
            first = replace(notice(final_id(turn.id), turn.origin, text), reply_to=reply_to)
            items = text_items(first, text, capabilities)
        elif not text and row.item.external_id is None:
            items = ()
        else:
            shown = text or self._mask(result.text.strip()) or "(no text)"
            items = text_items(row.item, shown, capabilities)
        return TurnEnd(outcome=result.outcome, outgoing=items, replace_live=not apart, error=result.error)

    def _comes_late(self, row: OutboxRow, capabilities: Capabilities) -> bool:
        """Whether the answer is worth a message of its own; where nothing can be removed it never is."""
        if not capabilities.removals or row.item.external_id is None or row.shown_at is None:
            return False
        return self._clock.now() - row.shown_at > LATE_FINAL


def final_text(result: TurnResult) -> str:
    """Return what a person reads at the end of a turn: its text and what the outcome adds."""
    if result.outcome is TurnOutcome.SILENT:
        return ""
    return "\n\n".join(text for text in (result.text.strip(), OUTCOMES[result.outcome].notice) if text)
