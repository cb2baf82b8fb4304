"""People, pairings and the audit trail in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from core.contracts.clock import Clock
from core.contracts.errors import NotFound
from core.contracts.ids import PersonId, new_id
from core.contracts.people import AuditEntry, Pairing, PairingState, PeopleStore, Person, Place
from core.stores.connection import Database, SqlTransaction
from core.stores.records import audit_from, pairing_from, place_from
from core.stores.tables.people import AUDIT, IDENTITIES, PAIRING_IS_OPEN, PAIRINGS, PEOPLE, PLACES
from core.stores.text import dump

_PERSON = select(PEOPLE).where(PEOPLE.c.id == bindparam("of_person"))
_IDENTITIES_OF = (
    select(IDENTITIES.c.identity)
    .where(IDENTITIES.c.person_id == bindparam("of_person"))
    .order_by(IDENTITIES.c.linked_at, IDENTITIES.c.identity)
)
_PERSON_ID_OF = select(IDENTITIES.c.person_id).where(IDENTITIES.c.identity == bindparam("of_identity"))
_PLACE = select(PLACES).where(PLACES.c.key == bindparam("of_place"))
_ACCEPTED = (
    select(PAIRINGS.c.code)
    .where(PAIRINGS.c.identity == bindparam("of_identity"), PAIRINGS.c.state == PairingState.ACCEPTED.value)
    .limit(1)
)


class SqlPeople:
    """The people store; every method is one transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ensure_person(self, identity: str, name: str) -> Person:
        known = await self.person_of(identity)  # nearly always: no write for everybody's every message
        if known is not None:
            return known
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> Person:
            person = _person_of(tx.connection, identity)
            if person is not None:
                return person
            person_id = new_id("person")
            tx.connection.execute(insert(PEOPLE).values(id=person_id, name=name, created_at=now))
            tx.connection.execute(insert(IDENTITIES).values(identity=identity, person_id=person_id, linked_at=now))
            return _person(tx.connection, person_id)

        return await self._database.write(operation)

    async def person(self, person_id: PersonId) -> Person:
        return await self._database.read(lambda connection: _person(connection, person_id))

    async def person_of(self, identity: str) -> Person | None:
        return await self._database.read(lambda connection: _person_of(connection, identity))

    async def link(self, identity: str, person_id: PersonId) -> None:
        values = {"person_id": person_id, "linked_at": self._clock.now()}
        statement = upsert(IDENTITIES).values(identity=identity, **values)
        linking = statement.on_conflict_do_update(index_elements=["identity"], set_=values)

        def operation(tx: SqlTransaction) -> None:
            _person(tx.connection, person_id)
            tx.connection.execute(linking)

        await self._database.write(operation)

    async def is_admitted(self, identity: str) -> bool:
        def operation(connection: Connection) -> bool:
            return connection.execute(_ACCEPTED, {"of_identity": identity}).one_or_none() is not None

        return await self._database.read(operation)

    async def open_pairing(self, identity: str, name: str, *, code: str, expires_at: datetime) -> Pairing:
        now = self._clock.now()

        def operation(tx: SqlTransaction) -> Pairing:
            _expire_pairings(tx.connection, now)
            row = {"code": code, "identity": identity, "name": name, "state": PairingState.OPEN.value}
            statement = upsert(PAIRINGS).values(**row, created_at=now, expires_at=expires_at)
            still_open = (PAIRINGS.c.identity == identity) & PAIRING_IS_OPEN
            found = tx.connection.execute(select(PAIRINGS).where(still_open)).one_or_none()
            if found is None:
                found = tx.connection.execute(statement.returning(*PAIRINGS.c)).one()
            return pairing_from(found)

        return await self._database.write(operation)

    async def pairings(self) -> tuple[Pairing, ...]:
        statement = (
            select(PAIRINGS)
            .where(PAIRING_IS_OPEN, PAIRINGS.c.expires_at > self._clock.now())
            .order_by(PAIRINGS.c.created_at, PAIRINGS.c.code)
        )

        def operation(connection: Connection) -> tuple[Pairing, ...]:
            return tuple(pairing_from(row) for row in connection.execute(statement))

        return await self._database.read(operation)

    async def accept_pairing(self, code: str, *, now: datetime) -> Pairing | None:
        statement = (
            update(PAIRINGS)
            .where(PAIRINGS.c.code == code, PAIRING_IS_OPEN, PAIRINGS.c.expires_at > now)
            .values(state=PairingState.ACCEPTED.value)
            .returning(*PAIRINGS.c)
        )

        def operation(tx: SqlTransaction) -> Pairing | None:
            row = tx.connection.execute(statement).one_or_none()
            return None if row is None else pairing_from(row)

        return await self._database.write(operation)

    async def place(self, key: str) -> Place | None:
        def operation(connection: Connection) -> Place | None:
            row = connection.execute(_PLACE, {"of_place": key}).one_or_none()
            return None if row is None else place_from(row)

        return await self._database.read(operation)

    async def set_place(self, place: Place) -> None:
        values = {"state": place.state.value, "by": place.by, "at": place.at}
        statement = upsert(PLACES).values(key=place.key, **values)
        replacing = statement.on_conflict_do_update(index_elements=["key"], set_=values)
        await self._database.write(lambda tx: tx.connection.execute(replacing))

    async def record(self, entry: AuditEntry) -> None:
        values = {"at": entry.at, "who": entry.who, "what": entry.what, "detail": dump(dict(entry.detail))}
        await self._database.write(lambda tx: tx.connection.execute(insert(AUDIT).values(values)))

    async def audit(self, *, limit: int = 100) -> tuple[AuditEntry, ...]:
        statement = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit)

        def operation(connection: Connection) -> tuple[AuditEntry, ...]:
            return tuple(audit_from(row) for row in connection.execute(statement))

        return await self._database.read(operation)


def _person(connection: Connection, person_id: str) -> Person:
    key = {"of_person": person_id}
    row = connection.execute(_PERSON, key).one_or_none()
    if row is None:
        raise NotFound("person", person_id)
    identities = connection.execute(_IDENTITIES_OF, key).scalars()
    return Person(id=PersonId(row.id), name=row.name, identities=tuple(identities))


def _person_of(connection: Connection, identity: str) -> Person | None:
    person_id = connection.execute(_PERSON_ID_OF, {"of_identity": identity}).scalar_one_or_none()
    return None if person_id is None else _person(connection, person_id)


def _expire_pairings(connection: Connection, now: datetime) -> None:
    past = PAIRING_IS_OPEN & (PAIRINGS.c.expires_at <= now)
    connection.execute(update(PAIRINGS).where(past).values(state=PairingState.EXPIRED.value))


if TYPE_CHECKING:
    _conforms: type[PeopleStore] = SqlPeople
