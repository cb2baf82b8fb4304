"""What the turn loop asks of the application: subjects, cards, folders, doubts and approvals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.conversations.access import AccessDesk
from bot.conversations.cards import approval_card
from bot.conversations.outbox import notice, text_items
from channels.chunking import fitting, measure
from channels.contract import Capabilities, Channel
from core.contracts.addresses import Address, CardContent, OutboundItem
from core.contracts.agents import Agent, Conversation
from core.contracts.delivery import DeliveryStore, OutboxState
from core.contracts.errors import MemoryConflict, MemoryRefused, NotFound
from core.contracts.ledger import TurnLedger
from core.contracts.memory import MemoryStore
from core.contracts.messages import ToolCall
from core.contracts.permissions import Approval, ApprovalState, Subject
from core.contracts.runs import Turn
from core.contracts.tools import ToolContext
from core.tools.memory import commit_origin, memory_changes
from core.turns.services import TurnHost


class ChatTurnHost:
    """The host side of turns that come from chats."""

    def __init__(
        self,
        *,
        access: AccessDesk,
        delivery: DeliveryStore,
        channels: Mapping[str, Channel],
        zone: ZoneInfo,
        overflow_root: Path,
        attachments_root: Path,
        forbidden: tuple[Path, ...],
        mask: Callable[[str], str],
    ) -> None:
        self._access = access
        self._delivery = delivery
        self._channels = channels
        self._mask = mask
        self._zone = zone
        self._overflow_root = overflow_root
        self._attachments_root = attachments_root
        self._forbidden = forbidden

    async def subject(self, turn: Turn, agent: Agent, conversation: Conversation) -> Subject:
        return Subject(
            agent_id=agent.id,
            conversation_id=conversation.id,
            mode=conversation.permission_mode or agent.permission_mode,
            workspace=Path(agent.workspace),
            channel=turn.origin.channel if turn.origin is not None else "",
            requester=turn.requester,
            role=await self._access.role_of(turn.requester, at=turn.origin),
            forbidden=self._forbidden,
            granted=self._granted(conversation),
        )

    def _granted(self, conversation: Conversation) -> tuple[Path, ...]:
        """Return the conversation's own folders among those that are the host's."""
        return (self.overflow(conversation), self._attachments_root / conversation.id)

    async def approval_card(self, turn: Turn, approvals: Sequence[Approval], *, said: str) -> OutboundItem | None:
        if turn.origin is None:
            return None
        # Named by the call, which a crash leaves as it is: what was posted already is not posted again.
        mark = approvals[0].call_id
        if said:
            await self._post_so_far(turn, turn.origin, said, mark)
        card = OutboundItem(
            id=f"{turn.id}/ask/{mark}",
            address=turn.origin,
            content=approval_card(approvals, self._zone),
        )
        await self._delivery.post(
            whole_code(card, self._channels[turn.origin.channel].capabilities, self._mask), turn_id=turn.id
        )
        return card

    async def _post_so_far(self, turn: Turn, origin: Address, said: str, mark: str) -> None:
        """Post what the turn has said: in place of its preview, or as a message of its own."""
        text, capabilities = self._mask(said), self._channels[origin.channel].capabilities
        row = await self._delivery.outbox_row(turn.outbox_id) if turn.outbox_id is not None else None
        if row is not None and row.state is OutboxState.LIVE:
            await self._delivery.split(row.item.id, text_items(row.item, text, capabilities))
        else:
            first = notice(f"{turn.id}/said/{mark}", origin, text)
            await self._delivery.post(text_items(first, text, capabilities), turn_id=turn.id)

    def overflow(self, conversation: Conversation) -> Path:
        return self._overflow_root / conversation.id


def whole_code(card: OutboundItem, capabilities: Capabilities, mask: Callable[[str], str]) -> tuple[OutboundItem, ...]:
    """Return what a card must show and cannot, as messages to stand above it: nobody approves unseen text."""
    code = mask(card.content.code) if isinstance(card.content, CardContent) else ""
    limit, unit = capabilities.code_limit, capabilities.text_unit
    if measure(code, unit) <= limit:
        return ()
    pieces = []
    start = 0
    while start < len(code):
        # A character that is wider than a piece goes all the same.
        end = max(fitting(code, start, limit, unit), start + 1)
        pieces.append(code[start:end])
        start = end
    return tuple(
        replace(
            card,
            id=f"{card.id}/all.{number}",
            content=CardContent(text=f"All of what is asked below, part {number} of {len(pieces)}:", code=piece),
        )
        for number, piece in enumerate(pieces, start=1)
    )


class MemoryDoubts:
    """Dry-runs memory writes, so that what admission would ask joins the same card."""

    def __init__(self, memory: MemoryStore, ledger: TurnLedger) -> None:
        self._memory = memory
        self._ledger = ledger

    async def question(self, call: ToolCall, context: ToolContext) -> str | None:
        """Return what a person must answer before this call; a refusal is the tool's to tell."""
        if call.name != "memory_write":
            return None
        changes = memory_changes(json.loads(call.arguments))
        try:
            return await self._memory.check(context.memory_id, changes, origin=commit_origin(context, approved=False))
        except (MemoryRefused, MemoryConflict, NotFound):
            return None

    async def was_approved(self, context: ToolContext) -> bool:
        """Return whether an authorised person approved the call of this context."""
        approvals = await self._ledger.approvals_of(context.turn_id)
        return any(a.call_id == context.call_id and a.state is ApprovalState.APPROVED for a in approvals)


if TYPE_CHECKING:
    _conforms: type[TurnHost] = ChatTurnHost
