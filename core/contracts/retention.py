"""How long what is no longer needed is kept, and what a store does about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """For how long each kind is kept.

    `events` of finished runs, `inbox` rows that were handled, lines of two-way `sessions`, and the
    files of messages (`attachments`) and of long outputs (`overflow`).
    """

    events: timedelta
    inbox: timedelta
    sessions: timedelta
    attachments: timedelta
    overflow: timedelta


class RetentionStore(Protocol):
    """Deletes rows by age.

    Each call goes through all rows that are old enough, a bounded number in each transaction, so
    that no turn waits long. Cancelling a caller leaves a part of them deleted; calling again goes
    on. Every operation may raise `StorageFull` or `StoreUnavailable`, see `core.contracts.store`.
    """

    async def prune_events(self, before: datetime) -> int:
        """Leave of runs that finished earlier their stored messages and their end; return how many events went.

        What is left keeps its `seq`. The runs of an open turn stay whole.
        """
        ...

    async def prune_inbox(self, before: datetime) -> int:
        """Delete events that arrived earlier and were handled or withdrawn; return how many.

        What waits or is being answered stays, whatever its age, and so does everything of the last
        two days: until then platforms send again what they do not know to have arrived.
        """
        ...

    async def prune_sessions(self, before: datetime) -> int:
        """Delete lines that were told earlier, but for the last of each conversation; return how many.

        The last one stays because the next line's number follows from it.
        """
        ...
