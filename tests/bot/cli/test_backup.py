"""`lodger backup`: what it asks of the host and what it tells of the end."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from bot.cli.backup import take
from bot.console.server import serve
from bot.control.client import HostRefused, connect

BEGUN = {"type": "begun", "file": "/srv/b.tar"}


@asynccontextmanager
async def host_that_tells(socket, *events, refusal=""):
    """Serve a host that answers a wish for a backup with these events; give a client and what was asked."""
    asked = []

    async def backups(request):
        asked.append(await request.json())
        if refusal:
            return JSONResponse({"error": refusal}, status_code=503)
        return StreamingResponse(iter([json.dumps(event) + "\n" for event in events]))

    async def ping(request):
        return JSONResponse({"ok": True})

    app = Starlette(routes=[Route("/ping", ping), Route("/backups", backups, methods=["POST"])])
    async with serve(app, uds=socket), connect(socket) as client:
        yield client, asked


async def test_the_file_and_its_size_are_told(tmp_path, capsys):
    done = {"type": "result", "file": "/srv/b.tar", "size_bytes": 12_345_678, "memories": 2}
    async with host_that_tells(tmp_path / "s", BEGUN, done) as (client, asked):
        assert await take(client, "/srv/b.tar") == 0
    assert asked == [{"file": "/srv/b.tar"}]
    assert capsys.readouterr().out == "Backup written: /srv/b.tar (12.3 MB)\n"


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([BEGUN, {"type": "error", "error": "no space left in '/srv'"}], "no space left in '/srv'"),
        ([BEGUN], "the host ended before the backup was whole; there is none"),
    ],
)
async def test_what_went_wrong_is_one_line(tmp_path, capsys, events, told):
    async with host_that_tells(tmp_path / "s", *events) as (client, _):
        assert await take(client, "") == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"lodger: {told}\n")


async def test_a_place_that_the_host_refuses_is_its_own_answer(tmp_path):
    async with host_that_tells(tmp_path / "s", refusal="'/srv/b.tar' exists already") as (client, _):
        with pytest.raises(HostRefused, match="exists already"):
            await take(client, "/srv/b.tar")
