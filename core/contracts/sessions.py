"""What a two-way session told its client, line by line, so that a client can come back to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.contracts.ids import ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """One object told to a client: JSON text without secrets. `seq` starts at 1 and has no gaps."""

    seq: int
    text: str


class SessionLog(Protocol):
    """Lines by conversation. One transaction each; see `core.contracts.store`."""

    async def append_lines(self, conversation_id: ConversationId, texts: Sequence[str]) -> tuple[SessionLine, ...]:
        """Store texts as the conversation's next lines and return them with their numbers."""
        ...

    async def lines_after(
        self, conversation_id: ConversationId, after: int, *, limit: int = 500
    ) -> tuple[SessionLine, ...]:
        """Return lines with `seq > after`, in order."""
        ...
