"""What a turn tells whoever shows it: a chat, a console, a command line, a parent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from core.contracts.events import RunEvent
from core.contracts.messages import ToolCall, ToolReturn
from core.contracts.permissions import Approval
from core.contracts.runs import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool call was marked started and begins now."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """A tool call's result is stored."""

    result: ToolReturn


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsOpened:
    """People are asked about these calls; the turn may be parked soon."""

    approvals: tuple[Approval, ...]


TurnEvent: TypeAlias = RunEvent | CallStarted | CallFinished | ApprovalsOpened


class TurnObserver(Protocol):
    """Hears a turn's events in order. Slow observers slow the turn: they hand over and return."""

    async def observe(self, turn: Turn, event: TurnEvent) -> None:
        """Take note of one event. May raise `StoreError`, where it is recorded: the worker tries again later."""
        ...
