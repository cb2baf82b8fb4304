"""What Slack answers, read with care: anything may be missing or of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The body of an answer that says yes, and its headers."""

    body: Json
    headers: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a text of the body; empty where it is none."""
        value = self.body.get(name)
        return value if isinstance(value, str) else ""

    def item(self, name: str) -> Json:
        """Return an object of the body; empty where it is none."""
        value = self.body.get(name)
        return value if isinstance(value, dict) else {}

    def items(self, name: str) -> tuple[Json, ...]:
        """Return the objects of a list of the body."""
        value = self.body.get(name)
        return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list of the body."""
        value = self.body.get(name)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    @property
    def next_cursor(self) -> str:
        """What asks for the next page; empty on the last one."""
        cursor = self.item("response_metadata").get("next_cursor")
        return cursor if isinstance(cursor, str) else ""

    @property
    def scopes(self) -> frozenset[str]:
        """What the app was given."""
        return frozenset(filter(None, (scope.strip() for scope in self._header("x-oauth-scopes").split(","))))

    @property
    def sent_at(self) -> datetime | None:
        """The time on Slack's clock, in whole seconds; None where it does not tell."""
        try:
            return parsedate_to_datetime(self._header("date"))
        except ValueError:
            return None

    def _header(self, wanted: str) -> str:
        return next((value for name, value in self.headers.items() if name.lower() == wanted), "")


def is_after(ts: str, other: str) -> bool:
    """Return whether a message with that ts came after another; anything comes after an empty one."""
    return not other or _instant(ts) > _instant(other)


def _instant(ts: str) -> tuple[int, int]:
    """Return a ts as numbers that compare; (0, 0) for what is none."""
    seconds, _, rest = ts.partition(".")
    if not (seconds.isdecimal() and (rest or "0").isdecimal()):
        return 0, 0
    return int(seconds), int(rest.ljust(6, "0"))
