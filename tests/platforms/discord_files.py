"""The files of a fake Discord: what is uploaded, signed links that run out, and how a download can go wrong."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from aiohttp import web

from core.contracts.clock import Clock
from tests.platforms.discord_refusals import bad_length, invalid_form, too_large
from tests.platforms.discord_snowflakes import Snowflakes
from tests.platforms.telegram_faults import Fault, Planned

FILE_LIMIT_BYTES = 10 * 1024 * 1024
REQUEST_LIMIT_BYTES = 25 * 1024 * 1024
FILES_LIMIT = 10
LINK_LIFE = timedelta(hours=24)
CHUNK = b"\x00" * 65_536
SIGN_IN_PAGE = b"\n<!DOCTYPE html><html><title>Sign in</title></html>"

_UNUSUAL = re.compile(r"[^\w.-]+")  # the platform puts an underscore in their place


@dataclass
class Upload:
    """A file on its way; `size` is what is told of it where that shall not be the truth.

    `seconds` is how long a voice message lasts; None: it is none.
    """

    name: str
    data: bytes
    media_type: str = "application/octet-stream"
    size: int | None = None
    seconds: float | None = None

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes of {self.name}>"


@dataclass
class Attachment:
    """A file of a message; `size` is what is told of it."""

    id: int
    channel_id: int
    name: str
    media_type: str
    data: bytes
    size: int
    description: str | None = None
    seconds: float | None = None

    @property
    def path(self) -> str:
        return f"/attachments/{self.channel_id}/{self.id}/{quote(self.name)}"


class Files:
    """All attachments by id; `bytes_sent` counts what downloads got, also of files that never end.

    `origin` is where they are served, known once the server listens.
    """

    def __init__(self, clock: Clock, ids: Snowflakes) -> None:
        self.by_id: dict[int, Attachment] = {}
        self.bytes_sent = 0
        self.origin = ""
        self._clock = clock
        self._ids = ids

    def keep(self, channel_id: int, upload: Upload, description: str | None = None) -> Attachment:
        attachment = Attachment(
            id=self._ids.next(),
            channel_id=channel_id,
            name=_UNUSUAL.sub("_", upload.name),
            media_type=upload.media_type,
            data=upload.data,
            size=len(upload.data) if upload.size is None else upload.size,
            description=description,
            seconds=upload.seconds,
        )
        self.by_id[attachment.id] = attachment
        return attachment

    def take(
        self, channel_id: int, body: dict[str, Any], uploads: list[Upload], before: list[Attachment]
    ) -> list[Attachment]:
        """Return the attachments that a message has after a request.

        Args:
            before: Those it has; without an `attachments` list in the body they all stay.
        """
        if any(len(upload.data) > FILE_LIMIT_BYTES for upload in uploads):
            raise too_large()
        listed = body.get("attachments")
        described = {str(item.get("id")): item for item in listed or []}
        kept = [old for old in before if listed is None or str(old.id) in described]
        unknown = set(described) - {str(old.id) for old in before} - {str(number) for number in range(len(uploads))}
        if unknown:
            raise invalid_form("attachments", "ATTACHMENT_NOT_FOUND", "Attachment data not found")
        if len(kept) + len(uploads) > FILES_LIMIT:
            raise bad_length("attachments", 0, FILES_LIMIT)
        for number, upload in enumerate(uploads):
            item = described.get(str(number), {})
            upload.name = item.get("filename") or upload.name
            kept.append(self.keep(channel_id, upload, item.get("description")))
        return kept

    def as_json(self, attachment: Attachment) -> dict[str, Any]:
        """Return an attachment as messages show it; the link is made anew each time."""
        shown: dict[str, Any] = {
            "id": str(attachment.id),
            "filename": attachment.name,
            "size": attachment.size,
            "url": self.link(attachment),
            "proxy_url": self.link(attachment),
            "content_type": attachment.media_type,
        }
        shown |= {} if attachment.description is None else {"description": attachment.description}
        return shown | ({} if attachment.seconds is None else {"duration_secs": attachment.seconds, "waveform": "AAAA"})

    def link(self, attachment: Attachment) -> str:
        """Return a signed link that works for a day."""
        issued_at = self._clock.now()
        issued, expires = (format(int(at.timestamp()), "x") for at in (issued_at, issued_at + LINK_LIFE))
        mark = _signature(attachment.path, expires, issued)
        return f"{self.origin}{attachment.path}?ex={expires}&is={issued}&hm={mark}&"

    def refresh(self, body: dict[str, Any]) -> dict[str, Any]:
        """Carry out the request for fresh links of old ones."""
        fresh = []
        for url in body.get("attachment_urls") or []:
            attachment = self._at(urlsplit(url).path)
            link = {"refreshed": self.link(attachment)} if attachment is not None else {}
            fresh.append({"original": url} | link)
        return {"refreshed_urls": fresh}

    async def download(self, request: web.Request, planned: Planned | None) -> web.StreamResponse:
        """Answer the request for a file's bytes."""
        attachment = self._at(request.rel_url.raw_path)
        query = parse_qs(request.query_string)
        if attachment is None or not self._is_signed(attachment, query):
            return web.Response(status=404, text="This content is no longer available.")
        if planned is not None:
            return await self._spoiled(request, attachment.data, planned)
        self.bytes_sent += len(attachment.data)
        return web.Response(body=attachment.data, headers={"Content-Type": attachment.media_type})

    def _at(self, path: str) -> Attachment | None:
        return next((attachment for attachment in self.by_id.values() if attachment.path == path), None)

    def _is_signed(self, attachment: Attachment, query: dict[str, list[str]]) -> bool:
        expires, issued, mark = (query.get(name, [""])[0] for name in ("ex", "is", "hm"))
        if mark != _signature(attachment.path, expires, issued):
            return False
        return self._clock.now() < datetime.fromtimestamp(int(expires, 16), UTC)

    async def _spoiled(self, request: web.Request, data: bytes, planned: Planned) -> web.StreamResponse:
        match planned.fault:
            case Fault.REDIRECTED:
                return web.Response(status=302, headers={"Location": planned.location})
            case Fault.SIGN_IN_PAGE:
                return web.Response(body=SIGN_IN_PAGE, content_type="application/octet-stream")
            case Fault.ENDLESS:
                return await self._endless(request)
            case Fault.SLOW | Fault.CUT_SHORT:
                return await self._halved(request, data, planned)
            case _:
                return web.Response(status=404 if planned.fault is Fault.NOT_FOUND else planned.status)

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(CHUNK)
            self.bytes_sent += len(CHUNK)

    async def _halved(self, request: web.Request, data: bytes, planned: Planned) -> web.StreamResponse:
        """Send half of a file, and the rest after a while or never."""
        response = web.StreamResponse(headers={"Content-Length": str(len(data))})
        await response.prepare(request)
        middle = len(data) // 2
        await response.write(data[:middle])
        self.bytes_sent += middle
        if planned.fault is Fault.CUT_SHORT:
            assert request.transport is not None
            request.transport.abort()
            return response
        planned.entered.set()
        await self._clock.sleep(planned.duration)
        await response.write(data[middle:])
        self.bytes_sent += len(data) - middle
        return response


def _signature(path: str, expires: str, issued: str) -> str:
    return hashlib.sha256(f"{path}?{expires}&{issued}".encode()).hexdigest()
