"""The files of a fake Telegram: what bots upload, what people sent, and how a download can go wrong."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from core.contracts.clock import Clock
from tests.platforms.telegram_faults import Fault, Planned
from tests.platforms.telegram_refusals import Refusal, bad_request

UPLOAD_LIMIT_BYTES = 50_000_000
PHOTO_LIMIT_BYTES = 10_000_000
DOWNLOAD_LIMIT_BYTES = 20_000_000
PHOTO_SIDES_LIMIT = 10_000
PHOTO_RATIO_LIMIT = 20
CHUNK = b"\x00" * 65_536
SIGN_IN_PAGE = b"\n<!DOCTYPE html><html><title>Sign in</title></html>"

_PNG = b"\x89PNG\r\n\x1a\n"
_IMAGE_MARKS = (_PNG, b"\xff\xd8\xff", b"RIFF")
_FIELDS = {"sendPhoto": "photo", "sendVoice": "voice", "sendDocument": "document"}


@dataclass
class Upload:
    """One part of a multipart request that is a file."""

    name: str
    media_type: str
    data: bytes

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes of {self.name}>"


@dataclass
class StoredFile:
    """A file on the server; `size` is what is told of it."""

    id: str
    path: str
    name: str
    media_type: str
    data: bytes
    size: int
    kind: str = "document"

    def as_json(self) -> dict[str, Any]:
        shown = {"file_id": self.id, "file_unique_id": f"u{self.id}", "file_size": self.size}
        match self.kind:
            case "photo":
                return {"photo": [shown | {"width": 90, "height": 90}]}
            case "voice":
                return {"voice": shown | {"duration": 1, "mime_type": self.media_type}}
            case _:
                return {"document": shown | {"file_name": self.name, "mime_type": self.media_type}}


class Files:
    """All files by id; `bytes_sent` counts what downloads got, also of files that never end."""

    def __init__(self, clock: Clock) -> None:
        self.by_id: dict[str, StoredFile] = {}
        self.bytes_sent = 0
        self._clock = clock
        self._numbers = itertools.count(1)

    def keep(
        self,
        data: bytes,
        *,
        name: str = "file.bin",
        media_type: str = "application/octet-stream",
        size: int | None = None,
        path: str = "",
        kind: str = "document",
    ) -> StoredFile:
        """Store a file; `size` and `path` are what getFile says where they shall not be the truth."""
        number = next(self._numbers)
        file = StoredFile(
            id=f"file-{number}",
            path=path or f"documents/file_{number}",
            name=name,
            media_type=media_type,
            data=data,
            size=len(data) if size is None else size,
            kind=kind,
        )
        self.by_id[file.id] = file
        return file

    def upload(self, method: str, params: dict[str, Any]) -> StoredFile:
        """Take the file of sendPhoto, sendVoice or sendDocument."""
        field = _FIELDS[method]
        upload = params.get(field)
        if not isinstance(upload, Upload):
            raise bad_request(f"there is no {field} in the request")
        if len(upload.data) > UPLOAD_LIMIT_BYTES:
            raise Refusal(413, "Request Entity Too Large")
        if not upload.data:
            raise bad_request("file must be non-empty")
        if field == "photo":
            _check_photo(upload.data)
        if field == "voice" and not upload.data.startswith(b"OggS"):
            raise bad_request("VOICE_INVALID")
        return self.keep(upload.data, name=upload.name, media_type=upload.media_type, kind=field)

    def describe(self, params: dict[str, Any]) -> dict[str, Any]:
        """Carry out getFile."""
        file = self.by_id.get(str(params.get("file_id")))
        if file is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        if file.size > DOWNLOAD_LIMIT_BYTES:
            raise bad_request("file is too big")
        return {"file_id": file.id, "file_unique_id": f"u{file.id}", "file_size": file.size, "file_path": file.path}

    async def download(self, request: web.Request, path: str, planned: Planned | None) -> web.StreamResponse:
        """Answer the request for a file's bytes."""
        file = next((file for file in self.by_id.values() if file.path == path), None)
        if file is None:
            raise web.HTTPNotFound
        if planned is not None:
            return await self._spoiled(request, file.data, planned)
        self.bytes_sent += len(file.data)
        return web.Response(body=file.data, content_type="application/octet-stream")

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


def _check_photo(data: bytes) -> None:
    if len(data) > PHOTO_LIMIT_BYTES:
        raise bad_request("file is too big for a photo")
    if not data.startswith(_IMAGE_MARKS):
        raise bad_request("IMAGE_PROCESS_FAILED")
    if data.startswith(_PNG):
        width, height = (int.from_bytes(data[start : start + 4], "big") for start in (16, 20))
        if width + height > PHOTO_SIDES_LIMIT or max(width, height) > PHOTO_RATIO_LIMIT * min(width, height):
            raise bad_request("PHOTO_INVALID_DIMENSIONS")
