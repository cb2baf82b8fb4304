"""Column types that bring back what was put in, on every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

from core.stores.text import clean

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    """Return microseconds since 1970; a naive instant is a TypeError."""
    return (instant - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the aware UTC instant."""
    return EPOCH + micros * _MICROSECOND


class Instant(TypeDecorator[datetime]):
    """An aware instant as microseconds since 1970: SQLite would lose the zone."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        del dialect
        return None if value is None else to_micros(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        del dialect
        return None if value is None else from_micros(value)


class CleanText(TypeDecorator[str]):
    """Text from outside, cleaned on its way in and, for rows of old, on its way out."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        del dialect
        return None if value is None else clean(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        del dialect
        return None if value is None else clean(value)
