"""Plain JSON of domain values, one object a line, for the host's socket and `stream-json`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from channels.feed import FeedEvent, Noticed, Previewed, Removed, Said, Shown, StatusSet

NDJSON = "application/x-ndjson"
"""The media type of one object a line."""


def plain(value: Any) -> Any:
    """Return a domain value as JSON values: dataclasses as objects, instants as ISO texts."""
    return json.loads(json.dumps(value, default=_as_json))


def _as_json(value: Any) -> Any:
    """Return what `json` does not know, one level deep."""
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Path():
            return str(value)
        case Mapping():
            return dict(value)
        case set() | frozenset():
            return sorted(value)
        case _ if dataclasses.is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        case _:
            msg = f"no JSON form for {type(value).__name__}"
            raise TypeError(msg)


def feed_json(event: FeedEvent) -> dict[str, Any]:
    """Return a feed event as an object with its `type`."""
    match event:
        case Said():
            name = "said"
        case Shown():
            name = "shown"
        case Removed():
            name = "removed"
        case Previewed():
            name = "preview"
        case StatusSet():
            name = "status"
        case Noticed():
            name = "notice"
    return {"type": name, **plain(event)}


def line(value: Mapping[str, Any]) -> bytes:
    """Return one JSON object as a line.

    ASCII only: readers that split at every line end of Unicode find one line, and a lone surrogate
    breaks no encoder.
    """
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"
