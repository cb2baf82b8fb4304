"""Ringing the engine's doorbells from inside the transaction that gives it something to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from core.contracts.addresses import Address
from core.contracts.clock import Clock
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE
from core.contracts.engine import Transaction, WorkItem
from core.contracts.ids import ConversationId, new_id

Submit: TypeAlias = Callable[[Transaction, WorkItem], None]
"""`Engine.submit`."""


class Doorbells:
    """Rings by what happened.

    Each ring has a new id: an engine forgets handled items a little later than it handles them,
    so a ring that shared an id with a handled one could be forgotten together with it. Ringing
    twice costs one look at the rows.
    """

    def __init__(self, submit: Submit, clock: Clock) -> None:
        self._submit = submit
        self._clock = clock

    def ring_address(self, tx: Transaction, address: Address) -> None:
        """Have the router look at the new events of an address."""
        self._ring(tx, INBOX_QUEUE, address.key, None)

    def ring_conversation(self, tx: Transaction, conversation_id: ConversationId, at: datetime | None = None) -> None:
        """Have a worker look at a conversation, now or at `at`."""
        self._ring(tx, CONVERSATION_QUEUE, conversation_id, at)

    def ring_chat(self, tx: Transaction, key: str, at: datetime | None = None) -> None:
        """Have the deliverer of a chat (see `chat_key`) look at its outbox rows, now or at `at`."""
        self._ring(tx, OUTBOX_QUEUE, key, at)

    def _ring(self, tx: Transaction, queue: str, key: str, at: datetime | None) -> None:
        due_at = self._clock.now() if at is None else at
        self._submit(tx, WorkItem(id=new_id("ring"), queue=queue, key=key, due_at=due_at))
