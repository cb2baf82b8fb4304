"""A strict server of OpenAI's transcription endpoint: it refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aiohttp import BodyPartReader, web

from tests.platforms.model_script import Status

_FIELDS = {"file", "model", "language", "prompt", "response_format", "temperature"}
_EXTENSIONS = {"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"}
_MAX_FILE_BYTES = 25 * 1024 * 1024

Step: TypeAlias = "str | Status | asyncio.Event"


@dataclass
class Heard:
    """One request as the server got it."""

    name: str
    media_type: str
    data: bytes
    fields: dict[str, str]


class TranscriptionServer:
    """A server on a free port of the loopback address that writes down what it is told to.

    It plays the script step by step and repeats the last one for ever. A step is the text, another
    answer, or an event that is awaited before the step behind it.
    """

    def __init__(self, script: Sequence[Step] = ("hello",), *, key: str = "") -> None:
        self.script = list(script)
        self.key = key
        self.requests: list[Heard] = []
        self._played = 0
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self):
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/audio/transcriptions", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        heard = await _read(request)
        self.requests.append(heard)
        refusal = self._refusal(request, heard)
        if refusal is not None:
            return refusal
        step = self._next()
        while isinstance(step, asyncio.Event):
            await step.wait()
            step = self._next()
        if isinstance(step, Status):
            return web.Response(
                status=step.status, text=step.body, headers=dict(step.headers), content_type=step.content_type
            )
        if heard.fields.get("response_format", "json") == "text":
            return web.Response(text=step)
        return web.json_response({"text": step})

    def _next(self) -> Step:
        step = self.script[min(self._played, len(self.script) - 1)]
        self._played += 1
        return step

    def _refusal(self, request: web.Request, heard: Heard) -> web.Response | None:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        unknown = sorted(set(heard.fields) - _FIELDS)
        if unknown:
            return _error(400, f"Unrecognized request argument supplied: {unknown[0]}", "invalid_request_error")
        if not heard.fields.get("model"):
            return _error(400, "you must provide a model parameter", "invalid_request_error")
        if len(heard.data) > _MAX_FILE_BYTES:
            return _error(413, f"Maximum content size limit ({_MAX_FILE_BYTES}) exceeded", "server_error")
        if heard.name.rpartition(".")[2] not in _EXTENSIONS:
            return _error(
                400, f"Invalid file format. Supported formats: {sorted(_EXTENSIONS)}", "invalid_request_error"
            )
        return None


async def _read(request: web.Request) -> Heard:
    heard = Heard(name="", media_type="", data=b"", fields={})
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name == "file":
            heard.name, heard.media_type = part.filename or "", part.headers.get("Content-Type", "")
            heard.data = bytes(await part.read())
        else:
            heard.fields[part.name or ""] = await part.text()
    return heard


def _error(status: int, message: str, code: str) -> web.Response:
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
