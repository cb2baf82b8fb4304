"""Bytes in and out of a fake Slack: what answers `files.slack.com`, and how it goes wrong."""

from __future__ import annotations

from aiohttp import web

from core.contracts.clock import Clock
from tests.platforms.slack_faults import Fault, Planned
from tests.platforms.slack_files import Files, StoredFile
from tests.platforms.slack_refusals import Refusal

SIGN_IN_PAGE = b"<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body></body></html>"
CHUNK = b"\0" * 65_536


class Downloads:
    """Serves files to whoever has the token; `bytes_sent` counts what went out."""

    def __init__(self, clock: Clock, files: Files) -> None:
        self.bytes_sent = 0
        self._clock = clock
        self._files = files

    async def upload(self, request: web.Request, planned: Planned | None) -> web.StreamResponse:
        """Answer the second step of an upload."""
        data = await _body(request)
        if planned is not None:
            await planned.delay(self._clock)
        if planned is not None and planned.answer is not None and not planned.drops:
            return web.Response(status=planned.status)
        if planned is None or planned.fault is not Fault.LOST_REQUEST:
            try:
                self._files.take(request.match_info["file"], data)
            except Refusal as refusal:
                return web.Response(text=refusal.error, status=refusal.status)
        if planned is not None and planned.drops:
            _abort(request)
        return web.Response(text=f"OK - {len(data)}")

    async def download(self, request: web.Request, planned: Planned | None, *, allowed: bool) -> web.StreamResponse:
        """Answer the request for a file's bytes; who may not have them is shown where to sign in."""
        if not allowed:
            return web.Response(body=SIGN_IN_PAGE, content_type="text/html")
        file = self._files.by_id.get(request.match_info["file"])
        if file is None:
            return web.Response(status=404, body=SIGN_IN_PAGE, content_type="text/html")
        if planned is not None:
            return await self._spoiled(request, file, planned)
        self.bytes_sent += len(file.data)
        return web.Response(body=file.data, content_type=file.media_type)

    async def _spoiled(self, request: web.Request, file: StoredFile, planned: Planned) -> web.StreamResponse:
        match planned.fault:
            case Fault.ENDLESS:
                return await self._endless(request)
            case Fault.SLOW | Fault.CUT_SHORT:
                return await self._halved(request, file.data, planned)
            case _:
                await planned.delay(self._clock)
        if planned.drops:
            _abort(request)
        return _instead(planned)

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
            _abort(request)
            return response
        planned.entered.set()
        await self._clock.sleep(planned.duration)
        await response.write(data[middle:])
        self.bytes_sent += len(data) - middle
        return response


async def _body(request: web.Request) -> bytes:
    """Return the uploaded bytes: the body itself, or the first file of a form."""
    if not request.content_type.startswith("multipart/"):
        return await request.read()
    for part in (await request.post()).values():
        if isinstance(part, web.FileField):
            with part.file as file:
                return file.read()
    return b""


def _abort(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


def _instead(planned: Planned) -> web.Response:
    """Return what is answered where there is no file."""
    match planned.fault:
        case Fault.REDIRECTED:
            return web.Response(status=302, headers={"Location": planned.location})
        case Fault.SIGN_IN_PAGE:
            return web.Response(body=SIGN_IN_PAGE, content_type="text/html")
        case Fault.SIGN_IN_BYTES:
            return web.Response(body=SIGN_IN_PAGE, content_type="application/octet-stream")
        case Fault.FLOODED:
            return web.Response(status=429, headers={"Retry-After": f"{planned.seconds:g}"})
        case _:
            return web.Response(status=404 if planned.fault is Fault.NOT_FOUND else planned.status)
