"""Claims on conversations: who may write, and what becomes of what an older claim left behind."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, func, insert, select, update

from core.contracts.errors import NotFound, StaleClaim
from core.contracts.events import RunFinished
from core.contracts.ids import ConversationId
from core.contracts.runs import Claim, RunStatus, StopReason
from core.stores.codec import event_to_json
from core.stores.tables.agents import CONVERSATIONS
from core.stores.tables.transcripts import RUN_EVENTS, RUN_IS_ACTIVE, RUNS
from core.stores.text import dump

INTERRUPTED: Final = "interrupted"

# Statements of the hot path are built once: building one costs twice as much as running it.
_EPOCH = select(CONVERSATIONS.c.epoch).where(CONVERSATIONS.c.id == bindparam("of_conversation"))
_RAISE_EPOCH = (
    update(CONVERSATIONS)
    .where(CONVERSATIONS.c.id == bindparam("of_conversation"))
    .values(epoch=CONVERSATIONS.c.epoch + 1)
    .returning(CONVERSATIONS.c.epoch)
)
_FINISH_ACTIVE = (
    update(RUNS).where(RUNS.c.conversation_id == bindparam("of_conversation"), RUN_IS_ACTIVE).returning(RUNS.c.id)
)


def raise_epoch(connection: Connection, conversation_id: ConversationId, now: datetime) -> Claim:
    """Make every older claim stale, finish the runs that those left active, return the new claim.

    Raises:
        NotFound: No such conversation.
    """
    epoch = connection.execute(_RAISE_EPOCH, {"of_conversation": conversation_id}).scalar_one_or_none()
    if epoch is None:
        raise NotFound("conversation", conversation_id)
    _finish_interrupted(connection, conversation_id, now)
    return Claim(conversation_id=conversation_id, epoch=epoch)


def verify(connection: Connection, claim: Claim) -> None:
    """Check inside a writing transaction that a claim is the newest.

    Raises:
        StaleClaim: A newer one exists.
        NotFound: No such conversation.
    """
    epoch = connection.execute(_EPOCH, {"of_conversation": claim.conversation_id}).scalar_one_or_none()
    if epoch is None:
        raise NotFound("conversation", claim.conversation_id)
    if epoch != claim.epoch:
        raise StaleClaim(claim.conversation_id, claim.epoch)


def _finish_interrupted(connection: Connection, conversation_id: ConversationId, now: datetime) -> None:
    finished = {
        "of_conversation": conversation_id,
        "status": RunStatus.FINISHED.value,
        "finished_at": now,
        "stop_reason": StopReason.ERROR.value,
        "error": INTERRUPTED,
    }
    body = dump(event_to_json(RunFinished(stop_reason=StopReason.ERROR, error=INTERRUPTED)))
    for run_id in connection.execute(_FINISH_ACTIVE, finished).scalars().all():
        last = select(func.coalesce(func.max(RUN_EVENTS.c.seq), 0)).where(RUN_EVENTS.c.run_id == run_id)
        seq = connection.execute(last).scalar_one() + 1
        connection.execute(insert(RUN_EVENTS).values(run_id=run_id, seq=seq, body=body, message_id=None, stored_at=now))
