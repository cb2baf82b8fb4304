"""What the direct client needs to know of a provider form; each form is pure and does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from core.contracts.agents import ModelSettings
from core.contracts.models import ModelFacts, ModelRequest
from core.models.fragments import Fragment

DEFAULT_IDLE = timedelta(minutes=3)
"""Models that reason hard say nothing for minutes before their first word."""


class StreamFailure(Exception):
    """The provider reported an error inside a stream that had begun."""

    def __init__(self, text: str, status: int | None) -> None:
        self.text = text
        self.status = status
        super().__init__(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """One HTTP request."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class StreamReader(Protocol):
    """Reads the events of one answer in order."""

    def read(self, data: Mapping[str, Any]) -> Iterable[Fragment]:
        """Return what one event says.

        Raises:
            StreamFailure: The event is an error.
        """
        ...


class WireForm(Protocol):
    """One provider form."""

    def request(
        self, request: ModelRequest, *, facts: ModelFacts, images: Mapping[str, str], key: str | None
    ) -> WireRequest:
        """Return the HTTP request of a model request; equal inputs give equal ones."""
        ...

    def is_end(self, data: str) -> bool:
        """Return whether an event's data says that nothing more will come."""
        ...

    def reader(self) -> StreamReader:
        """Return a reader for one answer."""
        ...


def endpoint(settings: ModelSettings, *, default_base: str, path: str) -> str:
    """Return the address below `api_base`; a base that names the whole path is taken as it is."""
    base = (settings.api_base or default_base).rstrip("/")
    if base.endswith(path):
        return base
    version, slash, rest = path.lstrip("/").partition("/")
    if slash and base.endswith(f"/{version}"):
        return f"{base}/{rest}"
    return f"{base}{path}"
