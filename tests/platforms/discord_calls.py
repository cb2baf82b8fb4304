"""One request to a fake Discord, as it arrived."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.platforms.discord_files import REQUEST_LIMIT_BYTES, Upload
from tests.platforms.discord_refusals import invalid_json, too_large


@dataclass
class Call:
    """A request; `status` is 0 until it is answered, and if it never was.

    `route` is its name in `discord_routes`, `ids` are the parts of its path.
    """

    route: str
    ids: dict[str, str]
    query: dict[str, str]
    at: float
    body: Any = field(default_factory=dict)
    files: list[Upload] = field(default_factory=list)
    status: int = 0

    @property
    def channel_id(self) -> int | None:
        channel_id = self.ids.get("channel_id")
        return None if channel_id is None else int(channel_id)

    def number(self, name: str) -> int:
        """Return an id of the path as the number it is."""
        return int(self.ids[name])


async def read_body(request: web.Request, call: Call) -> None:
    """Read JSON, or a form with `payload_json` and files, into the call.

    Raises:
        Refusal: 40005, it is too large; 50109, it is no JSON.
    """
    if (request.content_length or 0) > REQUEST_LIMIT_BYTES:
        async for _ in request.content.iter_any():  # a client that still writes would not read the answer
            pass
        raise too_large()
    if request.content_type != "multipart/form-data":
        raw: Any = await request.read()
    else:
        form = await request.post()
        raw = form.get("payload_json", b"")
        call.files = [_upload(part) for part in form.values() if isinstance(part, web.FileField)]
    try:
        call.body = json.loads(raw) if raw else {}
    except ValueError:
        raise invalid_json() from None


def _upload(part: web.FileField) -> Upload:
    with part.file as file:  # a request that is never answered would leave it open
        return Upload(name=part.filename, media_type=part.content_type, data=file.read())
