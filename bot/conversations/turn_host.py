"""What the turn loop asks of the application: subjects, cards, folders, doubts and approvals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.conversations.access import AccessDesk
from bot.conversations.cards import approval_card
from core.contracts.addresses import OutboundItem
from core.contracts.agents import Agent, Conversation
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

    def __init__(self, *, access: AccessDesk, zone: ZoneInfo, overflow_root: Path, forbidden: tuple[Path, ...]) -> None:
        self._access = access
        self._zone = zone
        self._overflow_root = overflow_root
        self._forbidden = forbidden

    async def subject(self, turn: Turn, agent: Agent, conversation: Conversation) -> Subject:
        return Subject(
            agent_id=agent.id,
            conversation_id=conversation.id,
            mode=conversation.permission_mode or agent.permission_mode,
            workspace=Path(agent.workspace),
            channel=turn.origin.channel if turn.origin is not None else "",
            requester=turn.requester,
            role=await self._access.role_of(turn.requester),
            forbidden=self._forbidden,
            granted=(self.overflow(conversation),),
        )

    def approval_card(self, turn: Turn, approvals: Sequence[Approval]) -> OutboundItem | None:
        if turn.origin is None:
            return None
        return OutboundItem(
            id=f"{turn.id}/ask/{approvals[0].id}",
            address=turn.origin,
            content=approval_card(approvals, self._zone),
        )

    def overflow(self, conversation: Conversation) -> Path:
        return self._overflow_root / conversation.id


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
