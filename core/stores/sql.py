"""All stores of one database, put together."""

from __future__ import annotations

from dataclasses import dataclass

from core.contracts.clock import Clock
from core.stores.attachments import SqlAttachments
from core.stores.connection import Database
from core.stores.delivery import SqlDelivery
from core.stores.doorbells import Doorbells, Submit
from core.stores.ledger import SqlLedger
from core.stores.people import SqlPeople
from core.stores.sessions import SqlSessions
from core.stores.transcripts import SqlTranscripts


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The stores of one database; closing the database ends them all."""

    database: Database
    transcripts: SqlTranscripts
    ledger: SqlLedger
    delivery: SqlDelivery
    people: SqlPeople
    attachments: SqlAttachments
    sessions: SqlSessions


def sql_stores(database: Database, *, submit: Submit, clock: Clock) -> Stores:
    """Return the stores of an open database, ringing through `submit` (an engine's)."""
    doorbells = Doorbells(submit, clock)
    return Stores(
        database=database,
        transcripts=SqlTranscripts(database, clock),
        ledger=SqlLedger(database, doorbells, clock),
        delivery=SqlDelivery(database, doorbells, clock),
        people=SqlPeople(database, clock),
        attachments=SqlAttachments(database),
        sessions=SqlSessions(database, clock),
    )
